package operations

import (
	"fmt"
	"strings"
)

// String names a shape in a person's words.
func (s Shape) String() string {
	return [...]string{"nothing", "a value", "a root-level document", "root-level documents", "a cursor", "a collection"}[s]
}

// String names an effect in a person's words.
func (e Effect) String() string { return [...]string{"anything", "nothing", "documents"}[e] }

// Markdown renders the table, a section for each kind: the text of
// docs/operations.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Operations\n\n" +
		"This page lists every operation that a suite may use, by the kind of entity that it is performed on.\n" +
		"Required arguments are **bold**. A result that is a root-level document may have more fields than a suite\n" +
		"expects; a document inside a value may not. What an operation can change decides whether `utr run` recreates\n" +
		"initial data ([suites.md](suites.md)); a transaction changes what its operations change.\n" +
		"`go generate ./specs/operations` writes this page.\n")
	var kind Kind
	for _, o := range all() {
		if o.Kind != kind {
			kind = o.Kind
			fmt.Fprintf(&b, "\n## %s\n\n| operation | arguments | result | can change | specified in |\n|---|---|---|---|---|\n", kind)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Name, names(o.Arguments), o.Result, o.Effect, o.Section)
	}
	b.WriteString("\n## write models\n\n| model | keys |\n|---|---|\n")
	_, models := Models("bulkWrite")
	for _, m := range models {
		fmt.Fprintf(&b, "| %s | %s |\n", m.Name, names(m.Arguments))
	}
	b.WriteString("\nModels of clientBulkWrite also have **namespace**.\n")
	return b.String()
}

// names lists arguments, those that are required in bold.
func names(arguments []Argument) string {
	out := make([]string, len(arguments))
	for i, a := range arguments {
		if out[i] = a.Name; a.Required {
			out[i] = "**" + a.Name + "**"
		}
	}
	return strings.Join(out, ", ")
}
