package specs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/process/parallel"
	"github.com/unified-test-runner/utr/internal/text/plural"
)

// Options configure how suites are found and checked.
type Options struct {
	Stdin io.Reader // for the path "-"; the path is an error if Stdin is nil
	// Twins also loads the JSON twin of each YAML file, and rejects the file if they differ.
	Twins bool
	// OnlyCheck keeps only File, Warnings and CannotPass of each suite, so that memory does not grow with their sizes.
	OnlyCheck bool
	// Official is the folder of the official suites, source of a checkout of mongodb/specifications, for paths such as
	// official/retryable-reads. It may not exist.
	Official string
}

// Loaded contains the files found: in the order of the paths, and by name within a folder.
type Loaded struct {
	Suites   []*Suite
	Others   []string // files of other formats, such as JSON schemas, found in folders
	Rejected []string // suites that are invalid, as expected
}

// Summary summarizes the files that are not among the suites, with their names if these are wanted. It is "" if all
// are.
func (l *Loaded) Summary(names bool) string {
	var parts []string
	for _, p := range []struct {
		files []string
		does  string
		what  string
		as    string
	}{
		{l.Others, "skipped", "file", " in other formats"},
		{l.Rejected, "rejected", "invalid suite", ", as expected"},
	} {
		if len(p.files) > 0 {
			part := p.does + " " + plural.Of(len(p.files), p.what) + p.as
			if names {
				part += ": " + strings.Join(p.files, ", ")
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// Load finds, reads and checks suites. A path names a file (.yml, .yaml, .json), a folder (with
// everything below it except hidden files), standard input ("-"), or, if it does not exist on disk, a
// built-in suite or folder, or the official suites of a specification ("official/retryable-reads"). Of the twins x.yml
// and x.json in one folder, only x.yml is loaded.
//
// Within a folder, files with other extensions are ignored, and a file that does not look like a suite, such as a
// report of utr, is one of the others, even if it cannot be parsed. A file is not even parsed if its first key is not
// one of a suite, and no key that only suites have is anywhere in it. Everything else must be a valid suite: one that
// cannot be parsed, is empty or was cut off, or has no schemaVersion, is an error, so that no suite is silently
// skipped.
//
// The folders valid-fail and invalid next to a folder valid-pass are the format's own tests. They hold
// suites whose tests must fail (Suite.MustFail), and invalid suites: a valid one there is an error.
//
// An error joins a *PathError or an *InvalidError of each such file. Load still returns the other suites.
func Load(paths []string, options Options) (*Loaded, error) {
	d := discover(paths, options)
	_ = parallel.Each(0, d.found, func(_ int, c *candidate) error {
		c.load(options)
		return nil
	})
	loaded, failed := &Loaded{}, d.errors
	for _, c := range d.found {
		switch {
		case c.err != nil:
			failed = append(failed, c.err)
		case c.suite != nil:
			loaded.Suites = append(loaded.Suites, c.suite)
		case c.rejected:
			loaded.Rejected = append(loaded.Rejected, c.name)
		default:
			loaded.Others = append(loaded.Others, c.name)
		}
	}
	return loaded, loadError(failed, len(loaded.Suites), paths)
}

// loadError returns the error of loading paths. Finding no suite is an error.
func loadError(failed []error, found int, paths []string) error {
	if len(failed) == 0 && found == 0 {
		failed = []error{&PathError{Message: fmt.Sprintf("no .yml, .yaml or .json file in %s is a suite",
			strings.Join(paths, ", "))}}
	}
	return errors.Join(failed...)
}

// File is a parsed but unchecked suite of any schemaVersion.
type File struct {
	Name          string // as named by the user
	Data          []byte
	Root          *source.Value
	Twin          string // the name of the JSON form of a YAML file, or ""
	MustBeInvalid bool   // whether it is in a folder of invalid suites
}

// Read finds files as Load does, and parses them without their twins. It omits files that must be
// rejected and cannot be parsed. It returns the errors of Load. Read still returns the other files.
func Read(paths []string, options Options) (files []File, err error) {
	d := discover(paths, options)
	failed, opened := d.errors, make([]*File, len(d.found))
	_ = parallel.Each(0, d.found, func(i int, c *candidate) error {
		opened[i], c.err = c.open()
		return nil
	})
	for i, c := range d.found {
		switch {
		case c.err != nil && c.expected == mustBeInvalid:
		case c.err != nil:
			failed = append(failed, c.err)
		case opened[i] != nil:
			files = append(files, *opened[i])
		}
	}
	return files, loadError(failed, len(files), paths)
}

// Parse loads one suite from data: JSON if it is valid JSON, YAML otherwise. Positions name file. An
// error is an *InvalidError.
func Parse(file string, data []byte) (*Suite, error) {
	root, err := source.Parse(file, data)
	if err != nil {
		return nil, parseError(file, err)
	}
	suite, err := FromValue(file, root)
	if suite != nil {
		suite.Digest, suite.text = sha256.Sum256(data), data
	}
	return suite, err
}

// load loads a candidate and compares the result with its expectation.
func (c *candidate) load(options Options) {
	c.suite, c.err = c.toSuite(options)
	switch {
	case c.expected != "" && errors.As(c.err, new(*InvalidError)):
		c.rejected, c.err = true, nil
	case c.suite == nil:
	case c.expected == mustBeInvalid:
		c.err = invalid(Problem{Position: c.suite.Root.Position, Rule: "corpus",
			Message: "this suite is valid, but its folder is for invalid suites"})
	default:
		c.suite.MustFail = c.expected == mustFail
	}
	if c.suite != nil && options.OnlyCheck {
		c.suite = &Suite{File: c.suite.File, Warnings: c.suite.Warnings, CannotPass: c.suite.CannotPass}
	}
}

// toSuite returns the suite of a candidate, or nil for a file of another format.
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
	suite.Digest, suite.text = sha256.Sum256(file.Data), file.Data
	return suite, nil
}

// open parses a candidate, or returns nil for a file of another format that the user did not name.
func (c *candidate) open() (*File, error) {
	data, err := c.read()
	if err == nil && !c.named && c.expected == "" && isForeign(data) {
		return nil, nil
	}
	f, err := c.parse(data, err)
	switch {
	case err != nil && isReport(f.Data):
		if c.named {
			return nil, invalid(Problem{Position: source.Position{File: c.name}, Rule: "suite",
				Message: "this is a JSON report of utr, not a suite"})
		}
		return nil, nil
	case err != nil && !c.named && c.expected == "" && f.Data != nil && !mayBeSuite(f.Data):
		return nil, nil // of another format: not necessarily YAML, or JSON without comments
	case err != nil:
		return nil, err
	case looksLikeSuite(f.Root):
		return f, nil
	case c.named:
		return nil, invalid(Problem{Position: f.Root.Position, Rule: "suite",
			Message: "this is not a unified suite: it has no schemaVersion and looks like another format"})
	}
	return nil, nil // a file of another format
}

// parse parses a candidate that has been read, or returns the error of reading it.
func (c *candidate) parse(data []byte, err error) (*File, error) {
	f := &File{Name: c.name, Data: data, MustBeInvalid: c.expected == mustBeInvalid}
	if c.twin != nil {
		f.Twin = c.twin.name
	}
	if err != nil {
		return f, &PathError{Path: c.name, Message: "cannot be read: " + err.Error()}
	}
	parse := source.ParseYAML
	switch c.ext {
	case ".json":
		parse = source.ParseJSON
	case "":
		parse = source.Parse
	}
	if f.Root, err = parse(c.name, data); err != nil {
		return f, parseError(c.name, err)
	}
	return f, nil
}

// isReport reports whether a file consists of records of a report (JSON Lines).
func isReport(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var record struct{ Run, Status json.RawMessage }
	return json.Unmarshal(line, &record) == nil && (record.Run != nil || record.Status != nil)
}

// mayBeSuite reports whether a file that cannot be parsed may be a suite, whole or cut off. If so, it contains only
// comments, begins with a key of a suite, or has one of ownKeys anywhere.
func mayBeSuite(data []byte) bool {
	start := beginning().FindSubmatch(data)
	return len(start[0]) == len(data) || slices.Contains(sharedKeys, string(start[1])) || hasOwnKey(data)
}

// isForeign reports whether a file certainly has another format: its first key is not a key of a suite, and it does not
// contain any of ownKeys.
func isForeign(data []byte) bool {
	if hasOwnKey(data) {
		return false
	}
	start := beginning().FindSubmatch(data)
	return len(start[2]) > 0 && !slices.Contains(sharedKeys, string(start[1]))
}

// hasOwnKey reports whether one of ownKeys is anywhere in a file.
func hasOwnKey(data []byte) bool {
	return slices.ContainsFunc(ownKeys, func(key string) bool { return bytes.Contains(data, []byte(key)) })
}

// beginning matches what can precede the first key of a YAML or JSON document, this key, and the colon after it.
var beginning = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\x{FEFF}|\s|#.*|---|\{)*(?:["']?([\w$]+)(["']?\s*:)?)?`)
})

// compareTwin adds the problems of the JSON twin to err, the error of the YAML file or nil.
func (c *candidate) compareTwin(root *source.Value, err error) error {
	data, readErr := c.twin.read()
	if readErr == nil && root.IsTwin(data) {
		return err
	}
	twin, twinErr := c.twin.parse(data, readErr)
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
	return &InvalidError{Problems: problems}
}

func (c *candidate) twinProblem(path string, yaml, json *source.Value) Problem {
	p := Problem{Path: path, Rule: "twin"}
	switch {
	case json == nil:
		p.Position, p.Message = yaml.Position, "is not in the JSON twin "+c.twin.name
	case yaml == nil:
		p.Position, p.Message = json.Position, "is only in this JSON twin, not in "+c.name
	default:
		p.Position, p.Message = yaml.Position, fmt.Sprintf("differs from the JSON twin at %s", json.Position)
	}
	return p
}

// parseError converts an error of package source to an *InvalidError.
func parseError(file string, err error) error {
	p := Problem{Rule: "parse", Message: err.Error(), Position: source.Position{File: file}}
	var e *source.Error
	if errors.As(err, &e) {
		p.Position, p.Message = e.Position, e.Message
	}
	return invalid(p)
}

// Top-level keys of a suite: the keys that no other format has, and the keys that other formats share.
var (
	ownKeys    = []string{"schemaVersion", "runOnRequirements", "createEntities", "initialData", "_yamlAnchors"}
	sharedKeys = []string{"description", "tests"}
)

// looksLikeSuite reports whether a document has the shape of a suite, complete or not: it is null, it has one of
// ownKeys, or only sharedKeys with a description or tests with operations.
func looksLikeSuite(root *source.Value) bool {
	has := func(k string) bool { return root.Get(k) != nil }
	foreign := func(f source.Field) bool { return !slices.Contains(sharedKeys, f.Key) }
	tests := root.Get("tests")
	return root.Kind == source.Null || slices.ContainsFunc(ownKeys, has) || !slices.ContainsFunc(root.Fields, foreign) &&
		(has("description") ||
			tests != nil && slices.ContainsFunc(tests.Items, func(t *source.Value) bool { return t.Get("operations") != nil }))
}
