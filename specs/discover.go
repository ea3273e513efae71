package specs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// candidate is a file that may be a suite, and what became of it: without a suite
// and an error it was refused, as it had to be, or has another format.
type candidate struct {
	name string // as shown to the user
	read func() ([]byte, error)
	ext  string // of the name, "" for standard input, whose format is not known
	// named is true for what the user named itself; what a directory holds
	// beside suites is ignored.
	named bool
	// twin is the JSON form of a YAML candidate, nil if there is none.
	twin *candidate
	// expected is what must become of it, by its folder.
	expected expectation

	suite   *Suite
	refused bool
	err     error
}

// expectation is what the folder of a suite says of it.
type expectation uint8

const (
	nothing       expectation = iota
	mustFail                  // the suite is valid, and its tests fail
	mustBeRefused             // the suite is invalid
)

// corpora are the folders of the format's own tests that hold what must go
// wrong. They stand beside a folder valid-pass.
var corpora = map[string]expectation{"valid-fail": mustFail, "invalid": mustBeRefused}

// expectationOf gives the expected outcome of a file by its name below a
// directory. A user who names one of the corpora itself sees what goes wrong there.
func expectationOf(name string, in fs.FS) expectation {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if e, found := corpora[path.Base(dir)]; found && exists(in, path.Join(path.Dir(dir), "valid-pass")) {
			return e
		}
	}
	return nothing
}

func exists(in fs.FS, name string) bool {
	_, err := fs.Stat(in, name)
	return err == nil
}

// Stdin is the path that stands for standard input.
const Stdin = "-"

// discovery finds candidates, each once, in the order in which paths name them
// and by name within a directory.
type discovery struct {
	options Options
	found   []*candidate
	seen    map[string]bool
	errors  []error
}

// discover finds the candidates that paths name.
func discover(paths []string, options Options) *discovery {
	d := &discovery{options: options, seen: map[string]bool{}}
	for _, p := range paths {
		d.path(p)
	}
	return d
}

// IsSuiteName reports whether a name has an extension of suites.
func IsSuiteName(name string) bool {
	return slices.Contains([]string{".yml", ".yaml", ".json"}, path.Ext(name))
}

func (d *discovery) fail(p, message string, err error) {
	d.errors = append(d.errors, &PathError{Path: p, Message: message, Err: err})
}

func (d *discovery) path(p string) {
	if p == Stdin {
		if d.options.Stdin == nil {
			d.fail(p, "standard input cannot be read here", nil)
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
		d.builtIn(p, err)
	default:
		d.fail(p, "cannot be read: "+err.Error(), err)
	}
}

// builtIn looks for a suite or a directory of suites by its name in the suites
// that the program carries.
func (d *discovery) builtIn(p string, notThere error) {
	name := strings.TrimPrefix(path.Clean(filepath.ToSlash(p)), "specs/")
	if name == "." || !exists(FS, name) {
		d.fail(p, "there is no such file or directory, and no such suite among the built-in ones ("+strings.Join(BuiltIn(), ", ")+")", notThere)
		return
	}
	d.below(p, FS, name, func(name string) string { return name })
}

// BuiltIn names the directories of suites that utr carries.
func BuiltIn() (names []string) {
	all, _ := FS.ReadDir(".") // of the program itself
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// below adds a file, or the files below a directory, but for hidden ones. Of a YAML
// and a JSON file with the same name, which are twins, the YAML one is taken.
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
		d.fail(p, "cannot be read: "+err.Error(), err)
	case named && names == nil:
		d.fail(p, "is not a suite: the extension must be .yml, .yaml or .json", nil)
	}
	slices.Sort(names)
	candidateOf := func(name string) *candidate {
		return &candidate{name: show(name), ext: path.Ext(name), named: named, read: func() ([]byte, error) { return fs.ReadFile(in, name) }}
	}
	for _, name := range names {
		c, stem := candidateOf(name), strings.TrimSuffix(name, path.Ext(name))
		switch {
		case c.ext != ".json":
			if exists(in, stem+".json") {
				c.twin = candidateOf(stem + ".json")
			}
		case !named && (exists(in, stem+".yml") || exists(in, stem+".yaml")):
			continue
		}
		c.expected = expectationOf(name, in)
		d.add(c)
	}
}

func (d *discovery) add(c *candidate) {
	if key := filepath.Clean(c.name); !d.seen[key] {
		d.seen[key] = true
		d.found = append(d.found, c)
	}
}
