package specs

import (
	"slices"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

// FromValue makes a suite of a value that was parsed, or put together, by the
// caller. It judges its schemaVersion, the schema of that version,
// then what a schema cannot say. The error, if any, is an *InvalidError.
func FromValue(file string, root *source.Value) (*Suite, error) {
	version := root.Get("schemaVersion")
	bad := Problem{Position: root.Position, Rule: "schemaVersion"}
	switch {
	case root.Kind != source.Document:
		bad.Message = "a suite is a document, this is a value of type " + root.Kind.String()
		return nil, invalid(file, bad)
	case version == nil:
		bad.Message = "schemaVersion is missing; the newest that is known is " + schema.Newest
		return nil, invalid(file, bad)
	}
	bad.Position, bad.Path = version.Position, "schemaVersion"
	if version.Kind != source.String {
		bad.Message = "schemaVersion must be a string such as \"" + schema.Newest + "\", this is a value of type " + version.Kind.String()
		return nil, invalid(file, bad)
	}
	violations, err := schema.Validate(version.String, root)
	if err != nil { // "Test Runner Support"
		bad.Message = err.Error()
		return nil, invalid(file, bad)
	}
	var problems []Problem
	for _, p := range violations {
		problems = append(problems, Problem{Position: p.Position, Path: p.Path, Rule: "schema", Message: p.Message})
	}
	if len(problems) > 0 {
		return nil, &InvalidError{File: file, Problems: problems}
	}
	i := &inspection{}
	i.suite = i.decode(file, root)
	i.inspect()
	if slices.ContainsFunc(i.problems, func(p Problem) bool { return p.Severity == Error }) {
		return nil, &InvalidError{File: file, Problems: i.problems}
	}
	i.suite.Warnings = i.problems
	return i.suite, nil
}
