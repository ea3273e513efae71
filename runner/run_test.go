package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/reference"
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

// Workers run tests concurrently, each on its own deployment, and every job has one
// verdict. A test takes one second.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, verdicts := &fakeSource{}, 0
		engine := &fakeEngine{during: func() { time.Sleep(time.Second) }}
		r, err := onFakes(Config{Engine: engine, Jobs: 3, Count: 30, Timeout: 5 * time.Second, Notify: func(n result.Note) {
			if _, ok := n.(result.TestFinished); ok {
				verdicts++ // the race detector finds concurrent notes
			}
		}}, src)
		testkit.Check(t, err)
		summary, err := r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
		if err != nil || summary.Passed != 30 || verdicts != 30 || summary.Duration != 10*time.Second || summary.CPU <= 0 {
			t.Errorf("%+v, %d verdicts, %v", summary, verdicts, err)
		}
		if src.most != 3 || len(src.lent) != 0 ||
			slices.ContainsFunc(src.idle, func(d *fakeDeployment) bool { return !d.closed }) {
			t.Errorf("%d deployments were lent at once, %d not released, or one not closed", src.most, len(src.lent))
		}
	})
}

// Verdicts are reported in the order of the tests, even if later tests end first.
func TestOrderOfVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		engine := &fakeEngine{during: func() { time.Sleep(time.Duration(10-begun.Add(1)) * time.Second) }}
		var iterations []int
		r, err := onFakes(Config{Engine: engine, Jobs: 3, Count: 6, Timeout: time.Minute, Notify: func(n result.Note) {
			if v, ok := n.(result.TestFinished); ok {
				iterations = append(iterations, v.Verdict.Test.Iteration)
			}
		}}, &fakeSource{})
		testkit.Check(t, err)
		_, err = r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
		testkit.Check(t, err)
		testkit.Equal(t, "iterations", iterations, []int{1, 2, 3, 4, 5, 6})
	})
}

// chatty has a test of each status.
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

// evidence runs the tests of chatty. Each takes one second and has a number of
// events.
func evidence(t *testing.T, cfg Config, events int) (map[string]*result.Verdict, *fakeDeployment) {
	t.Helper()
	one := step{Repeat: true}
	for range events {
		one.Events = append(one.Events, scriptedEvent{Client: "client0", Type: result.CommandStarted, Name: "find"})
	}
	cfg.Engine = &fakeEngine{during: func() { time.Sleep(time.Second) }, script: map[string][]step{
		"collection0.find": {one}, "open.client0": {{}, {}, {}, {Broken: "the engine's process is gone"}},
	}}
	cfg.KnownFailing = []KnownFailure{{Pattern: patterns("is known")[0], Reason: "DRIVERS-1"}}
	verdicts, statuses := map[string]*result.Verdict{}, map[string]result.Status{}
	cfg.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts[f.Verdict.Test.Description], statuses[f.Verdict.Test.Description] = f.Verdict, f.Verdict.Status
		}
	}
	d := &fakeDeployment{owned: true}
	r, err := onFakes(cfg, &fakeSource{start: func(about deployment.Description) *fakeDeployment { d.about = about; return d }})
	testkit.Check(t, err)
	_, err = r.all(context.Background(), []*specs.Suite{parse(t, chatty)})
	testkit.Check(t, err)
	testkit.Equal(t, "verdicts", statuses, map[string]result.Status{
		"passes": result.Passed, "fails": result.Failed, "is known to fail": result.KnownFailing, "breaks": result.Broken,
	})
	return verdicts, d
}

// The number of events in a verdict is limited. All events are compared.
func TestVerdictIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := evidence(t, Config{}, 2100)
		c, m := v["fails"].Clients[0], v["fails"].Mismatches
		if len(c.Events) != 2000 || c.Omitted != (result.Gap{After: 1500, Count: 100}) || c.Events[1999].Sequence != 2100 {
			t.Errorf("kept %d events, omitted %+v", len(c.Events), c.Omitted)
		}
		if len(m) == 0 || !strings.HasSuffix(m[0].Message, "got 2100") || v["passes"].Clients != nil {
			t.Errorf("not all events were compared, or the events of a passed test were kept: %+v, %+v", m, v["passes"].Clients)
		}
		v, _ = evidence(t, Config{KeepEvents: true, Untrimmed: true}, 2100)
		for _, name := range []string{"passes", "fails"} {
			testkit.Equal(t, name+" without limits", len(v[name].Clients[0].Events), 2100)
		}
	})
}

// Only failed and broken tests have an excerpt of the server log.
func TestServerLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v, d := evidence(t, Config{KeepEvents: true}, 1)
		for name, lines := range map[string]int{"passes": 0, "fails": 60, "is known to fail": 0, "breaks": 60} {
			log := v[name].ServerLog
			if len(log) != lines || lines > 0 && (v[name].OmittedLog != (result.Gap{After: 45, Count: 40}) ||
				log[0].Text != "line 0" || log[59].Text != "line 99") {
				t.Errorf("%s: %d lines, omitted %+v", name, len(log), v[name].OmittedLog)
			}
		}
		second := func(n time.Duration) time.Time { return began.Add(n * time.Second) }
		testkit.Equal(t, "windows of the log", d.windows, [][2]time.Time{{second(1), second(2)}, {second(3), second(3)}})
		testkit.Equal(t, "when the second test ran", []any{v["fails"].Started, v["fails"].Duration},
			[]any{second(1), time.Second})
	})
}

