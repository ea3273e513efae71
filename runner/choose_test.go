package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func parse(t testing.TB, text string) *specs.Suite {
	t.Helper()
	s, err := specs.Parse("a.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
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
			"with auth on sharded 8.0: needs topology replicaset, the deployment has sharded; and needs authentication enabled, the deployment has authentication disabled",
			"nowhere on sharded 8.0: needs server 99.0 or later, the deployment has 8.0"}},
		{"a run pattern chooses, a skip pattern leaves out", Config{Filter: Filter{
			Run: []*regexp.Regexp{regexp.MustCompile("^a.yml: .*w")}, Skip: []*regexp.Regexp{regexp.MustCompile("nowhere$")}}}, []string{
			"anywhere on replicaset 8.0", "sharded: not chosen by a run pattern", "with auth on replicaset 8.0 auth",
			`nowhere: left out by the skip pattern "nowhere$"`}},
		{"count repeats", Config{Count: 2, Filter: Filter{Run: []*regexp.Regexp{regexp.MustCompile("sharded$")}, Skip: nil}}, []string{
			"anywhere: not chosen by a run pattern", "sharded on sharded 8.0", "with auth: not chosen by a run pattern", "nowhere: not chosen by a run pattern",
			"anywhere: not chosen by a run pattern", "sharded on sharded 8.0", "with auth: not chosen by a run pattern", "nowhere: not chosen by a run pattern"}},
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

func TestStalePatternsFailTheRun(t *testing.T) {
	cfg := Config{
		Filter:       Filter{Run: []*regexp.Regexp{regexp.MustCompile("anywhere"), regexp.MustCompile("gone")}, Skip: []*regexp.Regexp{regexp.MustCompile("went")}},
		KnownFailing: []KnownFailure{{Pattern: regexp.MustCompile("left")}, {Pattern: regexp.MustCompile("nowhere")}},
	}
	want := []string{`the run pattern "gone" matches no test`, `the skip pattern "went" matches no test`, `: the known failure "left" matches no test`}
	got := stale([]*specs.Suite{parse(t, choices)}, &cfg, time.Now())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := (result.Summary{Problems: got}); s.ExitCode() != 1 {
		t.Errorf("exit code %d", s.ExitCode())
	}
}

func TestLacking(t *testing.T) {
	text := `
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
`
	about := engine.Description{SchemaVersion: "1.13", Operations: []string{"collection.find", "collection.createFindCursor", "session.withTransaction"}}
	s := parse(t, text)
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
	if diff := cmp.Diff([]string{"db.a", "db.b"}, DropPlan([]*specs.Suite{s, s})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// quiet gives a run of scripted parts without a transcript.
func quiet(t *testing.T, cfg Config, src *fakeSource) *run {
	t.Helper()
	say := func(string, ...any) {}
	if cfg.Engine == nil {
		cfg.Engine = &fakeEngine{about: everything(), say: say}
	}
	if src.offers == nil {
		src.offers = []deployment.Description{{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Hosts: []string{"a:1"}}}
	}
	if src.start == nil {
		src.start = func(about deployment.Description) *fakeDeployment {
			return &fakeDeployment{about: about, owned: true, say: say}
		}
	}
	cfg.Source = src
	r, err := prepare(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.dial = func(d deployment.Deployment) (commands, error) { return d.(*fakeDeployment), nil }
	return r
}

const waiting = `
description: waiting
schemaVersion: "1.21"
createEntities: [{client: {id: client0}}, {database: {id: database0, client: client0, databaseName: db}}]
initialData: [{databaseName: db, collectionName: coll, documents: [{_id: 1}]}]
tests:
  - {description: t, operations: [{name: runCommand, object: database0, arguments: {commandName: ping, command: {ping: 1}}}]}
`

// Workers run tests at once, each on a deployment of its own, and every job
// ends in one verdict.
func TestWorkers(t *testing.T) {
	met := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	running := 0
	e := &meetingEngine{fakeEngine: fakeEngine{about: everything(), say: func(string, ...any) {}}, at: func(ctx context.Context) {
		mu.Lock()
		if running++; running == 3 {
			once.Do(func() { close(met) })
		}
		mu.Unlock()
		select {
		case <-met: // three are here at once
		case <-ctx.Done():
		}
	}}
	src := &fakeSource{}
	verdicts := 0
	r := quiet(t, Config{Engine: e, Jobs: 3, Count: 30, Timeout: 5 * time.Second, Notify: func(n result.Note) {
		if _, ok := n.(result.TestFinished); ok {
			verdicts++ // notes never come two at once
		}
	}}, src)
	summary, err := r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
	if err != nil || summary.Passed != 30 || verdicts != 30 {
		t.Errorf("%+v, %d verdicts, %v", summary, verdicts, err)
	}
	if src.most != 3 || len(src.lent) != 0 {
		t.Errorf("%d deployments were lent at once, %d not given back", src.most, len(src.lent))
	}
	for _, idle := range src.idle {
		for _, d := range idle {
			if !d.(*fakeDeployment).closed {
				t.Error("a connection to a deployment stays open")
			}
		}
	}
}

// meetingEngine calls at during each operation.
type meetingEngine struct {
	fakeEngine
	at func(context.Context)
}

func (e *meetingEngine) Begin(ctx context.Context) (engine.Test, error) {
	test, err := e.fakeEngine.Begin(ctx)
	return &meetingTest{test.(*fakeTest), e.at}, err
}

type meetingTest struct {
	*fakeTest
	at func(context.Context)
}

func (t *meetingTest) Do(ctx context.Context, o engine.Operation) result.Outcome {
	t.at(ctx)
	return t.fakeTest.Do(ctx, o)
}

// An interruption ends the test that runs, cleans up after it, and skips the
// others.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var lines []string
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	e := &meetingEngine{fakeEngine: fakeEngine{about: everything(), say: say}, at: func(ctx context.Context) {
		cancel()
		<-ctx.Done()
	}}
	var verdicts []*result.Verdict
	src := &fakeSource{start: func(about deployment.Description) *fakeDeployment {
		return &fakeDeployment{about: about, owned: true, say: say}
	}}
	r := quiet(t, Config{Engine: e, Count: 2, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts = append(verdicts, f.Verdict)
		}
	}}, src)
	s := parse(t, strings.Replace(waiting, "{commandName: ping, command: {ping: 1}}",
		"{commandName: configureFailPoint, command: {configureFailPoint: failCommand, mode: alwaysOn}}", 1))
	summary, err := r.all(ctx, []*specs.Suite{s})
	if err != nil || !summary.Interrupted || summary.Skipped != 2 || summary.ExitCode() != 3 {
		t.Errorf("%+v, %v", summary, err)
	}
	if verdicts[0].Reason != "interrupted" || verdicts[1].Reason != "not run: interrupted" || verdicts[0].SkipKind != result.SkipFilter {
		t.Errorf("%+v\n%+v", verdicts[0], verdicts[1])
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "engine  end") || !strings.HasSuffix(text, `primary admin {"killAllSessions": []}`) {
		t.Errorf("no clean-up:\n%s", text)
	}
}

