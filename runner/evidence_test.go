package runner

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

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

// evidence runs the tests of chatty: each operation makes so many events.
func evidence(t *testing.T, cfg Config, events int) (map[string]*result.Verdict, *fakeDeployment) {
	t.Helper()
	say := func(string, ...any) {}
	one := step{repeat: true}
	for range events {
		one.events = append(one.events, scripted{"client0", result.Event{Type: result.CommandStarted, Address: "a:1",
			Command: &result.CommandEvent{CommandName: "find", DatabaseName: "db"}}})
	}
	e := &fakeEngine{about: everything(), say: say, script: map[string][]step{
		"collection0.find": {one}, "open.client0": {{}, {}, {}, {broken: "the engine's process is gone"}},
	}}
	about := deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: [3]int{8, 0, 4}, Hosts: []string{"a:1"}}
	d := &fakeDeployment{owned: true, say: say, about: about}
	suite, err := specs.Parse("chatty.yml", []byte(chatty))
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]*result.Verdict{}
	cfg.Engine = e
	cfg.Source = &fakeSource{offers: []deployment.Description{about}, start: func(deployment.Description) *fakeDeployment { return d }}
	cfg.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts[f.Verdict.Test.Description] = f.Verdict
		}
	}
	r, err := prepare(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.dial = func(deployment.Deployment) (commands, error) { return d, nil }
	if _, err := r.all(context.Background(), []*specs.Suite{suite}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]result.Status{"passes": result.Passed, "fails": result.Failed, "is known to fail": result.KnownFailing, "breaks": result.Broken} {
		if v := verdicts[name]; v == nil || v.Status != want {
			t.Fatalf("%s: %+v, want %s", name, v, want)
		}
	}
	return verdicts, d
}

// A verdict does not grow with what its test did; what is judged does.
func TestVerdictIsBounded(t *testing.T) {
	known := []KnownFailure{{Pattern: regexp.MustCompile("is known"), Reason: "somebody said so"}}
	v, _ := evidence(t, Config{KnownFailing: known}, 100_000)
	c := v["fails"].Clients[0]
	if len(c.Events) != 2000 || c.Omitted != (result.Gap{After: 1500, Count: 98_000}) || c.Events[0].Sequence != 1 || c.Events[1999].Sequence != 100_000 {
		t.Errorf("%d events are kept, %+v is missing", len(c.Events), c.Omitted)
	}
	if n := len(v["fails"].Mismatches); n == 0 {
		t.Error("the events were not judged")
	}
	if got := v["fails"].Mismatches[0].Got; got != "got 100000 events" && got != "100000 events" {
		t.Errorf("judged was something else than all events: got %s", got)
	}
	v, _ = evidence(t, Config{KnownFailing: known, KeepEvents: true, Limits: result.NoLimits()}, 3000)
	for _, name := range []string{"passes", "fails"} {
		if n := len(v[name].Clients[0].Events); n != 3000 {
			t.Errorf("%s: without limits %d of 3000 events are kept", name, n)
		}
	}
}

// Tests that failed or broke have an excerpt of what the servers logged while
// they ran, and no others.
func TestServerLog(t *testing.T) {
	before := time.Now()
	v, d := evidence(t, Config{KnownFailing: []KnownFailure{{Pattern: regexp.MustCompile("is known"), Reason: "so"}}, KeepEvents: true}, 1)
	for name, want := range map[string]bool{"passes": false, "fails": true, "is known to fail": false, "breaks": true} {
		log := v[name].ServerLog
		if want != (len(log) > 0) {
			t.Errorf("%s: %d lines", name, len(log))
		}
		if want && (len(log) != 60 || v[name].OmittedLog != (result.Gap{After: 45, Count: 40}) || log[0].Text != "line 0" || log[59].Text != "line 99") {
			t.Errorf("%s: %d lines, %+v is missing", name, len(log), v[name].OmittedLog)
		}
	}
	if len(d.asked) != 2 {
		t.Errorf("the log was read %d times, want once for each of the two tests that need it", len(d.asked))
	}
	for _, w := range d.asked {
		if w[0].Before(before) || w[1].Before(w[0]) || w[1].After(time.Now()) {
			t.Errorf("the window is %v", w)
		}
	}
	for name := range v {
		if v[name].Began.Before(before) {
			t.Errorf("%s: it began at %v", name, v[name].Began)
		}
	}
}
