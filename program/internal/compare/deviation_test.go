package compare

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// goDriver is the name of the Go driver as an engine.
const goDriver = "driver"

// The page and the suites below specs/deviations are generated from the table: go generate ./program/internal/compare.
func TestDeviationsPage(t *testing.T) {
	testkit.Golden(t, "../../../docs/driver/deviations.md", Markdown())
}

// The suites of the table are the files of the folder, and its Go driver is the version in go.mod.
func TestDeviationsTable(t *testing.T) {
	suites := map[string]bool{}
	for _, d := range Deviations() {
		suites[d.Suite] = true
	}
	files, err := filepath.Glob("../../../specs/deviations/*")
	testkit.Check(t, err)
	for _, f := range files {
		if !suites[filepath.Base(f)] {
			t.Errorf("%s belongs to no deviation", f)
		}
	}
	mod := testkit.Read(t, "../../../go.mod")
	m := regexp.MustCompile(`go.mongodb.org/mongo-driver/v2 v(\S+)`).FindStringSubmatch(mod)
	if m == nil || !strings.HasSuffix(tested()[0].Driver, " "+m[1]) {
		t.Errorf("the table is about %s, go.mod requires %s", tested()[0].Driver, m)
	}
}

// A mistake in deviations.yml is an error with its line.
func TestMistakesInDeviations(t *testing.T) {
	const first = "  - { id: D1, title: x, section: y, "
	sample := Schedule{Operation: "find", Faults: []Fault{{Code: 6}}}
	for _, tt := range []struct{ reason, rows, want string }{
		{"no mistake", first + "schedule: { calls: [ find ], fault: { code: 6 } } }", ""},
		{"an unknown field", first + "schedul: { calls: [ find ] } }", "line 3: field schedul not found"},
		{"an unknown field of the example", first + "example: { operatoin: find } }", "line 3: field operatoin not found"},
		{"a field that occurs twice", first + "title: z }", `line 3: mapping key "title" already defined at line 3`},
		{"a condition that occurs twice", first + "schedule: { alone: true,\n      alone: true } }",
			"line 4: mapping key \"alone\" already defined at line 3"},
		{"an unknown condition", first + "schedule:\n      { call: [ find ] } }", "line 4: unknown condition \"call\". Known: alone, "},
		{"an unknown condition below another", first + "schedule: { any: [ { alone: true },\n      { sest: timeoutMS } ] } }",
			"line 4: unknown condition \"sest\""},
		{"an unknown condition of a fault", first + "schedule: { fault: { label: x } } }", "line 3: unknown condition \"label\". Known: blocks"},
		{"an argument of another type", first + "schedule: { alone: [ ] } }", "line 3: cannot construct"},
		{"no argument", first + "schedule: { left: } }", "line 3: the condition has no argument"},
		{"no condition", first + "schedule: {} }", "line 3: a condition must have a name"},
		{"an unknown operation", first + "schedule: { calls: [ fnid ] } }", "line 3: unknown operation \"fnid\""},
		{"an unknown topology", first + "schedule: { topology: set } }", "line 3: unknown topology \"set\""},
		{"an unknown option", first + "schedule: { sets: retryRead } }", "line 3: unknown option \"retryRead\""},
		{"an unknown aspect", first + "schedule: { only: outcomes } }", "line 3: unknown aspect \"outcomes\""},
		{"an unknown comparison", first + "schedule: { events: long } }", "line 3: unknown comparison \"long\""},
		{"an incorrect regular expression", first + "schedule: { left: '(' } }", "line 3: error parsing regexp"},
		{"an unknown engine", first + "engines: [ jav ], test: { alone: true } }", "line 3: D1: unknown engine \"jav\""},
		{"a place in the code of another engine", first + "suite: x.yml, engines: [], example: { operation: find }, " +
			"code: { driver: main }, test: { alone: true } }", "line 3: D1 has code of driver, which does not differ"},
		{"no section", "  - { id: D1, title: x, test: { alone: true } }", "line 3: D1 has no title or no section"},
		{"it explains nothing", first + "}", "line 3: D1 explains nothing"},
		{"a suite without an example", first + "suite: x.yml, test: { alone: true } }", "line 3: D1 has only one of suite and example"},
		{"an id that occurs twice", first + "test: { alone: true } }\n" + first + "test: { alone: true } }",
			"line 4: the id is \"D1\", not D2"},
		{"a suite that occurs twice", first + "suite: x.yml, example: { operation: find }, test: { alone: true } }\n" +
			strings.Replace(first, "D1", "D2", 1) + "suite: x.yml, example: { operation: find }, test: { alone: true } }",
			"line 4: another deviation has the suite x.yml"},
	} {
		table, err := parseDeviations([]byte("engines: [ { name: driver, driver: Go 1 } ]\ndeviations:\n" + tt.rows))
		if tt.want == "" {
			testkit.Check(t, err)
			testkit.Equal(t, tt.reason, table.deviations[0].Schedule(shown{Schedule: sample}), true)
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.reason, err, tt.want)
		}
	}
}

