package operations

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		kind   entities.Kind
		name   string
		found  bool
		result Shape
		reason string
	}{
		{entities.Collection, "find", true, RootDocuments, "iterated results are root-level"},
		{entities.Collection, "distinct", true, Value, "distinct returns values, not root-level documents"},
		{entities.Collection, "insertOne", true, RootDocument, "model objects become documents"},
		{entities.Collection, "createFindCursor", true, NewCursor, "creates an entity"},
		{entities.Bucket, "download", true, Value, "a string"},
		{entities.Cursor, "iterateOnce", true, RootDocument, "listed in the format"},
		{entities.TestRunner, "failPoint", true, nothing, "special operations return nothing"},
		{entities.Database, "find", false, 0, "only exists for another kind"},
		{entities.Collection, "Find", false, 0, "names are case-sensitive"},
		{"", "find", false, 0, "no kind"},
	} {
		got, found := Lookup(tt.kind, tt.name)
		if found != tt.found || got.Result != tt.result {
			t.Errorf("Lookup(%s, %s) = %v, %v: %s", tt.kind, tt.name, got.Result, found, tt.reason)
		}
	}
	if got := KindsWith("aggregate"); !slices.Equal(got, []entities.Kind{entities.Collection, entities.Database}) {
		t.Errorf("KindsWith(aggregate) = %v", got)
	}
	find, _ := Lookup(entities.Collection, "find")
	if _, ok := find.Argument("documents"); ok {
		t.Error("find has an argument documents")
	}
	if a, _ := find.Argument("filter"); !a.Required {
		t.Error("the filter of find is not required")
	}
}

func TestModels(t *testing.T) {
	for _, tt := range []struct {
		operation, argument, model, key string
		found, required                 bool
		reason                          string
	}{
		{"bulkWrite", "requests", "insertOne", "document", true, true, "required"},
		{"bulkWrite", "requests", "updateOne", "sort", true, false, "optional"},
		{"bulkWrite", "requests", "updateMany", "sort", false, false, "updates all, in any order"},
		{"bulkWrite", "requests", "deleteMany", "namespace", false, false, "the collection's namespace applies"},
		{"clientBulkWrite", "models", "deleteMany", "namespace", true, true, "a client has no namespace"},
	} {
		argument, models := Models(tt.operation)
		i := slices.IndexFunc(models, func(m Operation) bool { return m.Name == tt.model })
		if argument != tt.argument || i < 0 {
			t.Errorf("%s: %s has no model %s in %s", tt.reason, tt.operation, tt.model, tt.argument)
			continue
		}
		if a, found := models[i].Argument(tt.key); found != tt.found || a.Required != tt.required {
			t.Errorf("%s: %s.%s: %v, %v", tt.reason, tt.model, tt.key, found, a.Required)
		}
	}
	if argument, models := Models("insertMany"); argument != "" || models != nil {
		t.Error("insertMany has models")
	}
	for _, row := range All() {
		if argument, models := Models(row.Name); models != nil {
			if a, found := row.Argument(argument); !found || !a.Required {
				t.Errorf("%s.%s does not require %s", row.Kind, row.Name, argument)
			}
		}
	}
}

// A mistake in the list is an error with its line.
func TestMistakes(t *testing.T) {
	const head = "commands: { find: { class: read } }\nshared: { each: session }\noperations:\n  client:\n    find: "
	for _, tt := range []struct{ reason, list, want string }{
		{"no mistake", head + "{ command: find, span: own, section: x, arguments: +each filter! }", ""},
		{"an unknown field", head + "{ argument: x }", "line 5: field argument not found"},
		{"an unknown field of a command", "commands: { find: { clas: read } }", "line 1: field clas not found"},
		{"an operation that occurs twice", head + "{ section: x }\n    find: { section: x }",
			`line 6: mapping key "find" already defined at line 5`},
		{"an argument that occurs twice", head + "{ section: x, arguments: a +each session! }",
			"line 5: client.find: the argument session occurs twice"},
		{"an unknown command", head + "{ section: x, command: fnid }", `line 5: client.find: unknown command "fnid"`},
		{"an unknown row of the core", head + "{ section: x, core: fnid }", `line 5: client.find: unknown command "fnid"`},
		{"unknown shared arguments", head + "{ section: x, arguments: +all }", `line 5: client.find: unknown shared arguments "all"`},
		{"an unknown kind", "operations:\n  clients: {}", `line 2: unknown word "clients"`},
		{"an unknown effect", head + "{ changes: all }", `line 5: unknown word "all"`},
		{"an unknown shape", head + "{ returns: a list }", `line 5: unknown word "a list"`},
		{"an unknown class", "commands: { find: { class: reads } }", `line 1: unknown word "reads"`},
		{"unknown retries", "commands: { find: { class: read, retried: often } }", `line 1: unknown word "often"`},
		{"no section", head + "{ arguments: a }", "line 5: client.find has no section"},
		{"a span without a command", head + "{ section: x, span: own }", "line 5: client.find has no section, or a span"},
	} {
		_, err := parse([]byte(tt.list))
		if tt.want == "" {
			testkit.Check(t, err)
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.reason, err, tt.want)
		}
	}
}

// Names of what operations send: the row among the commands, the command, and the name of spans.
func TestNames(t *testing.T) {
	sent := Sent()
	for _, tt := range []struct{ operation, core, command, span string }{
		{"find", "find", "", "find"},
		{"findOne", "find", "find", "find"},
		{"deleteMany", "multi-document delete", "delete", "delete"},
		{"createCollection", "create", "create", "createCollection"},
		{"bulkWrite", "insert", "", "bulkWrite"},
		{"runCursorCommand", "runCommand", "", "runCursorCommand"},
		{"startTransaction", "startTransaction", "", "startTransaction"},
	} {
		testkit.Equal(t, tt.operation, [3]string{Core(tt.operation), sent[tt.operation], SpanName(tt.operation)},
			[3]string{tt.core, tt.command, tt.span})
	}
}

// markdown returns docs/suite/operations.md, with a section for each kind.
func markdown() string {
	var b strings.Builder
	b.WriteString("# Operations\n\n" +
		"This page lists every operation that a suite may use, by the kind of entity that it is performed on.\n" +
		"Required arguments are **bold**. A result that is a root-level document may have more fields than a suite\n" +
		"expects; a document inside a value may not. What an operation can change decides whether `utr run` recreates\n" +
		"initial data ([suites.md](suites.md)); a transaction changes what its operations change.\n" +
		"`go generate ./format/operations` writes this page.\n")
	var kind entities.Kind
	for _, o := range all() {
		if o.Kind != kind {
			kind = o.Kind
			fmt.Fprintf(&b, "\n## %s\n\n| operation | arguments | result | can change | specified in |\n|---|---|---|---|---|\n",
				kind)
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

// String names a shape in the documentation.
func (s Shape) String() string { return shapes[s] }

// names lists arguments, required ones in bold.
func names(arguments []Argument) string {
	out := make([]string, len(arguments))
	for i, a := range arguments {
		if out[i] = a.Name; a.Required {
			out[i] = "**" + a.Name + "**"
		}
	}
	return strings.Join(out, ", ")
}

// go generate ./format/operations writes the page.
func TestDocsAreFresh(t *testing.T) {
	testkit.Golden(t, filepath.Join("..", "..", "docs", "suite", "operations.md"), markdown())
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		Lookup(entities.Collection, "updateOne")
	}
}
