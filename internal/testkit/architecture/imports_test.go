// Package architecture compares the project with docs/architecture.md and other pages.
package architecture

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

const module = "github.com/unified-test-runner/utr"

// A rule lists the packages of this module that a package may import. A trailing slash means everything below, a
// single slash everything.
type rules map[string][]string

// inWords returns the rules that the page has in words, and those of packages below the ones in its table.
func inWords() rules {
	return rules{
		"embedded":  {"embedded/", "internal/net/certificate", "internal/text/plural"},
		"embedded/": {"embedded/", "internal/net/relay", "internal/wire"},
		"program/internal/cli": {
			"adapters", "deployment", "deployment/lock", "deployment/orchestration", "docs/examples", "embedded",
			"runner/blackpipe",
			"engine", "engine/driver", "engine/enginetest", "engine/process", "internal/process/cache",
			"program/internal/compare",
			"program/internal/coverage", "program/internal/experiment", "program/internal/experiment/counter", "internal/process/ledger",
			"program/internal/night/matrix", "internal/text/suggest", "format/audit", "internal/process/official", "program/internal/otlp", "internal/text/plural",
			"internal/process/processgroup", "program/internal/prose",
			"program/internal/report", "internal/text/secret", "program/internal/site", "program/internal/scaffold", "reference", "reference/pinning",
			"reference/retry",
			"reference/selection", "result", "runner", "specs", "format/",
		},
		"program/internal/soak/": {"/"},
	}
}

// rulesOf parses the table of the page: a package, its description, its imports.
func rulesOf(t *testing.T, page string) rules {
	t.Helper()
	all, words := inWords(), []string{"everything below", "its own and `internal/wire`", "anything",
		"imports of ours", "---"}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		name, imports := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[3])
		if slices.Contains(words, imports) {
			continue
		}
		if _, twice := all[name]; twice {
			t.Errorf("%s has two rules", name)
		}
		all[name] = []string{}
		for _, i := range quoted.FindAllStringSubmatch(imports, -1) {
			all[name] = append(all[name], i[1])
		}
		if len(all[name]) == 0 && imports != "none" || !slices.IsSorted(all[name]) {
			t.Errorf("the imports of %s are %q: neither none nor a sorted list", name, imports)
		}
	}
	return all
}

// onlyTests are packages with only test files.
var onlyTests = []string{"program/internal/acceptance", "program/internal/acceptance/sweep", "internal/testkit/architecture", "program/internal/bench",
	"internal/testkit/clients", "internal/tools/release", "embedded/internal/replay"}

// Packages import what the page allows, and every row of the page has a package.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "../../../...").Output()
	testkit.Check(t, err)
	allowed := rulesOf(t, read(t, "docs/architecture.md"))
	seen, found := 0, map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := inside(fields[0])
		found[name] = true
		if slices.Contains(onlyTests, name) {
			continue
		}
		rule, known := allowed.of(name)
		testkit.Equal(t, "docs/architecture.md has a row for "+name, known, true)
		if !strings.HasPrefix(name, "internal/testkit") && slices.Contains(fields[1:], "testing") {
			t.Errorf("%s imports testing, which belongs to tests", name)
		}
		for _, i := range fields[1:] {
			if i == module || strings.HasPrefix(i, module+"/") {
				other := inside(i)
				seen++
				testkit.Equal(t, "docs/architecture.md allows that "+name+" imports "+other, matches(rule, other), true)
			}
		}
	}
	testkit.Equal(t, "30 imports or more", seen >= 30, true)
	for name, rule := range allowed {
		for _, n := range append(slices.Clone(rule), name) {
			testkit.Equal(t, n+" in docs/architecture.md exists", strings.HasSuffix(n, "/") || found[n], true)
		}
	}
}

// inside returns the name of a package of this module as the page has it.
func inside(path string) string {
	if path == module {
		return "utr"
	}
	return strings.TrimPrefix(path, module+"/")
}

// of returns the rule of a package, or of the nearest folder above it.
func (r rules) of(name string) ([]string, bool) {
	if rule, found := r[name]; found {
		return rule, true
	}
	for at := strings.LastIndex(name, "/"); at >= 0; at = strings.LastIndex(name[:at], "/") {
		if rule, found := r[name[:at+1]]; found {
			return rule, true
		}
	}
	return nil, false
}

func matches(rule []string, name string) bool {
	return slices.ContainsFunc(rule, func(r string) bool {
		return r == name || r == "/" || strings.HasSuffix(r, "/") && strings.HasPrefix(name, r)
	})
}

func TestImportsCanFail(t *testing.T) {
	allowed := rulesOf(t, read(t, "docs/architecture.md"))
	for _, row := range []struct {
		reason, from, to string
		want             bool
	}{
		{"the runner may use matchers", "runner", "matchers", true},
		{"the runner knows no engine", "runner", "reference", false},
		{"matchers know no suites", "matchers", "specs", false},
		{"a comparison knows two engines only by their interface", "compare", "engine/driver", false},
		{"reports run nothing", "report", "compare", false},
		{"the core decides without a clock or a server", "reference/retry", "reference/selection", false},
		{"commands of the embedded deployment stay inside", "embedded/internal/query", "engine", false},
		{"the store knows no command", "embedded/internal/store", "embedded/internal/commands", false},
		{"parts of it know each other", "embedded/internal/query", "embedded/internal/value", true},
		{"the soak may use everything", "program/internal/soak/suites", "format/audit", true},
		{"a package without a row may use nothing", "nowhere", "result", false},
	} {
		rule, _ := allowed.of(row.from)
		testkit.Equal(t, row.reason, matches(rule, row.to), row.want)
	}
}

// starts matches code for which tests need the race detector: goroutines and locks, but not a sync.Pool.
var starts = regexp.MustCompile(`(?m)^\s*go (func|\w+[.(])|\.Go\(|\bsync\.[^P]|t\.Parallel\(|"golang\.org/x/sync`)

// The packages that .ci/test runs without the race detector start no goroutines, even in tests.
func TestWithoutTheRaceDetector(t *testing.T) {
	list := regexp.MustCompile(`(?m)^single="(.*)"$`).FindStringSubmatch(read(t, ".ci/test"))
	if list == nil {
		t.Fatal(".ci/test has no list")
	}
	cmd := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, strings.Fields(list[1])...)...)
	cmd.Dir = testkit.Root(t)
	out, err := cmd.Output()
	testkit.Check(t, err)
	seen := 0
	for _, dir := range strings.Fields(string(out)) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		testkit.Check(t, err)
		seen += len(files)
		for _, name := range files {
			text := testkit.Read(t, name)
			if found := starts.FindString(text); found != "" {
				t.Errorf("%s has %q: .ci/test must run the package with the race detector", name, strings.TrimSpace(found))
			}
		}
	}
	testkit.Equal(t, "50 files or more", seen >= 50, true)
	for _, text := range []string{"\tgo func() {", "\tt.Parallel()", "\tgo serve(c)", "\tgo s.serve(c)",
		"\tworkers.Go(func() {", "\tmu sync.Mutex"} {
		testkit.Equal(t, text+" is found", starts.MatchString(text), true)
	}
	testkit.Equal(t, "a pool is found", starts.MatchString("var steps = sync.Pool{}"), false)
}