// list is the list of known failures of an engine.
func list(engine string) string {
	if engine == goDriver {
		return "engine/driver/known-failing.txt"
	}
	return "adapters/" + engine + "/known-failing.txt"
}

// A list of known failures calls a driver's difference permitted if the table does.
func TestDeviationsAreKnown(t *testing.T) {
	permitted, seen := regexp.MustCompile(`^(since .*: |until .*: )?(sometimes: )?permitted: `), 0
	for _, of := range tested() {
		name := list(of.Name)
		text := testkit.Read(t, filepath.Join(testkit.Root(t), name))
		for _, d := range Deviations() {
			if d.Suite == "" || !d.of(of.Name) {
				continue
			}
			line := regexp.MustCompile(`(?m)^\(\^\|/\)deviations/.*\b` + d.Name() + `\b.*# (.*)$`).FindStringSubmatch(text)
			if line == nil {
				continue // another schedule shows the difference
			}
			seen++
			testkit.Equal(t, d.ID+" is permitted in "+name, permitted.MatchString(line[1]), d.Permitted)
		}
	}
	testkit.Equal(t, "20 lines or more", seen >= 20, true)
}

// compared runs one schedule through both sides.
func compared(t *testing.T, s Schedule, left, right Side) Pair {
	t.Helper()
	found, err := runSchedules(t.Context(), []Schedule{s}, left, right, true)
	testkit.Check(t, err)
	return found[0]
}

// The suite of each deviation is generated from its schedule. The reference passes it.
// The Go driver fails it if it deviates, and the table explains the differences.
func TestDeviationSuites(t *testing.T) {
	left, right := referenceSide(t, ""), newSide(t, "driver", driver.New())
	for _, d := range Deviations() {
		if d.Suite == "" {
			continue
		}
		t.Run(d.ID, func(t *testing.T) {
			p := compared(t, d.Example, left, right)
			differs := d.of(goDriver)
			if (len(p.Differences) > 0) != differs || differs && (p.Deviation == nil || p.Deviation.ID != d.ID) {
				t.Fatalf("explained by %v: %s", p.Deviation, p.Describe("reference", "driver"))
			}
			text, err := p.Suite(d.Example, "Generated by go generate ./compare. DO NOT EDIT.", d.ID+": the driver "+d.Title+".",
				d.Section+".")
			testkit.Check(t, err)
			path := filepath.Join("..", "..", "..", "specs", "deviations", d.Suite)
			testkit.Golden(t, path, text)
			suite, err := specs.Parse(path, []byte(text))
			testkit.Check(t, err)
			testkit.Equal(t, "the reference", left.of(t, suite).Status, result.Passed)
			testkit.Equal(t, "the driver", right.of(t, suite).Status, testkit.Either(differs, result.Failed, result.Passed))
		})
	} // D16 also occurs in other operations.
	codeAlone := []Fault{{}, {Code: 89, Labels: []string{"TransientTransactionError"}}}
	for topology, want := range map[string]string{"load-balanced": "D16", "replicaset": ""} {
		p := compared(t, Schedule{Operation: "withTransaction", Topology: topology, Faults: codeAlone}, left, right)
		if same := len(p.Differences) == 0; same != (want == "") || !same && (p.Deviation == nil || p.Deviation.ID != want) {
			t.Errorf("%s: explained by %v: %s", topology, p.Deviation, p.Describe("reference", "driver"))
		}
	}
}

// Deviations explain only their own differences.
func TestExplanations(t *testing.T) {
	testkit.PlayStories(t, "testdata/explanations.txt", func(t *testing.T, s testkit.Story) string {
		of, engines := lines(s), [2]string{"reference", "driver"}
		text := func(side string) string { return strings.ReplaceAll(of[side], "; ", "\n") }
		if named := strings.Fields(of["engines"]); len(named) == 2 {
			engines = [2]string(named)
		}
		aspect := "events"
		if of[aspect] == "" {
			aspect = "operation"
		}
		deployment, words, _ := strings.Cut(of[aspect], " ")
		var schedule Schedule
		testkit.Check(t, json.Unmarshal([]byte(words), &schedule))
		var by []string
		d := []Difference{{aspect, "", text("left"), text("right")}}
		if found := ofSchedule(engines, schedule, d); found != nil {
			by = append(by, "schedule "+found.ID)
		}
		if found := ofTest(engines, result.TestID{Deployment: deployment + " 8.0"}, d); found != nil {
			by = append(by, "suite "+found.ID)
		}
		if by == nil {
			by = []string{"unexplained"}
		}
		return retold(s, by...)
	})
}

// The tested versions are the newest ones of adapters/engines.yml.
func TestTestedVersions(t *testing.T) {
	name := filepath.Join(testkit.Root(t), "adapters", "engines.yml")
	adapters, err := matrix.ParseAdapters(name, []byte(testkit.Read(t, name)), func(string) string { return "x" }, nil)
	testkit.Check(t, err)
	for _, of := range tested() {
		for _, a := range adapters {
			if a.Name == of.Name && len(a.Versions) > 0 {
				testkit.Equal(t, "the newest version of "+a.Name, a.Versions[0], of.Driver[strings.LastIndex(of.Driver, " ")+1:])
			}
		}
	}
}