// A deployment without test commands is refused before anything is dropped.
func TestNoTestCommands(t *testing.T) {
	off := mustRaw(bson.D{{Key: "enableTestCommands", Value: false}})
	on := mustRaw(bson.D{{Key: "enableTestCommands", Value: 1}})
	for _, row := range []struct {
		reason     string
		parameters bson.Raw
		owned      bool
		refused    bool
	}{
		{"the parameter is off", off, false, true},
		{"the parameter is off, even if we started it", off, true, true},
		{"the parameter is on", on, false, false},
		{"nobody tells, and getParameter does not either", nil, false, true},
		{"nobody tells, but it is ours", nil, true, false},
	} {
		var lines []string
		about := deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Parameters: row.parameters}
		d := &fakeDeployment{about: about, owned: row.owned, say: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
		src := &fakeSource{offers: []deployment.Description{about}, start: func(deployment.Description) *fakeDeployment { return d }}
		r, err := prepare(context.Background(), Config{Engine: &fakeEngine{about: everything(), say: func(string, ...any) {}}, Source: src, Count: 3})
		if err == nil {
			r.dial = func(deployment.Deployment) (commands, error) { return d, nil }
			_, err = r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
		}
		if refused := errors.Is(err, ErrNoTestCommands); refused != row.refused {
			t.Errorf("%s: %v", row.reason, err)
		}
		if text := strings.Join(lines, "\n"); row.refused && strings.Contains(text, "drop") {
			t.Errorf("%s: something was dropped:\n%s", row.reason, text)
		}
		var typed *NoTestCommandsError
		if row.refused && (!errors.As(err, &typed) || !strings.Contains(err.Error(), "--setParameter enableTestCommands=1")) {
			t.Errorf("%s: the message does not say what to do: %v", row.reason, err)
		}
	}
}

// A source that gives no deployment breaks tests; it does not fail them.
func TestNoDeployment(t *testing.T) {
	r := quiet(t, Config{}, &fakeSource{fails: errors.New("no port is free")})
	summary, err := r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
	if err != nil || summary.Broken != 1 || summary.ExitCode() != 3 {
		t.Errorf("%+v, %v", summary, err)
	}
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Engine: &fakeEngine{}}, {Source: &fakeSource{}}, {Engine: &fakeEngine{}, Source: &fakeSource{}}} {
		if _, err := Run(context.Background(), nil, cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// A filter that leaves nothing is a problem of the run, though each of its
// patterns matches something.
func TestUnused(t *testing.T) {
	suite := &specs.Suite{File: "a.yml", Tests: []*specs.Test{{Description: "first"}, {Description: "second"}}}
	some := func(patterns ...string) (out []*regexp.Regexp) {
		for _, p := range patterns {
			out = append(out, regexp.MustCompile(p))
		}
		return out
	}
	for _, r := range []struct {
		reason    string
		run, skip []*regexp.Regexp
		want      int
	}{
		{"no filter", nil, nil, 0},
		{"one is left", some("first"), some("second"), 0},
		{"what is chosen is left out", some("first"), some("first"), 1},
		{"all is left out", nil, some("."), 1},
		{"a pattern that matches nothing says enough", some("third"), nil, 1},
		{"two of them", some("third"), some("fourth"), 2},
	} {
		got := Unused([]*specs.Suite{suite}, Config{Filter: Filter{Run: r.run, Skip: r.skip}})
		if len(got) != r.want {
			t.Errorf("%s: %q, want %d", r.reason, got, r.want)
		}
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
		{"one", set("failCommand", "failPoint"), []string{"failCommand"}},
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
