package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

const waiting = `
description: waiting
schemaVersion: "1.21"
createEntities: [{client: {id: client0}}, {database: {id: database0, client: client0, databaseName: db}}]
initialData: [{databaseName: db, collectionName: coll, documents: [{_id: 1}]}]
tests:
  - {description: t, operations: [{name: runCommand, object: database0, arguments: {commandName: ping, command: {ping: 1}}}]}
`

// Workers run tests at once, each on a deployment of its own, and every job
// ends in one verdict. A test takes a second of the bubble.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{}
		verdicts := 0
		r, err := onFakes(Config{
			Engine: &fakeEngine{during: func(context.Context) { time.Sleep(time.Second) }},
			Jobs:   3, Count: 30, Timeout: 5 * time.Second, Notify: func(n result.Note) {
				if _, ok := n.(result.TestFinished); ok {
					verdicts++ // the race detector notices two notes at once
				}
			}}, src)
		if err != nil {
			t.Fatal(err)
		}
		summary, err := r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
		if err != nil || summary.Passed != 30 || verdicts != 30 || summary.Duration != 10*time.Second {
			t.Errorf("%+v, %d verdicts, %v", summary, verdicts, err)
		}
		if src.most != 3 || len(src.lent) != 0 {
			t.Errorf("%d deployments were lent at once, %d not given back", src.most, len(src.lent))
		}
		for _, d := range src.idle[0] {
			if !d.(*fakeDeployment).closed {
				t.Error("a connection to a deployment stays open")
			}
		}
	})
}

// An interruption ends the test that runs, cleans up after it, and skips the
// others.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var verdicts []*result.Verdict
	r, err := onFakes(Config{
		Engine: &fakeEngine{say: say, during: func(ctx context.Context) { cancel(); <-ctx.Done() }},
		Count:  2, Notify: func(n result.Note) {
			if f, ok := n.(result.TestFinished); ok {
				verdicts = append(verdicts, f.Verdict)
			}
		}}, &fakeSource{start: func(about deployment.Description) *fakeDeployment {
		return &fakeDeployment{about: about, owned: true, say: say}
	}})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := r.all(ctx, []*specs.Suite{parse(t, waiting)})
	if err != nil || !summary.Interrupted || summary.Skipped != 2 {
		t.Errorf("%+v, %v", summary, err)
	}
	if verdicts[0].Reason != "interrupted" || verdicts[1].Reason != "not run: interrupted" || verdicts[0].SkipKind != result.SkipFilter {
		t.Errorf("%+v\n%+v", verdicts[0], verdicts[1])
	}
	if text := strings.Join(lines, "\n"); !strings.HasSuffix(text, "engine  end\n"+`primary admin {"killAllSessions": []}`) {
		t.Errorf("no clean-up:\n%s", text)
	}
}

// A deployment without test commands is refused before anything is dropped.
func TestNoTestCommands(t *testing.T) {
	for _, row := range []struct {
		reason     string
		parameters any
		owned      bool
		refused    bool
	}{
		{"the parameter is off", map[string]any{"enableTestCommands": false}, false, true},
		{"the parameter is off, even if we started it", map[string]any{"enableTestCommands": 0}, true, true},
		{"the parameter is on", map[string]any{"enableTestCommands": 1}, false, false},
		{"nobody says, and getParameter does not either", map[string]any{}, false, true},
		{"nobody says, but it is ours", map[string]any{}, true, false},
	} {
		about := deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Parameters: mustRaw(row.parameters)}
		var lines strings.Builder
		d := &fakeDeployment{about: about, owned: row.owned, say: func(format string, args ...any) { fmt.Fprintf(&lines, format+"\n", args...) }}
		src := &fakeSource{offers: []deployment.Description{about}, start: func(deployment.Description) *fakeDeployment { return d }}
		r, err := onFakes(Config{Count: 3}, src)
		if err == nil {
			_, err = r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
		}
		if errors.Is(err, ErrNoTestCommands) != row.refused {
			t.Errorf("%s: %v", row.reason, err)
		}
		var typed *NoTestCommandsError
		if row.refused && (!errors.As(err, &typed) || !strings.Contains(err.Error(), "--setParameter enableTestCommands=1")) {
			t.Errorf("%s: the message does not say what to do: %v", row.reason, err)
		}
		if row.refused && strings.Contains(lines.String(), "drop") {
			t.Errorf("%s: something was dropped:\n%s", row.reason, lines.String())
		}
	}
}

// A source that gives no deployment breaks tests; it does not fail them.
func TestNoDeployment(t *testing.T) {
	r, err := onFakes(Config{}, &fakeSource{fails: errors.New("no port is free")})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
	if err != nil || summary.Broken != 1 {
		t.Errorf("%+v, %v", summary, err)
	}
}

