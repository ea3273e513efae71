package schema

import (
	"fmt"
	"sync"

	"github.com/xeipuuv/gojsonschema"

	"github.com/unified-test-runner/utr/source"
)

// A Set validates against every known version. Each version's schema is
// compiled when it is first used, once. A Set may be used by many goroutines.
type Set struct {
	format   definitions
	homes    map[string][]string // titles of the objects that have a key
	compiled [newest + 1]func() (*gojsonschema.Schema, error)
}

// New makes a Set. It compiles nothing yet.
func New() *Set {
	s := &Set{format: format()}
	s.homes = s.format.homes()
	for minor := range s.compiled {
		s.compiled[minor] = sync.OnceValues(func() (*gojsonschema.Schema, error) {
			text, err := s.format.derive(minor)
			if err != nil {
				return nil, err
			}
			return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
		})
	}
	return s
}

// Compile compiles the schema of a version ahead of its first use. The error
// is a *[VersionError], or says that this package is at fault.
func (s *Set) Compile(version string) error {
	minor, err := minorOf(version)
	if err != nil {
		return err
	}
	if _, err = s.compiled[minor](); err != nil {
		return fmt.Errorf("compile the schema of version %s: %w", versionString(minor), err)
	}
	return nil
}

// JSON gives the schema of a version as indented JSON. The error is a
// *[VersionError].
func (s *Set) JSON(version string) ([]byte, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return s.format.derive(minor)
}

// Validate gives what is wrong with a file according to the schema of a
// version, in the order of the file; nothing if it is valid. The version is
// the one that the file declares, or another to try the file against. One
// that [Check] refuses is the only problem then, at the file's schemaVersion.
//
// gojsonschema gives the verdict; the problems are found by a walk along the
// annotated source, which knows more about each place.
func (s *Set) Validate(version string, root *source.Value) []Problem {
	minor, err := minorOf(version)
	if err != nil {
		return []Problem{{Position: versionPosition(root), Path: "schemaVersion", Message: err.Error()}}
	}
	verdict, err := s.verdict(minor, root)
	if err != nil {
		return []Problem{{Position: position(root), Message: fmt.Sprintf("not validated at version %s: %v", versionString(minor), err)}}
	}
	if verdict.Valid() {
		return nil
	}
	if problems := s.explain(minor, root); len(problems) > 0 {
		return problems
	}
	return unexplained(verdict, root)
}

// verdict asks gojsonschema.
func (s *Set) verdict(minor int, root *source.Value) (*gojsonschema.Result, error) {
	schema, err := s.compiled[minor]()
	if err != nil {
		return nil, err
	}
	return schema.Validate(gojsonschema.NewRawLoader(plain(root)))
}

// unexplained passes on gojsonschema's own words, so that a refusal is never
// lost should the walk have found nothing. The tests show that it always
// finds something.
func unexplained(verdict *gojsonschema.Result, root *source.Value) []Problem {
	var problems []Problem
	for _, e := range verdict.Errors() {
		problems = append(problems, Problem{Position: position(root), Path: e.Field(), Message: e.Description()})
	}
	return problems
}

// position is a value's position; that of nothing is nowhere.
func position(v *source.Value) source.Position {
	if v == nil {
		return source.Position{}
	}
	return v.Position
}

func versionPosition(root *source.Value) source.Position {
	if v := root.Get("schemaVersion"); v != nil {
		return v.Position
	}
	return position(root)
}
