package specs

import (
	"slices"

	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/text/suggest"
)

// FromValue returns the suite in a parsed value. It checks schemaVersion, then the schema of that
// version, then what a schema cannot express. An error is an *InvalidError.
func FromValue(file string, root *source.Value) (*Suite, error) {
	version := root.Get("schemaVersion")
	refuse := func(v *source.Value, path, message string) (*Suite, error) {
		return nil, invalid(Problem{Position: v.Position, Path: path, Rule: "schemaVersion", Message: message})
	}
	switch {
	case root.Kind != source.Document:
		return refuse(root, "", "a suite must be a document, not a value of type "+root.Kind.String())
	case version == nil:
		for _, f := range root.Fields {
			if hint := suggest.Hint(f.Key, []string{"schemaVersion"}); hint != "" {
				return refuse(&source.Value{Position: f.KeyPosition}, f.Key, "unknown key"+hint)
			}
		}
		return refuse(root, "", "schemaVersion is missing; the newest supported version is "+schema.Newest)
	case version.Kind != source.String:
		return refuse(version, "schemaVersion", "schemaVersion must be a string such as \""+schema.Newest+
			"\", not a value of type "+version.Kind.String())
	}
	violations, err := schema.Validate(version.String, root)
	if err != nil { // "Test Runner Support"
		return refuse(version, "schemaVersion", err.Error())
	}
	if len(violations) > 0 {
		return nil, &InvalidError{Problems: bySchema(violations...)}
	}
	i := &inspection{}
	i.suite = i.decode(file, root)
	i.inspect()
	if slices.ContainsFunc(i.problems, func(p Problem) bool { return p.Severity == Error }) {
		return nil, &InvalidError{Problems: i.problems}
	}
	i.suite.Warnings = i.problems
	return i.suite, nil
}
