package runner

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

func parse(t testing.TB, text string) *specs.Suite { t.Helper(); return parseFile(t, "a.yml", text) }

func parseFile(t testing.TB, name, text string) *specs.Suite {
	t.Helper()
	s, err := specs.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func patterns(list ...string) (out []*regexp.Regexp) {
	for _, p := range list {
		out = append(out, regexp.MustCompile(p))
	}
	return out
}

const choices = `
description: choices
schemaVersion: "1.4"
tests:
  - {description: anywhere, operations: []}
  - {description: sharded, runOnRequirements: [{topologies: [sharded]}], operations: []}
  - {description: with auth, runOnRequirements: [{topologies: [replicaset], auth: true}], operations: []}
  - {description: nowhere, runOnRequirements: [{minServerVersion: "99.0"}], operations: []}
`

func TestChoose(t *testing.T) {
	offers := []deployment.Description{
		{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: [3]int{8}},
		{Name: "replicaset 8.0 auth", Topology: deployment.ReplicaSet, Version: [3]int{8}, Auth: true},
		{Name: "sharded 8.0", Topology: deployment.Sharded, Version: [3]int{8}},
	}
	for _, row := range []struct {
		reason string
		cfg    Config
		want   []string
	}{
		{"each test runs on the first offer that will do", Config{}, []string{
			"anywhere on replicaset 8.0", "sharded on sharded 8.0", "with auth on replicaset 8.0 auth",
			"nowhere: needs server 99.0 or later, the deployment has 8.0"}},
		{"all topologies: on one offer of each that will do, and skipped on the others", Config{AllTopologies: true}, []string{
			"anywhere on replicaset 8.0",
			"sharded on replicaset 8.0: needs topology sharded, the deployment has replicaset",
			"nowhere on replicaset 8.0: needs server 99.0 or later, the deployment has 8.0",
			"with auth on replicaset 8.0 auth",
			"anywhere on sharded 8.0", "sharded on sharded 8.0",
			"with auth on sharded 8.0: needs topology replicaset, the deployment has sharded; " +
				"and needs authentication enabled, the deployment has authentication disabled",
			"nowhere on sharded 8.0: needs server 99.0 or later, the deployment has 8.0"}},
		{"a run pattern chooses, a skip pattern leaves out", Config{Filter: Filter{Run: patterns("^a.yml: .*w"), Skip: patterns("nowhere$")}}, []string{
			"anywhere on replicaset 8.0", "sharded: not chosen by a run pattern", "with auth on replicaset 8.0 auth",
			`nowhere: left out by the skip pattern "nowhere$"`}},
		{"count repeats", Config{Count: 2, Filter: Filter{Skip: patterns("where|auth")}}, []string{
			`anywhere: left out by the skip pattern "where|auth"`, "sharded on sharded 8.0",
			`with auth: left out by the skip pattern "where|auth"`, `nowhere: left out by the skip pattern "where|auth"`,
			`anywhere: left out by the skip pattern "where|auth"`, "sharded on sharded 8.0",
			`with auth: left out by the skip pattern "where|auth"`, `nowhere: left out by the skip pattern "where|auth"`}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var got []string
			for _, j := range choose([]*specs.Suite{parse(t, choices)}, &row.cfg, offers, engine.Description{}) {
				line := j.id.Description
				if j.id.Deployment != "" {
					line += " on " + j.id.Deployment
				}
				if j.skip != nil {
					line += ": " + j.skip.reason
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestShuffleIsAPermutationByItsSeed(t *testing.T) {
	order := func(seed *int64) (ids []string) {
		cfg := Config{Shuffle: seed, Count: 10}
		for _, j := range choose([]*specs.Suite{parse(t, choices)}, &cfg, []deployment.Description{{Topology: deployment.Single}}, engine.Description{}) {
			ids = append(ids, fmt.Sprint(j.id.Description, j.id.Iteration))
		}
		return ids
	}
	one, two := int64(1), int64(2)
	plain, shuffled := order(nil), order(&one)
	if !slices.Equal(shuffled, order(&one)) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(shuffled, order(&two)) || slices.Equal(shuffled, plain) {
		t.Error("two seeds give one order")
	}
	slices.Sort(plain)
	slices.Sort(shuffled)
	if !slices.Equal(plain, shuffled) {
		t.Error("shuffling loses tests")
	}
}

// A pattern that matches nothing is a problem of the run, and so is a filter
// that leaves nothing.
func TestUnused(t *testing.T) {
	suites := []*specs.Suite{{File: "specs/a.yml", Tests: []*specs.Test{{Description: "first"}, {Description: "second"}}}}
	at := source.Position{File: "k", Line: 3, Column: 1}
	for _, r := range []struct {
		reason    string
		run, skip []*regexp.Regexp
		known     []KnownFailure
		want      []string
	}{
		{"no filter", nil, nil, nil, nil},
		{"one is left", patterns("first"), patterns("second"), nil, nil},
		{"what is chosen is left out", patterns("first"), patterns("first"), nil, []string{"the run and skip patterns leave no test to run"}},
		{"all is left out", nil, patterns("."), nil, []string{"the run and skip patterns leave no test to run"}},
		{"a pattern that matches nothing says enough", patterns("third"), nil, nil, []string{`the run pattern "third" matches no test`}},
		{"one of each, beside others that match", patterns("first", "gone"), patterns("went", "second"),
			[]KnownFailure{{Pattern: patterns("left")[0], Position: at}, {Pattern: patterns("first")[0]}}, []string{
				`the run pattern "gone" matches no test`, `the skip pattern "went" matches no test`, `k:3:1: the known failure "left" matches no test`}},
	} {
		got := Unused(suites, Config{Filter: Filter{Run: r.run, Skip: r.skip}, KnownFailing: r.known})
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.reason, diff)
		}
	}
}

func TestLacking(t *testing.T) {
	s := parse(t, `
description: lacking
schemaVersion: "1.13"
createEntities:
  - client: {id: client0}
  - database: {id: database0, client: client0, databaseName: db}
  - collection: {id: collection0, database: database0, collectionName: coll}
  - session: {id: session0, client: client0}
tests:
  - description: find
    operations: [{name: find, object: collection0, arguments: {filter: {}}}]
  - description: unknown
    operations: [{name: fnid, object: collection0, arguments: {filter: {}}}, {name: find, object: collection9}]
  - description: nested
    operations:
      - {name: withTransaction, object: session0, arguments: {callback: [{name: insertOne, object: collection0, arguments: {document: {}}}]}}
  - description: cursor
    operations:
      - {name: createFindCursor, object: collection0, arguments: {filter: {}}, saveResultAsEntity: cursor0}
      - {name: iterateOnce, object: cursor0}
  - description: logs
    operations: []
    expectLogMessages: [{client: client0, messages: []}]
`)
	about := engine.Description{SchemaVersion: "1.13", Operations: []string{"collection.find", "collection.createFindCursor", "session.withTransaction"}}
	want := map[string]string{
		"find":    "",
		"unknown": "", // the test runs, and fails
		"nested":  "the engine does not serve collection.insertOne",
		"cursor":  "the engine does not serve cursor.iterateOnce",
		"logs":    "the engine does not give log messages",
	}
	got := make(map[string]string)
	for _, test := range s.Tests {
		got[test.Description] = lacking(s, test, about)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	about.SchemaVersion = "1.12"
	if got := lacking(s, s.Tests[0], about); got != "the file declares schemaVersion 1.13, the engine serves up to 1.12" {
		t.Errorf("a newer file gives %q", got)
	}
}

func TestDropPlan(t *testing.T) {
	s := parse(t, `
description: d
schemaVersion: "1.0"
initialData: [{databaseName: db, collectionName: b, documents: []}, {databaseName: db, collectionName: a, documents: []}]
tests: [{description: t, operations: []}]
`)
	if got := DropPlan([]*specs.Suite{s, s}); !slices.Equal(got, []string{"db.a", "db.b"}) {
		t.Errorf("%q: collections are named once, and sorted", got)
	}
}

func TestFailPoints(t *testing.T) {
	set := func(name, operation string) string {
		return `{name: ` + operation + `, object: testRunner, arguments: {client: c, session: s, failPoint: {configureFailPoint: ` + name + `, mode: alwaysOn}}}`
	}
	for _, r := range []struct {
		reason, operations string
		want               []string
	}{
		{"none", `{name: find, object: c, arguments: {filter: {}}}`, nil},
		{"on the server of a session", set("hangBefore", "targetedFailPoint"), []string{"hangBefore"}},
		{"twice, and another", set("b", "failPoint") + ", " + set("a", "failPoint") + ", " + set("b", "failPoint"), []string{"a", "b"}},
		{"in a thread", `{name: runOnThread, object: testRunner, arguments: {thread: t, operation: ` + set("a", "failPoint") + `}}`, []string{"a"}},
		{"a document of an operation that looks like one", `{name: insertOne, object: c, arguments: {failPoint: {configureFailPoint: a}}}`, nil},
	} {
		suite := parse(t, "description: x\nschemaVersion: \"1.0\"\ntests:\n  - {description: a, operations: ["+r.operations+"]}\n")
		if got := FailPoints([]*specs.Suite{suite, suite}); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

// A configuration that cannot be run is refused before anything is touched.
func TestBadConfig(t *testing.T) {
	for reason, cfg := range map[string]Config{
		"neither engine nor source": {}, "no source": {Engine: &fakeEngine{}}, "no engine": {Source: &fakeSource{}},
		"a source without deployments": {Engine: &fakeEngine{}, Source: &fakeSource{}},
	} {
		if summary, err := Run(context.Background(), nil, cfg); err == nil {
			t.Errorf("%s: %+v", reason, summary)
		}
	}
}

// The version of the Stable API that a run declares is for clients that declare
// none, and the suite's own values stay as they are.
func TestDeclaredAPI(t *testing.T) {
	for _, r := range []struct{ reason, client, api, want string }{
		{"the run declares no version", `{id: c}`, "", ""},
		{"the run declares a version", `{id: c}`, "1", "1"},
		{"the client's own version takes precedence", `{id: c, serverApi: {version: "2"}}`, "1", "2"},
	} {
		client, err := source.ParseYAML("f", []byte(r.client))
		if err != nil {
			t.Fatal(err)
		}
		fields := len(client.Fields)
		test := &testRun{run: &run{cfg: Config{ServerAPI: r.api}}}
		if got := textOf(test.declared(client).Get("serverApi").Get("version")); got != r.want || len(client.Fields) != fields {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}

func TestAttemptsTogether(t *testing.T) {
	const passed, failed, broken, known = result.Passed, result.Failed, result.Broken, result.KnownFailing
	for _, r := range []struct {
		reason   string
		attempts []result.Status
		want     result.Status
	}{
		{"one attempt is what it is", []result.Status{failed}, failed},
		{"a pass after a failure is not a pass", []result.Status{failed, passed}, result.Flaky},
		{"nor is one after several", []result.Status{failed, broken, passed}, result.Flaky},
		{"all attempts fail", []result.Status{failed, failed}, failed},
		{"the last one counts among bad ones", []result.Status{failed, broken}, broken},
		{"a known failure is not a pass", []result.Status{broken, known}, known},
	} {
		var attempts []*result.Verdict
		for i, s := range r.attempts {
			attempts = append(attempts, &result.Verdict{Status: s, Duration: 10, Timings: result.Timings{Setup: 1}, Mismatches: make([]result.Mismatch, i+1)})
		}
		got := together(attempts)
		n := len(attempts)
		told := n // the mismatches of the last attempt that was not well
		if r.want == result.Flaky {
			told--
		}
		if got.Status != r.want || int(got.Duration) != 10*n || int(got.Timings.Setup) != n || len(got.Mismatches) != told {
			t.Errorf("%s: %+v", r.reason, got)
		}
		if n > 1 && len(got.Attempts) != n || n == 1 && got.Attempts != nil {
			t.Errorf("%s: the verdict holds %d attempts", r.reason, len(got.Attempts))
		}
	}
}
