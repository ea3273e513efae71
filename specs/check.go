package specs

import (
	"errors"
	"slices"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/schema"
)

// FromValue makes a suite of a value that was parsed, or put together, by the
// caller. It judges its schemaVersion, the schema of that version,
// then what a schema cannot say. The error, if any, is an *InvalidError.
func FromValue(file string, root *source.Value) (*Suite, error) {
	version, problem := schemaVersion(root)
	if problem != nil {
		return nil, &InvalidError{File: file, Problems: []Problem{*problem}}
	}
	var problems []Problem
	for _, p := range schema.Validate(version, root) {
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

// schemaVersion gives the version that a file declares, if it can be
// validated against ("Test Runner Support").
func schemaVersion(root *source.Value) (string, *Problem) {
	bad := func(v *source.Value, path, message string) (string, *Problem) {
		return "", &Problem{Position: v.Position, Path: path, Rule: "schemaVersion", Message: message}
	}
	if root.Kind != source.Document {
		return bad(root, "", "a suite is a document, this is a value of type "+root.Kind.String())
	}
	v := root.Get("schemaVersion")
	switch {
	case v == nil:
		return bad(root, "", "schemaVersion is missing; the newest that is known is "+schema.Newest)
	case v.Kind != source.String:
		return bad(v, "schemaVersion", "schemaVersion must be a string such as \""+schema.Newest+"\", this is a value of type "+v.Kind.String())
	}
	if err := schema.Check(v.String); err != nil {
		message := err.Error()
		var versionError *schema.VersionError
		if errors.As(err, &versionError) && versionError.Malformed {
			message += "; " + schema.Newest + " is the newest that is known"
		}
		return bad(v, "schemaVersion", message)
	}
	return v.String, nil
}
