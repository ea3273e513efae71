package specs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

const head = `description: d
schemaVersion: "1.28"
createEntities:
  - client: { id: client0, observeEvents: [commandStartedEvent] }
  - database: { id: database0, client: client0, databaseName: db }
  - collection: { id: collection0, database: database0, collectionName: c }
  - session: { id: session0, client: client0 }
  - bucket: { id: bucket0, database: database0 }
  - thread: { id: thread0 }
`

func withOperations(list string) string {
	return head + "tests:\n  - description: t\n    operations: [" + strings.ReplaceAll(list, "\n", "\n      ") + "]\n"
}

// checked is a section of testdata/checks.txt: "-- rule: reason --", a file, "=>", and its problems. The
// file is written as the operations of one test, as the text after the head, or whole.
type checked struct{ rule, title, body, file string }

const checksFile = "testdata/checks.txt"

func checks(t testing.TB) (all []checked) {
	t.Helper()
	text := testkit.Read(t, checksFile)
	for _, section := range strings.Split("\n"+text, "\n-- ")[1:] {
		title, rest, _ := strings.Cut(section, " --\n")
		body, _, _ := strings.Cut(rest, "=>\n")
		c := checked{title: title, body: body, file: body}
		c.rule, _, _ = strings.Cut(title, ":")
		if strings.HasPrefix(body, "{") {
			c.file = withOperations(strings.TrimSuffix(body, "\n"))
		} else if !strings.HasPrefix(body, "description:") && !strings.HasPrefix(body, "[") {
			c.file = head + body
		}
		all = append(all, c)
	}
	return all
}

// Each rule has files that follow it and files that break it. Every problem is reported.
func TestChecks(t *testing.T) {
	kept, broken, all := map[string]bool{}, map[string]bool{}, ""
	for _, c := range checks(t) {
		s, err := specs.Parse("f.yml", []byte(c.file))
		var invalid *specs.InvalidError
		var problems []specs.Problem
		switch {
		case errors.As(err, &invalid):
			problems = invalid.Problems
		case err != nil:
			t.Errorf("%s: %v", c.title, err)
			continue
		default:
			problems = s.Warnings
		}
		var got []string
		for _, p := range problems {
			got = append(got, strings.TrimPrefix(p.String(), "f.yml:"))
		}
		if slices.ContainsFunc(problems, func(p specs.Problem) bool { return p.Rule == c.rule }) {
			broken[c.rule] = true
		} else {
			kept[c.rule] = true
		}
		all += fmt.Sprintf("-- %s --\n%s=>\n%s\n\n", c.title, c.body, strings.Join(got, "\n"))
	}
	for _, c := range specs.Checks() {
		if c.Doc == "" || !kept[c.Name] || !broken[c.Name] {
			t.Errorf("rule %s lacks a doc, a file that follows it, or one that breaks it", c.Name)
		}
	}
	testkit.Golden(t, checksFile, all)
}

// A test's Errors are its problems by the rules that make a test fail.
func TestFlaws(t *testing.T) {
	const good = `{name: find, object: collection0, arguments: {filter: {}}}`
	const flawed = `{name: bulkWrite, object: collection0, arguments: {requests: [{insertOne: {}}], writeConcern: {j: true}}}`
	const warned = `{name: wait, object: testRunner, arguments: {ms: 1}, expectError: {isError: true}}`
	s, err := specs.Parse("f.yml", []byte(head+"tests: ["+
		"{description: a, operations: ["+good+"]}, {description: b, operations: ["+good+", "+flawed+
		"]}, {description: c, operations: ["+warned+"]}]"))
	testkit.Check(t, err)
	for i, want := range [][]string{
		nil, // valid
		// in the order of the file
		{"operations[1].arguments.requests[0].insertOne", "operations[1].arguments.writeConcern.j"},
		nil, // fails only while it runs
	} {
		var got []string
		for _, p := range s.Tests[i].Errors {
			got = append(got, p.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("test %s has the flaws %q, want %q", s.Tests[i].Description, got, want)
		}
	}
	// An entity of the file is created for each test.
	s, err = specs.Parse("f.yml", []byte(strings.Replace(head, "id: session0", "id: session0, sessionOptions: {x: 1}", 1)+
		"tests: [{description: a, operations: ["+good+"]}, {description: b, operations: ["+warned+"]}]"))
	testkit.Check(t, err)
	for _, test := range s.Tests {
		if len(test.Errors) != 1 || test.Errors[0].Path != "createEntities[3].session.sessionOptions.x" {
			t.Errorf("test %s has the flaws %v", test.Description, test.Errors)
		}
	}
}

// Loading never panics, and every problem has a position and a message.
func FuzzParse(f *testing.F) {
	for i, c := range checks(f) {
		if i%9 == 0 { // a sample: TestChecks runs all
			f.Add([]byte(c.file))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := specs.Parse("f.yml", data)
		var problems []specs.Problem
		var invalid *specs.InvalidError
		switch {
		case err == nil:
			problems = s.Warnings
		case errors.As(err, &invalid):
			problems = invalid.Problems
			if len(problems) == 0 {
				t.Fatal("rejected without a problem")
			}
		default:
			t.Fatalf("another type of error: %T", err)
		}
		for _, p := range problems {
			if p.Position.Line < 1 || p.Position.Column < 1 || p.Message == "" || p.Rule == "" {
				t.Fatalf("problem without position or message: %#v", p)
			}
		}
	})
}
