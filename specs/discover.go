package specs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// candidate is a file that may be a suite, and the result of loading it. If it has neither a suite nor an error, it was
// rejected as expected, or has another format.
type candidate struct {
	name     string // as shown to the user
	read     func() ([]byte, error)
	ext      string     // of the name; "" for standard input, whose format is unknown
	named    bool       // by the user; other files of a folder need not be suites
	twin     *candidate // the JSON form of a YAML candidate, or nil
	expected string     // mustFail, mustBeInvalid, or ""

	suite    *Suite
	rejected bool
	err      error
}

// The folders of the format's own tests whose suites must fail or be invalid. They are siblings of a folder valid-pass.
const (
	mustFail      = "valid-fail" // the suite is valid, and its tests fail
	mustBeInvalid = "invalid"    // the suite is invalid
)

// corpusOf returns the folder that determines the expected result of a file, or "". The file is named relative to a
// folder. If a user names one of the folders directly, its errors are reported.
func corpusOf(name string, in fs.FS) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		base := path.Base(dir)
		if (base == mustFail || base == mustBeInvalid) && exists(in, path.Join(path.Dir(dir), "valid-pass")) {
			return base
		}
	}
	return ""
}

func exists(in fs.FS, name string) bool {
	_, err := fs.Stat(in, name)
	return err == nil
}

// Stdin is the path of standard input.
const Stdin = "-"

// discovery finds each candidate once: in the order of the paths, and by name within a folder.
type discovery struct {
	options Options
	found   []*candidate
	seen    map[string]*candidate
	errors  []error
}

func discover(paths []string, options Options) *discovery {
	d := &discovery{options: options, seen: map[string]*candidate{}}
	for _, p := range paths {
		d.path(p)
	}
	return d
}

// IsSuiteName reports whether a name has the extension of a suite.
func IsSuiteName(name string) bool {
	return slices.Contains([]string{".yml", ".yaml", ".json"}, path.Ext(name))
}

func (d *discovery) fail(p, message string) {
	d.errors = append(d.errors, &PathError{Path: p, Message: message})
}

func (d *discovery) path(p string) {
	if p == Stdin {
		if d.options.Stdin == nil {
			d.fail(p, "standard input is not available here")
			return
		}
		d.add(&candidate{name: "<stdin>", named: true, read: func() ([]byte, error) {
			return io.ReadAll(io.LimitReader(d.options.Stdin, source.MaxBytes+1))
		}})
		return
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && info.IsDir():
		d.below(p, os.DirFS(p), ".", func(name string) string { return filepath.Join(p, filepath.FromSlash(name)) })
	case err == nil:
		d.below(p, os.DirFS(filepath.Dir(p)), filepath.Base(p), func(name string) string {
			return strings.TrimSuffix(p, filepath.Base(p)) + name
		})
	case errors.Is(err, fs.ErrNotExist):
		if name, is := strings.CutPrefix(path.Clean(filepath.ToSlash(p))+"/", official); is {
			d.official(p, strings.TrimSuffix(name, "/"))
			return
		}
		d.builtIn(p)
	default:
		d.fail(p, "cannot be read: "+err.Error())
	}
}

func (d *discovery) builtIn(p string) {
	name := strings.TrimPrefix(path.Clean(filepath.ToSlash(p)), "specs/")
	if name == allSuites {
		for _, each := range Current() {
			d.builtIn(each)
		}
		return
	}
	if name == "." || !exists(embedded, name) {
		d.fail(p, "no such file or folder, and no built-in suite of that name (built in: "+strings.Join(BuiltIn(),
			", ")+")"+Likely(p, d.options.Official))
		return
	}
	d.below(p, embedded, name, func(name string) string { return name })
}

// official begins the paths of official suites: official/SPECIFICATION is the folder tests of a specification,
// official/SPECIFICATION/PATH any other file or folder of it, and official everything.
const official = "official/"

