package coverage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/coverage"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// The transcripts of program/internal/cli cover the text of the other subjects.

func suite(t *testing.T, code string) []*specs.Suite {
	t.Helper()
	s, err := specs.Parse("a.yml", []byte(`{description: d, schemaVersion: "1.0", tests: [{description: a, operations: [
		{name: find, object: c, arguments: {filter: {}}, expectError: {errorCode: `+code+`}}]}]}`))
	testkit.Check(t, err)
	return []*specs.Suite{s}
}

func decided(rules ...string) *result.Verdict {
	log := result.OperationLog{Outcome: result.Outcome{Decisions: []result.Decision{{Rules: rules}}}}
	return &result.Verdict{Evidence: result.Evidence{Operations: []result.OperationLog{log, log}}}
}

func TestRules(t *testing.T) {
	count := coverage.Of(suite(t, "20"))
	testkit.Equal(t, "a run without decisions", count.Rules([]*result.Verdict{{}}), false)
	testkit.Equal(t, "a run with decisions",
		count.Rules([]*result.Verdict{decided("R10", "R2"), decided("R2"), decided("T99")}), true)
	var rows []string
	for _, s := range coverage.Sections(count, nil) {
		for _, r := range s.Rows {
			if s.Subject == "retry rules" && (r.Tests > 0 || r.Name == "R1") {
				rows = append(rows, fmt.Sprintf("%s %d %v %s", r.Name, r.Tests, r.About != "", r.Kind()))
			}
		}
	}
	testkit.Equal(t, "rules by the number of tests", strings.Join(rows, "; "),
		"R1 0 true never; R2 2 true ; R10 1 true ; T99 1 false ")
}

func TestHTML(t *testing.T) {
	sections := coverage.Sections(coverage.Of(suite(t, "20")), coverage.Of(suite(t, "91")))
	var b strings.Builder
	testkit.Check(t, coverage.HTML(&b, sections, "<mine>", "theirs"))
	page := b.String()
	for reason, want := range map[string]string{
		"names are escaped":       "<h1>Coverage of &lt;mine&gt;</h1>",
		"a row of one side":       `<tr class="only here"><td>20</td><td class="number">1</td><td class="number">0</td><td>only here</td></tr>`,
		"a row of the other side": `<tr class="only there"><td>91 <span class="faint">a retryable read error</span></td><td class="number">0</td><td class="number">1</td><td>only there</td></tr>`,
		"a row of neither":        `<tr class="never"><td>10107 <span class="faint">a retryable read error</span></td>`,
		"the count of a subject":  `<a href="#error-codes">error codes</a>: 1 of 14`,
		"the target of a link":    `<h2 id="error-codes">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %s\n%s", reason, want, page)
		}
	}
}

// Spans are counted by what they are of. Documents of tests may have attributes, too.
func TestSpans(t *testing.T) {
	s, err := specs.Parse("a.yml", []byte(`{description: d, schemaVersion: "1.27",
		createEntities: [{client: {id: c, observeTracingMessages: {}}}, {database: {id: db, client: c, databaseName: db}},
			{collection: {id: coll, database: db, collectionName: coll}}],
		tests: [{description: a, operations: [{name: insertOne, object: coll, arguments: {document: {name: x, attributes: {y: 1}}}}],
			expectTracingMessages: [{client: c, spans: [{name: transaction, attributes: {}, nested: [
				{name: insert db.coll, attributes: {db.operation.name: insert}, nested: [
					{name: insert, attributes: {db.command.name: insert}}, {name: insert, attributes: {db.command.name: insert}}]}]}]}]}]}`))
	testkit.Check(t, err)
	testkit.Equal(t, "problems of the suite", fmt.Sprint(s.Tests[0].Errors), "[]")
	testkit.Equal(t, "spans", fmt.Sprint(s.Traits(0).Spans), "[command insert operation insert transaction]")
	var rows []string
	for _, section := range coverage.Sections(coverage.Of([]*specs.Suite{s}), nil) {
		for _, r := range section.Rows {
			if section.Subject == "spans" && (r.Tests > 0 || r.Name == "operation find") {
				rows = append(rows, fmt.Sprintf("%s %d", r.Name, r.Tests))
			}
		}
	}
	testkit.Equal(t, "rows", strings.Join(rows, "; "),
		"command insert 1; operation find 0; operation insert 1; transaction 1")
}
