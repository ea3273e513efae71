package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
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
		{"a part of the run", Config{Shard: Shard{Index: 1, Count: 2}}, []string{"sharded on sharded 8.0", "with auth on replicaset 8.0 auth"}},
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

// Among several versions, a test gets the first that will do; the reason against
// all is that of the offers which lack least.
func TestChooseAmongVersions(t *testing.T) {
	var offers []deployment.Description
	for _, v := range [][3]int{{8, 0}, {9, 0}, {4, 2}} {
		for _, topology := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded} {
			offers = append(offers, deployment.Description{Name: fmt.Sprintf("%s %d.%d", topology, v[0], v[1]), Topology: topology, Version: v})
		}
	}
	for _, r := range []struct{ reason, requirement, want string }{
		{"the preferred one", `{minServerVersion: "4.0"}`, "replicaset 8.0"},
		{"an older one", `{maxServerVersion: "4.2.99", topologies: [sharded]}`, "sharded 4.2"},
		{"a newer one", `{minServerVersion: "8.2"}`, "replicaset 9.0"},
		{"all lack the same", `{auth: true}`, ": needs authentication enabled, the deployment has authentication disabled"},
		{"one version lacks less, and both of its topologies as much", `{minServerVersion: "9.0", auth: true}, {minServerVersion: "9.0", topologies: [single]}`,
			": replicaset 9.0: needs authentication enabled, the deployment has authentication disabled; or needs topology single, the deployment has replicaset; " +
				"sharded 9.0: needs authentication enabled, the deployment has authentication disabled; or needs topology single, the deployment has sharded"},
		{"one topology lacks less", `{auth: true, topologies: [sharded]}`, ": needs authentication enabled, the deployment has authentication disabled"},
	} {
		s := parse(t, "description: x\nschemaVersion: \"1.4\"\ntests: [{description: a, runOnRequirements: ["+r.requirement+"], operations: []}]\n")
		j := choose([]*specs.Suite{s}, &Config{}, offers, engine.Description{})[0]
		got := j.id.Deployment
		if j.skip != nil {
			got += ": " + j.skip.reason
		}
		if got != r.want {
			t.Errorf("%s: %s, want %s", r.reason, got, r.want)
		}
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

// Collections are named once, and sorted.
func TestDropPlan(t *testing.T) {
	s := parse(t, `
description: d
schemaVersion: "1.0"
initialData: [{databaseName: db, collectionName: b, documents: []}, {databaseName: db, collectionName: a, documents: []}]
tests: [{description: t, operations: []}]
`)
	if got := DropPlan([]*specs.Suite{s, s}); !slices.Equal(got, []string{"db.a", "db.b"}) {
		t.Errorf("%q", got)
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
	off := []deployment.Description{{Name: "single 8.0", Parameters: mustRaw(bson.D{{Key: "enableTestCommands", Value: false}})}}
	for reason, cfg := range map[string]Config{
		"neither engine nor source": {}, "no source": {Engine: &fakeEngine{}}, "no engine": {Source: &fakeSource{}},
		"a source without deployments": {Engine: &fakeEngine{}, Source: &fakeSource{}},
	} {
		if summary, err := Run(context.Background(), nil, cfg); err == nil {
			t.Errorf("%s: %+v", reason, summary)
		}
	}
	var typed *NoTestCommandsError
	_, err := Run(context.Background(), nil, Config{Engine: &fakeEngine{}, Source: &fakeSource{offers: off}})
	if !errors.As(err, &typed) || typed.Deployment != "single 8.0" || !errors.Is(err, ErrNoTestCommands) {
		t.Errorf("a deployment without test commands: %v", err)
	}
}

// A server without JavaScript lacks what a test requires of it.
func TestNeedsScripts(t *testing.T) {
	reads := `{name: find, object: c, arguments: {filter: {x: {$lt: 1}}}}`
	for _, r := range []struct {
		reason, operation string
		want              bool
	}{
		{"no script", reads, false},
		{"a mapReduce", `{name: mapReduce, object: c, arguments: {map: {$code: x}, reduce: {$code: x}, out: {inline: 1}}}`, true},
		{"a mapReduce that a fail point strikes",
			`{name: mapReduce, object: c, arguments: {map: {$code: x}, reduce: {$code: x}, out: {inline: 1}}, expectError: {isError: true}}`, false},
		{"a filter, in a thread", `{name: runOnThread, object: testRunner, arguments: {thread: t, operation: ` +
			`{name: find, object: c, arguments: {filter: {$where: sleep(1)}}, expectError: {isError: true}}}}`, true},
		{"an expression, in a callback", `{name: withTransaction, object: s, arguments: {callback: [` + reads + `, ` +
			`{name: aggregate, object: c, arguments: {pipeline: [{$project: {y: {$function: {body: x, args: [], lang: js}}}}]}}]}}`, true},
		{"an accumulator", `{name: aggregate, object: c, arguments: {pipeline: [{$group: {_id: 1, y: {$accumulator: {lang: js}}}}]}}`, true},
	} {
		s := parse(t, "description: x\nschemaVersion: \"1.10\"\ntests:\n  - {description: a, operations: ["+r.operation+"]}\n")
		jobs := choose([]*specs.Suite{s}, &Config{}, []deployment.Description{{Name: "single 4.9", NoScripting: true}}, engine.Description{})
		if got := jobs[0].skip != nil; got != r.want || got && jobs[0].skip.reason != "needs server-side JavaScript, the deployment has none" {
			t.Errorf("%s: %+v", r.reason, jobs[0].skip)
		}
		if jobs := choose([]*specs.Suite{s}, &Config{}, []deployment.Description{{Name: "single 4.9"}}, engine.Description{}); jobs[0].skip != nil {
			t.Errorf("%s, with JavaScript: %+v", r.reason, jobs[0].skip)
		}
	}
}

// What an operation may have done decides whether the next test's initial data
// is made anew.
func TestEffects(t *testing.T) {
	for _, r := range []struct {
		reason, operation string
		want              effect
	}{
		{"a read", `{name: find, object: c, arguments: {filter: {}}}`, effectReads},
		{"a write", `{name: insertOne, object: c, arguments: {document: {}}}`, effectWrites},
		{"nobody knows", `{name: rename, object: c, arguments: {to: x}}`, effectUnknown},
		{"the test runner only looks", `{name: assertIndexExists, object: testRunner}`, effectReads},
		{"a command that reads", `{name: runCommand, object: d, arguments: {commandName: hello, command: {hello: 1}}}`, effectReads},
		{"a command that may do anything", `{name: runCommand, object: d, arguments: {commandName: drop, command: {drop: c}}}`, effectUnknown},
		{"a pipeline that reads", `{name: aggregate, object: c, arguments: {pipeline: [{$match: {}}]}}`, effectReads},
		{"a pipeline that writes", `{name: aggregate, object: c, arguments: {pipeline: [{$match: {}}, {$out: x}]}}`, effectUnknown},
		{"the greatest counts, in a callback too",
			`{name: withTransaction, object: s, arguments: {callback: [{name: rename, object: c, arguments: {to: x}}]}}`, effectUnknown},
	} {
		s := parse(t, "description: x\nschemaVersion: \"1.0\"\ntests:\n  - {description: a, operations: ["+r.operation+"]}\n")
		if got := effectOf(s.Tests[0]); got != r.want {
			t.Errorf("%s: %d, want %d", r.reason, got, r.want)
		}
	}
}
