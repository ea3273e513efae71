package specs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/unified-test-runner/utr/source"
)

// Options say how suites are found and checked. The zero value is a sensible
// choice.
type Options struct {
	// Stdin is read for the path "-". Nil refuses that path.
	Stdin io.Reader
	// Twins also loads the JSON twin of each YAML file and refuses the file
	// if they differ. Validation does this; a run does not.
	Twins bool
}

// Loaded is what was found, in the order of the paths, by name within a
// directory.
type Loaded struct {
	Suites []*Suite
	// Others are the files of directories that have another format, such as
	// JSON schemas and the tests of other specifications.
	Others []string
	// Refused are the suites that had to be refused, and were.
	Refused []string
}

// Left says in words what is not among the suites, "" if all is.
func (l *Loaded) Left() string {
	var parts []string
	for _, p := range []struct {
		files     []string
		one, many string
	}{
		{l.Others, "1 file of another format is left out", "%d files of other formats are left out"},
		{l.Refused, "1 invalid suite is refused, as it must be", "%d invalid suites are refused, as they must be"},
	} {
		switch n := len(p.files); n {
		case 0:
		case 1:
			parts = append(parts, p.one)
		default:
			parts = append(parts, fmt.Sprintf(p.many, n))
		}
	}
	return strings.Join(parts, "; ")
}

// Load finds, reads and checks suites. A path names a file (.yml, .yaml,
// .json), a directory (with all below it; hidden files apart), "-" for
// standard input, or a built-in directory or suite, if no such path exists
// on disk. Of x.yml and x.json in one directory, which are twins, x.yml alone
// is loaded.
//
// Within a directory, other extensions are passed over, and a YAML or JSON
// document that is not of the shape of a suite is listed as one of the others.
// All else must be a valid suite: whatever does not parse, and a suite without
// schemaVersion, is an error, so that no suite is lost unseen.
//
// The folders valid-fail and invalid beside a folder valid-pass, of the format's
// own tests, hold suites whose tests must fail (Suite.MustFail), and suites that
// must be refused: one of the latter that is valid is an error.
//
// The error, if any, is a *LoadError with everything that is wrong in any of
// the files. What could be loaded is returned with it.
func Load(paths []string, options Options) (*Loaded, error) {
	d := discover(paths, options)
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range d.found {
		all.Go(func() error {
			c.load(options)
			return nil
		})
	}
	_ = all.Wait() // each candidate has its error

	loaded, failed := &Loaded{}, d.errors
	for _, c := range d.found {
		switch {
		case c.err != nil:
			failed = append(failed, c.err)
		case c.suite != nil:
			loaded.Suites = append(loaded.Suites, c.suite)
		case c.refused:
			loaded.Refused = append(loaded.Refused, c.name)
		default:
			loaded.Others = append(loaded.Others, c.name)
		}
	}
	return loaded, loadError(failed, len(loaded.Suites), paths)
}

// loadError is what loading suites from paths ends with; to find none is an error.
func loadError(failed []error, found int, paths []string) error {
	if len(failed) == 0 && found == 0 {
		failed = []error{&PathError{Message: fmt.Sprintf("no suite found in %v: no .yml, .yaml or .json file there is one", paths)}}
	}
	if len(failed) > 0 {
		return &LoadError{failed}
	}
	return nil
}

// File is a suite that was parsed and not checked: of any schemaVersion, or none.
type File struct {
	Name string // as named by the user
	Data []byte
	Root *source.Value
	// Twin is the name of the JSON form of a YAML file, or "".
	Twin string
	// MustBeRefused reports that it is in a folder of invalid suites.
	MustBeRefused bool
}

// Read finds files as Load does, and parses them, but not twins. A file that must be
// refused and cannot be parsed is left out. The error, if any, is a *LoadError. What
// could be read is returned with it.
func Read(paths []string, options Options) (files []File, err error) {
	d := discover(paths, options)
	failed := d.errors
	for _, c := range d.found {
		f, err := c.open()
		switch {
		case err != nil && c.expected == mustBeRefused:
		case err != nil:
			failed = append(failed, err)
		case f != nil:
			files = append(files, *f)
		}
	}
	return files, loadError(failed, len(files), paths)
}

// Parse loads one suite from bytes: JSON if they are valid JSON, YAML
// otherwise. File is the name for positions. The error, if any, is an
// *InvalidError.
func Parse(file string, data []byte) (*Suite, error) {
	root, err := source.Parse(file, data)
	if err != nil {
		return nil, refused(file, err)
	}
	suite, err := FromValue(file, root)
	if suite != nil {
		suite.Digest = sha256.Sum256(data)
	}
	return suite, err
}

