package specs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

// Options say how suites are found and checked. The zero value is a sensible
// choice.
type Options struct {
	// Stdin is read for the path "-". Nil refuses that path.
	Stdin io.Reader
	// Suites are searched for names that do not exist on disk; nil means FS.
	Suites fs.FS
	// Limits bound each file; the zero value means source.DefaultLimits.
	Limits source.Limits
	// Twins also loads the JSON twin of each YAML file and refuses the file
	// if they differ. Validation wants it; a run does not.
	Twins bool
	// Schemas may be shared by loads, so that each is compiled once. Nil makes
	// a set for this load.
	Schemas *schema.Set
	// Jobs is the number of files that load at once; less than 1 means one
	// for each processor.
	Jobs int
}

func (o Options) limits() source.Limits {
	if o.Limits == (source.Limits{}) {
		return source.DefaultLimits()
	}
	return o.Limits
}

func (o Options) suites() fs.FS {
	if o.Suites == nil {
		return FS
	}
	return o.Suites
}

// Ignored is a file of a directory that is no suite and does not look like
// one, such as a JSON schema.
type Ignored struct {
	File string
	Why  string
}

// Loaded is what was found.
type Loaded struct {
	Suites  []*Suite // in the order of the paths, by name within a directory
	Ignored []Ignored
}

// Load finds, reads and checks suites. A path names a file (.yml, .yaml,
// .json), a directory (with all below it; hidden files apart), "-" for
// standard input, or a built-in directory or suite, if no such path exists
// on disk. Of x.yml and x.json in one directory, which are twins, x.yml alone
// is loaded.
//
// Within a directory, other extensions are passed over, and a YAML or JSON
// document without any key that is special to suites is listed as ignored.
// All else must be a valid suite: whatever does not parse, and whatever has
// just one of these keys, is an error, so that no suite is lost unseen.
//
// The error, if any, is a *LoadError with everything that is wrong in any of
// the files. What could be loaded is returned with it.
func Load(paths []string, options Options) (*Loaded, error) {
	if options.Schemas == nil {
		options.Schemas = schema.New()
	}
	candidates, failed := discover(paths, options)
	type answer struct {
		suite   *Suite
		ignored string
		err     error
	}
	answers := make([]answer, len(candidates))
	jobs := options.Jobs
	if jobs < 1 {
		jobs = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(jobs, len(candidates)) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range next {
				a := &answers[i]
				a.suite, a.ignored, a.err = candidates[i].load(options)
			}
		}()
	}
	for i := range candidates {
		next <- i
	}
	close(next)
	workers.Wait()

	loaded := &Loaded{}
	for i, a := range answers {
		switch {
		case a.err != nil:
			failed = append(failed, a.err)
		case a.suite != nil:
			loaded.Suites = append(loaded.Suites, a.suite)
		default:
			loaded.Ignored = append(loaded.Ignored, Ignored{candidates[i].name, a.ignored})
		}
	}
	if len(failed) == 0 && len(loaded.Suites) == 0 {
		failed = append(failed, &PathError{Message: fmt.Sprintf("no suite found in %v: no .yml, .yaml or .json file there is one", paths)})
	}
	if len(failed) > 0 {
		return loaded, &LoadError{failed}
	}
	return loaded, nil
}

// Parse loads one suite from bytes: JSON if they are valid JSON, YAML
// otherwise. File is the name for positions. The error, if any, is an
// *InvalidError.
func Parse(file string, data []byte) (*Suite, error) {
	root, err := source.Parse(file, data)
	if err != nil {
		return nil, refused(file, err)
	}
	suite, err := check(file, root, schema.New())
	if suite != nil {
		suite.Digest = sha256.Sum256(data)
	}
	return suite, err
}

// load reads a candidate. Without a suite and an error, the file is ignored
// for the reason given.
func (c *candidate) load(options Options) (*Suite, string, error) {
	root, digest, err := c.parse(options)
	if err != nil {
		return nil, "", err
	}
	if !looksLikeSuite(root) {
		if !c.named {
			return nil, "it has none of the keys of a suite", nil
		}
		return nil, "", &InvalidError{File: c.name, Problems: []Problem{{
			Position: root.Position, Rule: "suite", Message: "this is no suite: it has neither schemaVersion nor tests",
		}}}
	}
	suite, err := check(c.name, root, options.Schemas)
	if options.Twins && c.twin != nil {
		err = c.compareTwin(root, err, options)
	}
	if err != nil {
		return nil, "", err
	}
	suite.Digest = digest
	return suite, "", nil
}

func (c *candidate) parse(options Options) (root *source.Value, digest [sha256.Size]byte, err error) {
	data, err := c.read()
	if err != nil {
		return nil, digest, &PathError{Path: c.name, Message: "cannot be read: " + err.Error(), Err: err}
	}
	parse := options.limits().ParseYAML
	switch {
	case c.json:
		parse = options.limits().ParseJSON
	case c.stdin:
		parse = options.limits().Parse
	}
	if root, err = parse(c.name, data); err != nil {
		return nil, digest, refused(c.name, err)
	}
	return root, sha256.Sum256(data), nil
}

// compareTwin adds what is wrong with the JSON twin to an error of the YAML
// file, which may be nil.
func (c *candidate) compareTwin(root *source.Value, err error, options Options) error {
	var problems []Problem
	twin, _, twinErr := c.twin.parse(options)
	var invalid *InvalidError
	switch {
	case errors.As(twinErr, &invalid):
		problems = invalid.Problems
	case twinErr != nil:
		return errors.Join(err, twinErr)
	default:
		if path, values, differ := source.Difference(root, twin); differ {
			problems = []Problem{twinProblem(path, values, c)}
		}
	}
	if len(problems) == 0 {
		return err
	}
	if errors.As(err, &invalid) {
		return &InvalidError{File: c.name, Problems: append(slices.Clone(invalid.Problems), problems...)}
	}
	return &InvalidError{File: c.name, Problems: problems}
}

func twinProblem(path string, values [2]*source.Value, c *candidate) Problem {
	p := Problem{Path: path, Rule: "twin", Position: source.Position{File: c.name}}
	yaml, json := values[0], values[1]
	if yaml != nil {
		p.Position = yaml.Position
	}
	switch {
	case json == nil:
		p.Message = fmt.Sprintf("is not in the JSON twin %s", c.twin.name)
	case yaml == nil:
		p.Position = json.Position
		p.Message = fmt.Sprintf("is not in %s, of which this is the JSON twin", c.name)
	default:
		p.Message = fmt.Sprintf("differs from the JSON twin at %s", json.Position)
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
	return &InvalidError{File: file, Problems: []Problem{p}}
}

// suiteKeys are the top-level keys that no other kind of file has.
var suiteKeys = []string{"schemaVersion", "tests", "runOnRequirements", "createEntities", "initialData", "_yamlAnchors"}

func looksLikeSuite(root *source.Value) bool {
	return slices.ContainsFunc(suiteKeys, func(k string) bool { return root.Get(k) != nil })
}