func (d *discovery) official(p, name string) {
	dir := d.options.Official
	in := os.DirFS(dir)
	switch {
	case dir == "" || !exists(in, "."):
		d.fail(p, "the official suites are not in "+cmp.Or(dir, "any folder")+": utr specs fetch brings them there")
		return
	case name == "":
		name = "."
	case !strings.Contains(name, "/"):
		name += "/tests"
	}
	if !exists(in, name) {
		d.fail(p, "no such official suites in "+dir+Likely(p, dir))
		return
	}
	d.below(p, in, name, func(name string) string { return official + name })
}

// Likely returns the end of a message with the suites that a misspelled path may mean: suites beside it, built-in
// suites, or official suites in a folder. It returns "" if the path exists or resembles none of them.
func Likely(p, official string) string {
	name := strings.TrimPrefix(path.Clean(filepath.ToSlash(p)), "specs/")
	if _, err := os.Stat(p); err == nil || name != "." && exists(embedded, name) {
		return ""
	}
	return cmp.Or(suggest.Hint(filepath.Base(p), beside(p)), suggest.Hint(name, BuiltIn()),
		suggest.Hint(p, OfficialSuites(official)))
}

// OfficialSuites returns the names of the official suites in a folder. The folder may not exist.
func OfficialSuites(dir string) (names []string) {
	all, _ := fs.Glob(os.DirFS(dir), "*/tests") // cannot fail: the pattern is valid
	for _, name := range all {
		names = append(names, official+path.Dir(name))
	}
	return names
}

// beside returns the names of the suites and folders beside a path that does not exist.
func beside(p string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(p))
	for _, e := range entries {
		if e.IsDir() || IsSuiteName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// allSuites names all built-in suites for the current policy.
const allSuites = "all"

// BuiltIn returns the names of built-in suites: the folders of the current ones, the name for all of these, and the
// folders of the suites for earlier policies.
func BuiltIn() []string {
	earlier, _ := fs.Glob(embedded, "dated/*") // cannot fail: the pattern is valid
	return slices.Concat(Current(), []string{allSuites}, earlier)
}

// Current returns the folders of built-in suites for the current policy.
func Current() []string {
	all, _ := fs.Glob(embedded, "*") // cannot fail: the pattern is valid
	return slices.DeleteFunc(all, func(name string) bool { return name == "dated" })
}

// below adds a file, or the files below a folder except hidden ones. If a YAML and a JSON file are twins (they have the
// same name), it adds the YAML file.
func (d *discovery) below(p string, in fs.FS, root string, show func(string) string) {
	var names []string
	named := false
	err := fs.WalkDir(in, root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != root && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir():
			named = named || name == root
			if IsSuiteName(name) {
				names = append(names, name)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		d.fail(p, "cannot be read: "+err.Error())
	case named && names == nil:
		d.fail(p, "is not a suite: the extension must be .yml, .yaml or .json")
	}
	slices.Sort(names)
	has := func(name string) bool { // without a system call for each of thousands of files
		if named {
			return exists(in, name)
		}
		_, found := slices.BinarySearch(names, name)
		return found
	}
	candidateOf := func(name string) *candidate {
		return &candidate{name: show(name), ext: path.Ext(name), named: named,
			read: func() ([]byte, error) { return fs.ReadFile(in, name) }}
	}
	for _, name := range names {
		c, stem := candidateOf(name), strings.TrimSuffix(name, path.Ext(name))
		switch {
		case c.ext != ".json":
			if has(stem + ".json") {
				c.twin = candidateOf(stem + ".json")
			}
		case !named && (has(stem+".yml") || has(stem+".yaml")):
			continue
		}
		c.expected = corpusOf(name, in)
		d.add(c)
	}
}

func (d *discovery) add(c *candidate) {
	key := filepath.Clean(c.name)
	if first := d.seen[key]; first != nil {
		first.named = first.named || c.named
		return
	}
	d.seen[key] = c
	d.found = append(d.found, c)
}