// load reads a candidate and compares the outcome with the expected one.
func (c *candidate) load(options Options) {
	c.suite, c.err = c.toSuite(options)
	switch {
	case c.expected != nothing && errors.As(c.err, new(*InvalidError)):
		c.refused, c.err = true, nil
	case c.suite == nil:
	case c.expected == mustBeRefused:
		c.err = invalid(c.name, Problem{Position: c.suite.Root.Position, Rule: "corpus",
			Message: "this suite is valid, and lies in a folder of invalid ones"})
	default:
		c.suite.MustFail = c.expected == mustFail
	}
}

// toSuite gives the suite of a candidate. Without one and an error, the file has
// another format.
func (c *candidate) toSuite(options Options) (*Suite, error) {
	file, err := c.open()
	if file == nil {
		return nil, err
	}
	suite, err := FromValue(c.name, file.Root)
	if options.Twins && c.twin != nil {
		err = c.compareTwin(file.Root, err)
	}
	if err != nil {
		return nil, err
	}
	suite.Digest = sha256.Sum256(file.Data)
	return suite, nil
}

// open parses what must be a suite, as the user named it, or is one. Without a file and
// an error, it has another format.
func (c *candidate) open() (*File, error) {
	f, err := c.parse()
	switch {
	case err != nil:
		return nil, err
	case looksLikeSuite(f.Root):
		return f, nil
	case c.named:
		return nil, invalid(c.name, Problem{Position: f.Root.Position, Rule: "suite",
			Message: "this is not a unified suite: it has no schemaVersion, and the shape of another format"})
	}
	return nil, nil //nolint:nilnil // a file of another format
}

func (c *candidate) parse() (*File, error) {
	f := &File{Name: c.name, MustBeRefused: c.expected == mustBeRefused}
	if c.twin != nil {
		f.Twin = c.twin.name
	}
	var err error
	if f.Data, err = c.read(); err != nil {
		return nil, &PathError{Path: c.name, Message: "cannot be read: " + err.Error(), Err: err}
	}
	parse := source.ParseYAML
	switch c.ext {
	case ".json":
		parse = source.ParseJSON
	case "":
		parse = source.Parse
	}
	if f.Root, err = parse(c.name, f.Data); err != nil {
		return nil, refused(c.name, err)
	}
	return f, nil
}

// compareTwin adds what is wrong with the JSON twin to an error of the YAML
// file, which may be nil.
func (c *candidate) compareTwin(root *source.Value, err error) error {
	twin, twinErr := c.twin.parse()
	var found, broken *InvalidError
	var problems []Problem
	if errors.As(err, &found) {
		problems = slices.Clone(found.Problems)
	}
	if errors.As(twinErr, &broken) {
		problems = append(problems, broken.Problems...)
	} else if twinErr != nil {
		return errors.Join(err, twinErr)
	} else if path, values, differ := source.Difference(root, twin.Root); differ {
		problems = append(problems, c.twinProblem(path, values[0], values[1]))
	}
	if problems == nil {
		return nil
	}
	return &InvalidError{File: c.name, Problems: problems}
}

// twinProblem reports a value that YAML and JSON do not both have, or in which they
// differ.
func (c *candidate) twinProblem(path string, yaml, json *source.Value) Problem {
	p := Problem{Path: path, Rule: "twin"}
	switch {
	case json == nil:
		p.Position, p.Message = yaml.Position, "is not in the JSON twin "+c.twin.name
	case yaml == nil:
		p.Position, p.Message = json.Position, "is not in "+c.name+", of which this is the JSON twin"
	default:
		p.Position, p.Message = yaml.Position, fmt.Sprintf("differs from the JSON twin at %s", json.Position)
	}
	return p
}

// refused turns an error of package source into one about a file.
func refused(file string, err error) error {
	p := Problem{Rule: "parse", Message: err.Error(), Position: source.Position{File: file}}
	var e *source.Error
	if errors.As(err, &e) {
		p.Position, p.Message = e.Position, e.Message
	}
	return invalid(file, p)
}

// Top-level keys of a suite: those that no other kind of file has, and those
// that others have, too.
var (
	ownKeys    = []string{"schemaVersion", "runOnRequirements", "createEntities", "initialData", "_yamlAnchors"}
	sharedKeys = []string{"description", "tests"}
)

// looksLikeSuite reports whether a document has the shape of a suite, be it a
// valid one or not: a key of suites alone, or no other keys than theirs and
// tests with operations.
func looksLikeSuite(root *source.Value) bool {
	has := func(k string) bool { return root.Get(k) != nil }
	foreign := func(f source.Field) bool { return !slices.Contains(sharedKeys, f.Key) }
	tests := root.Get("tests")
	return slices.ContainsFunc(ownKeys, has) || tests != nil && !slices.ContainsFunc(root.Fields, foreign) &&
		slices.ContainsFunc(tests.Items, func(t *source.Value) bool { return t.Get("operations") != nil })
}
