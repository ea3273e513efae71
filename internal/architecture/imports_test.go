// Package architecture holds the project's shape to what docs/architecture.md
// says of it.
package architecture

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/unified-test-runner/utr/"

// allowed says which packages of ours each package may import. A trailing
// slash stands for everything below. An arrow that is not here is a reason to
// stop and think.
var allowed = map[string][]string{
	"cmd/utr":                       {"internal/cli"},
	"compare":                       {"result", "runner", "source", "specs"},
	"deployment":                    {"deployment/local", "deployment/orchestration", "embedded", "internal/ledger", "internal/wire42"},
	"deployment/orchestration":      {},
	"deployment/orchestration/twin": {"embedded"},
	"deployment/local":              {"internal/ledger", "internal/relay", "internal/wire42"},
	"embedded":                      {"embedded/"},
	"embedded/":                     {"embedded/", "internal/relay"},
	"engine":                        {"result"},
	"engine/driver":                 {"engine", "engine/enginekit", "internal/farewell", "result", "specs/operations"},
	"engine/enginekit":              {"engine", "result", "specs/operations"},
	"engine/enginetest":             {"engine", "result"},
	"entities":                      {"specs", "result"},
	"experiment":                    {"reference/retry"},
	"internal/cli":                  {"compare", "deployment", "deployment/orchestration", "embedded", "embedded/process", "engine", "engine/driver", "experiment", "internal/ledger", "internal/meant", "matrix", "reference", "reference/retry", "report", "result", "runner", "source", "specs", "specs/"},
	"internal/farewell":             {},
	"internal/ledger":               {},
	"internal/meant":                {},
	"internal/mutants":              {"source"},
	"internal/oracle":               {"internal/testkit", "source"},
	"internal/relay":                {},
	"internal/shared":               {},
	"internal/testkit":              {},
	"internal/testkit/utrtest":      {"internal/ledger", "internal/testkit"},
	"internal/testkit/bench":        {"deployment", "engine", "internal/testkit", "reference", "result", "runner", "specs"},
	"internal/mutate":               {},
	"internal/support":              {"engine/driver", "reference", "specs/operations"},
	"internal/support/":             {"internal/support"},
	"internal/wire42":               {},
	"matchers":                      {"result", "source"},
	"matrix":                        {"internal/meant", "source"},
	"reference":                     {"engine", "engine/enginekit", "internal/farewell", "internal/wire42", "reference/retry", "reference/selection", "result", "specs/operations"},
	"reference/retry":               {"result"},
	"reference/selection":           {},
	"report":                        {"result", "source"},
	"result":                        {"source"},
	"runner":                        {"deployment", "engine", "entities", "internal/wire42", "matchers", "result", "source", "specs", "specs/operations"},
	"source":                        {},
	"specs":                         {"source", "specs/operations", "specs/schema"},
	"specs/internal/":               {"source", "specs/"},
	"specs/operations":              {},
	"specs/operations/internal/":    {"specs/operations"},
	"specs/schema":                  {"source"},
}

// onlyTests are packages without an importable file: benchmarks, acceptance.
var onlyTests = []string{"internal/acceptance", "internal/architecture", "internal/bench", "internal/clients", "embedded/replay"}

func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "../../...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module)
		if slices.Contains(onlyTests, name) || strings.HasPrefix(name, "soak/") {
			continue
		}
		rule, found := ruleOf(name)
		if !found {
			t.Errorf("%s is not in the table of imports", name)
			continue
		}
		for _, i := range fields[1:] {
			other, ours := strings.CutPrefix(i, module)
			if ours {
				seen++
				if !matches(rule, other) {
					t.Errorf("%s imports %s, which the table does not allow", name, other)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d imports were looked at: the check does not see the project", seen)
	}
}

// ruleOf finds the row of a package: its own, or that of the nearest folder.
func ruleOf(name string) ([]string, bool) {
	if rule, found := allowed[name]; found {
		return rule, true
	}
	for at := strings.LastIndex(name, "/"); at >= 0; at = strings.LastIndex(name[:at], "/") {
		if rule, found := allowed[name[:at+1]]; found {
			return rule, true
		}
	}
	return nil, false
}

func matches(rule []string, name string) bool {
	return slices.ContainsFunc(rule, func(r string) bool {
		return r == name || strings.HasSuffix(r, "/") && strings.HasPrefix(name, r)
	})
}

// The rule of the table can be broken.
func TestImportsCanFail(t *testing.T) {
	for _, row := range []struct {
		reason, from, to string
		want             bool
	}{
		{"the runner may use matchers", "runner", "matchers", true},
		{"the runner knows no engine", "runner", "reference", false},
		{"matchers know no suites", "matchers", "specs", false},
		{"a comparison knows two engines by their interface alone", "compare", "engine/driver", false},
		{"reports run nothing", "report", "compare", false},
		{"commands of the embedded deployment stay inside", "embedded/data/query", "engine", false},
		{"parts of it know each other", "embedded/data/query", "embedded/data/value", true},
	} {
		rule, found := ruleOf(row.from)
		if !found || matches(rule, row.to) != row.want {
			t.Errorf("%s: got %t", row.reason, !row.want)
		}
	}
}

// column are the words that stand for imports in the page's table.
var column = map[string]string{"internal/cli": "everything below", "embedded": "its own"}

// Every package is described on the page, with what it may import.
func TestArchitecturePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for _, line := range strings.Split(string(page), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[3])
		}
	}
	for name, rule := range allowed {
		if strings.HasSuffix(name, "/") {
			continue
		}
		want, inWords := column[name]
		switch {
		case inWords:
		case len(rule) == 0:
			want = "none"
		default:
			want = "`" + strings.Join(slices.Sorted(slices.Values(rule)), "`, `") + "`"
		}
		if got, found := rows[name]; !found || got != want {
			t.Errorf("docs/architecture.md: the row of %s says %q, the table of imports %q", name, got, want)
		}
	}
}