// Attempts are merged into one verdict. The story "retry" covers its status.
func TestMergedAttempts(t *testing.T) {
	var attempts []*result.Verdict
	for i, s := range []result.Status{result.Failed, result.Broken, result.Passed} {
		attempts = append(attempts, &result.Verdict{Status: s, Started: time.Unix(int64(i), 0), Duration: 10,
			Timings: result.Timings{Setup: 1}})
	}
	for n, want := range map[int]result.Status{3: result.Flaky, 2: result.Broken} {
		got := merged(attempts[:n])
		if got.Status != want || int(got.Duration) != 10*n || int(got.Timings.Setup) != n || len(got.Attempts) != n ||
			got.Started != attempts[0].Started {
			t.Errorf("%d attempts: %+v", n, got)
		}
	}
	if got := merged(attempts[:1]); got != attempts[0] {
		t.Errorf("one attempt: %+v", got)
	}
}

// A clean-up has a time limit. It is shorter after an interruption.
func TestCleanupContext(t *testing.T) {
	const own, after = "the limit of the clean-up of ", "the limit of the clean-up after an interruption of "
	for _, r := range []struct {
		reason                         string
		interrupted, limit, then, ends time.Duration // in seconds; interrupted -1 is never
		cause                          string
	}{
		{"no interruption", -1, 15, 3, 15, own + "15s has passed"},
		{"interrupted before", 0, 15, 3, 3, after + "3s has passed"},
		{"interrupted during the clean-up", 1, 15, 3, 4, after + "3s has passed"},
		{"the first limit is earlier", 1, 2, 3, 2, own + "2s has passed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if r.interrupted == 0 {
				interrupt()
			} else if r.interrupted > 0 {
				time.AfterFunc(r.interrupted*time.Second, interrupt)
			}
			began := time.Now()
			cleaning, done := cleanupContext(ctx, r.limit*time.Second, r.then*time.Second)
			defer done()
			<-cleaning.Done()
			testkit.Equal(t, r.reason, context.Cause(cleaning).Error(), r.cause)
			testkit.Equal(t, r.reason, time.Since(began), r.ends*time.Second)
		})
	}
}

// late is a source that interrupts the run instead of providing a deployment.
type late struct {
	playbackSource
	interrupt context.CancelFunc
}

func (s *late) Acquire(context.Context, int) (deployment.Deployment, error) {
	s.interrupt()
	return nil, context.Canceled
}

// A run in which too few tests run has a problem, unless something worse happened.
func TestFewTestsRun(t *testing.T) {
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer func() { _ = e.Close() }()
	suite, err := specs.Parse("a.yml",
		[]byte(`{description: d, schemaVersion: "1.0", tests: [{description: a, skipReason: b, operations: []}]}`))
	testkit.Check(t, err)
	source := &playbackSource{about: deployment.Description{Name: "single 8.0", Topology: deployment.Single, Version: [3]int{8}}}
	summary, err := Run(t.Context(), []*specs.Suite{suite}, Config{Engine: e, Source: source, MinTests: 1})
	testkit.Check(t, err)
	testkit.Equal(t, "no test runs", fmt.Sprint(summary.Problems, summary.ExitCode()), "[no test ran: skipped 1 test] 1")
	for _, r := range []struct {
		reason  string
		summary result.Summary
		least   int
		want    string
	}{
		{"enough", result.Summary{Passed: 1, KnownFailing: 1}, 2, "[] 0"},
		{"too few", result.Summary{Passed: 2, Skipped: 3}, 3, "[2 tests ran, --min-tests requires 3] 1"},
		{"none, and that is allowed", result.Summary{Skipped: 3}, 0, "[] 0"},
		{"a failure is worse", result.Summary{Failed: 1}, 2, "[] 1"},
		{"an interruption is worse", result.Summary{Breaks: []result.Break{{Reason: "interrupted"}}}, 1, "[] 3"},
	} {
		r.summary.RequireTests(r.least)
		testkit.Equal(t, r.reason, fmt.Sprint(r.summary.Problems, r.summary.ExitCode()), r.want)
	}
}

// A run that is interrupted while its last test waits for a deployment fails.
func TestInterruptedWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer func() { _ = e.Close() }()
	suite, err := specs.Parse("a.yml",
		[]byte(`{description: d, schemaVersion: "1.0", tests: [{description: a, operations: []}]}`))
	testkit.Check(t, err)
	source := &late{playbackSource{about: deployment.Description{Name: "single 8.0", Topology: deployment.Single,
		Version: [3]int{8}}}, cancel}
	summary, err := Run(ctx, []*specs.Suite{suite}, Config{Engine: e, Source: source})
	testkit.Check(t, err)
	testkit.Equal(t, "interrupted, and the exit code", fmt.Sprint(summary.Interrupted, summary.ExitCode()), "true 3")
}