// chatty has a test that passes, one that fails, one that breaks, and one that
// is known to fail.
const chatty = `
description: chatty
schemaVersion: "1.0"
createEntities:
  - client: {id: client0, observeEvents: [commandStartedEvent]}
  - database: {id: database0, client: client0, databaseName: db}
  - collection: {id: collection0, database: database0, collectionName: coll}
tests:
  - description: passes
    operations: &find
      - {name: find, object: collection0, arguments: {filter: {}}}
  - description: fails
    operations: *find
    expectEvents: [{client: client0, events: []}]
  - description: is known to fail
    operations: *find
    expectEvents: [{client: client0, events: []}]
  - description: breaks
    operations: *find
`

// evidence runs the tests of chatty, a second each: an operation makes so many
// events.
func evidence(t *testing.T, cfg Config, events int) (map[string]*result.Verdict, *fakeDeployment) {
	t.Helper()
	one := step{Repeat: true}
	for range events {
		one.Events = append(one.Events, scriptedEvent{Client: "client0", Type: result.CommandStarted, Name: "find"})
	}
	cfg.Engine = &fakeEngine{during: func(context.Context) { time.Sleep(time.Second) }, script: map[string][]step{
		"collection0.find": {one}, "open.client0": {{}, {}, {}, {Broken: "the engine's process is gone"}},
	}}
	cfg.KnownFailing = []KnownFailure{{Pattern: patterns("is known")[0], Reason: "somebody said so"}}
	verdicts := map[string]*result.Verdict{}
	cfg.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts[f.Verdict.Test.Description] = f.Verdict
		}
	}
	d := &fakeDeployment{owned: true}
	r, err := onFakes(cfg, &fakeSource{start: func(about deployment.Description) *fakeDeployment { d.about = about; return d }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.all(context.Background(), []*specs.Suite{parse(t, chatty)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]result.Status{
		"passes": result.Passed, "fails": result.Failed, "is known to fail": result.KnownFailing, "breaks": result.Broken,
	} {
		if v := verdicts[name]; v == nil || v.Status != want {
			t.Fatalf("%s: %+v, want %s", name, v, want)
		}
	}
	return verdicts, d
}

// A verdict does not grow with what its test did; what is judged does.
func TestVerdictIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := evidence(t, Config{}, 2100)
		c := v["fails"].Clients[0]
		if len(c.Events) != 2000 || c.Omitted != (result.Gap{After: 1500, Count: 100}) || c.Events[1999].Sequence != 2100 {
			t.Errorf("%d events are kept, %+v is missing", len(c.Events), c.Omitted)
		}
		if m := v["fails"].Mismatches; len(m) == 0 || !strings.HasSuffix(m[0].Got, "2100 events") {
			t.Errorf("not all events were judged: %+v", m)
		}
		if v["passes"].Clients != nil {
			t.Error("the events of a test that passed are kept, which nobody asked for")
		}
		v, _ = evidence(t, Config{KeepEvents: true, Limits: result.NoLimits()}, 2100)
		for _, name := range []string{"passes", "fails"} {
			if n := len(v[name].Clients[0].Events); n != 2100 {
				t.Errorf("%s: without limits %d of 2100 events are kept", name, n)
			}
		}
	})
}

// Tests that failed or broke have an excerpt of what the servers logged while
// they ran, and no others.
func TestServerLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v, d := evidence(t, Config{KeepEvents: true}, 1)
		for name, want := range map[string]bool{"passes": false, "fails": true, "is known to fail": false, "breaks": true} {
			log := v[name].ServerLog
			if want != (len(log) > 0) {
				t.Errorf("%s: %d lines", name, len(log))
			}
			if want && (len(log) != 60 || v[name].OmittedLog != (result.Gap{After: 45, Count: 40}) || log[0].Text != "line 0" || log[59].Text != "line 99") {
				t.Errorf("%s: %d lines, %+v is missing", name, len(log), v[name].OmittedLog)
			}
		}
		second := func(n time.Duration) time.Time { return began.Add(n * time.Second) }
		if want := [][2]time.Time{{second(1), second(2)}, {second(3), second(3)}}; fmt.Sprint(d.asked) != fmt.Sprint(want) {
			t.Errorf("the log was read for %v, want %v", d.asked, want)
		}
		if v["fails"].Began != second(1) || v["fails"].Duration != time.Second {
			t.Errorf("the second test began at %v and took %v", v["fails"].Began, v["fails"].Duration)
		}
	})
}
