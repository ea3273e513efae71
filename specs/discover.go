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

// candidate is a file that may be a suite.
type candidate struct {
	name string // as shown to the user
	read func() ([]byte, error)
	json bool
	// named is true for what the user named itself; what a directory holds
	// beside suites is ignored.
	named bool
	// twin is the JSON form of a YAML candidate, nil if there is none.
	twin *candidate
	// stdin is standard input, which has no extension to tell the format from.
	stdin bool
	// expected is what must become of it, by its folder.
	expected expectation
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
func expectationOf(name string, folders map[string]bool) expectation {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if e, found := corpora[path.Base(dir)]; found && folders[path.Join(path.Dir(dir), "valid-pass")] {
			return e
		}
	}
	return nothing
}

// Stdin is the path that stands for standard input.
const Stdin = "-"

// discover finds the candidates under paths, each once, in the order in which
// paths name them and by name within a directory.
func discover(paths []string, options Options) ([]*candidate, []error) {
	d := discovery{options: options, seen: map[string]bool{}}
	for _, p := range paths {
		d.path(p)
	}
	return d.found, d.errors
}

type discovery struct {
	options Options
	found   []*candidate
	seen    map[string]bool
	errors  []error
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
		d.add(Stdin, &candidate{name: "<stdin>", named: true, stdin: true, read: func() ([]byte, error) {
			return io.ReadAll(io.LimitReader(d.options.Stdin, source.MaxBytes+1))
		}})
		return
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && info.IsDir():
		d.directory(p, os.DirFS(p), func(name string) string { return filepath.Join(p, filepath.FromSlash(name)) })
	case err == nil:
		d.file(p, os.DirFS(filepath.Dir(p)), filepath.Base(p))
	case errors.Is(err, fs.ErrNotExist):
		d.embedded(p, err)
	default:
		d.fail(p, "cannot be read: "+err.Error(), err)
	}
}

// embedded looks for a suite or a directory of suites by its name in the
// suites that the program carries.
func (d *discovery) embedded(p string, notThere error) {
	suites := d.options.suites()
	name := strings.TrimPrefix(path.Clean(filepath.ToSlash(p)), "specs/")
	stat, err := fs.Stat(suites, name)
	if name == "." {
		err = fs.ErrNotExist
	}
	switch {
	case err != nil:
		d.fail(p, "there is no such file or directory, and no such suite among the built-in ones ("+strings.Join(builtIn(suites), ", ")+")", notThere)
	case stat.IsDir():
		sub, err := fs.Sub(suites, name)
		if err != nil {
			d.fail(p, err.Error(), err)
			return
		}
		d.directory(p, sub, func(below string) string { return path.Join(name, below) })
	default:
		d.file(name, suites, name)
	}
}

// BuiltIn names the directories of suites that utr carries.
func BuiltIn() []string { return builtIn(FS) }

func builtIn(suites fs.FS) []string {
	entries, err := fs.ReadDir(suites, ".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func (d *discovery) file(p string, in fs.FS, name string) {
	if format(name) == "" {
		d.fail(p, "is not a suite: the extension must be .yml, .yaml or .json", nil)
		return
	}
	c := inFS(p, in, name)
	c.named = true
	if format(name) == "yaml" {
		twin := strings.TrimSuffix(name, path.Ext(name)) + ".json"
		if _, err := fs.Stat(in, twin); err == nil {
			c.twin = inFS(strings.TrimSuffix(p, path.Ext(p))+".json", in, twin)
		}
	}
	d.add(p, c)
}

// directory adds the files below a directory, but for hidden ones. Of a YAML
// and a JSON file with the same name, which are twins, the YAML one is taken.
func (d *discovery) directory(p string, in fs.FS, show func(string) string) {
	var names []string
	err := fs.WalkDir(in, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && format(name) != "":
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		d.fail(p, "cannot be read: "+err.Error(), err)
		return
	}
	slices.Sort(names)
	present, folders := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		present[name], folders[path.Dir(name)] = true, true
	}
	for _, name := range names {
		stem := strings.TrimSuffix(name, path.Ext(name))
		c := inFS(show(name), in, name)
		if c.json && (present[stem+".yml"] || present[stem+".yaml"]) {
			continue
		}
		c.expected = expectationOf(name, folders)
		if !c.json && present[stem+".json"] {
			c.twin = inFS(show(stem+".json"), in, stem+".json")
		}
		d.add(show(name), c)
	}
}

func (d *discovery) add(key string, c *candidate) {
	if key != Stdin {
		key = filepath.Clean(key)
	}
	if !d.seen[key] {
		d.seen[key] = true
		d.found = append(d.found, c)
	}
}

func inFS(shown string, in fs.FS, name string) *candidate {
	return &candidate{
		name: shown,
		json: format(name) == "json",
		read: func() ([]byte, error) { return fs.ReadFile(in, name) },
	}
}

// format gives yaml, json or "" by the extension.
func format(name string) string {
	switch path.Ext(name) {
	case ".yml", ".yaml":
		return "yaml"
	case ".json":
		return "json"
	}
	return ""
}
