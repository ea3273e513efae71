package report_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func raw(d bson.D) bson.Raw {
	b, _ := bson.Marshal(d)
	return b
}

func rawValue(v any) bson.RawValue { return raw(bson.D{{Key: "v", Value: v}}).Lookup("v") }

func at(line, column int) source.Position {
	return source.Position{File: "specs/find.yml", Line: line, Column: column}
}

// run is a stream with every note, every verdict, and every kind of event.
func run() []result.Note {
	start := time.Date(2026, 7, 8, 9, 10, 11, 0, time.UTC)
	seed, yes, connection := int64(42), true, int64(17)
	service := bson.ObjectID{1, 2, 3}
	id := func(description string) result.TestID {
		return result.TestID{File: "specs/find.yml", Suite: "find", Description: description, Deployment: "replicaset 8.0", Iteration: 1}
	}
	again := id("a pass")
	again.Iteration = 2
	elsewhere := id("a pass")
	elsewhere.Deployment = "sharded 8.0"

	overloaded := &result.Error{
		Message: "too many\n  requests", Kind: "server", Code: 462, HasCode: true, CodeName: "IngressRequestRateLimitExceeded",
		Labels: []string{"RetryableError", "SystemOverloadedError"}, Server: "a:27017", Response: raw(bson.D{{Key: "ok", Value: 0}}),
		WriteErrors:        map[int]bson.Raw{1: raw(bson.D{{Key: "code", Value: 11000}})},
		WriteConcernErrors: []bson.Raw{raw(bson.D{{Key: "code", Value: 91}})},
		Partial:            rawValue(bson.D{{Key: "insertedCount", Value: 1}}),
	}
	failed := &result.Verdict{
		Test: id(`a failure <&"'`), Position: at(10, 5), Status: result.Failed,
		Reason: "2 mismatches",
		Mismatches: []result.Mismatch{
			{Path: "expectEvents[0].events[1].commandStartedEvent.command.limit", Position: at(30, 20), Message: "numbers differ", Want: "1.5", Got: "1", Diff: "- 1.5\n+ 1"},
			{Path: "outcome[0].documents", Message: "a document is missing", Want: `{"_id": 1}`},
		},
		OmittedMismatches: result.Gap{After: 1, Count: 4},
		Operations: []result.OperationLog{
			{Name: "find", Object: "collection0", Position: at(12, 7), Duration: 12345 * time.Microsecond, Outcome: result.Outcome{
				Err: overloaded, Server: "b:27017",
				Decisions: []result.Decision{
					{Attempt: 1, Action: "send", Server: "a:27017", Rules: []string{"R1"}, Reason: "the first attempt"},
					{Attempt: 1, Action: "back off", DelayMS: 12.5, Rules: []string{"R7", "R8"}},
					{Attempt: 2, Action: "select", Deprioritized: []string{"a:27017"}, Rules: []string{"R9"}},
				}}, Omitted: result.Gap{After: 2, Count: 3}},
			{Name: "count", Object: "collection0", Position: at(13, 7), Duration: time.Millisecond, Outcome: result.Outcome{Value: rawValue(3)}},
		},
		OmittedOperations: result.Gap{After: 1, Count: 11},
		Clients: []result.ClientLog{
			{Client: "client0", Events: []result.Event{
				{Sequence: 1, Time: start, Type: result.TopologyDescriptionChanged, SDAM: &result.SDAMEvent{
					Previous: &result.TopologyState{Type: "Unknown"},
					New:      &result.TopologyState{Type: "ReplicaSetWithPrimary", Servers: []result.ServerState{{Address: "a:27017", Type: "RSPrimary"}}}}},
				{Sequence: 2, Type: result.ServerHeartbeatFailed, Address: "b:27017", SDAM: &result.SDAMEvent{Awaited: &yes, Err: "refused"}},
				{Sequence: 3, Type: result.ConnectionCheckedOut, Address: "a:27017", Pool: &result.PoolEvent{ConnectionID: 4}},
				{Sequence: 4, Type: result.CommandStarted, Address: "a:27017", Command: &result.CommandEvent{
					CommandName: "find", DatabaseName: "db", RequestID: 5, OperationID: 6, ConnectionID: "a:27017[-4]", ServerConnectionID: &connection, ServiceID: &service,
					Command: raw(bson.D{{Key: "find", Value: "c"}, {Key: "lsid", Value: bson.D{{Key: "id", Value: 1}}}, {Key: "$db", Value: "db"}})}},
				{Sequence: 5, Type: result.CommandFailed, Address: "a:27017", Command: &result.CommandEvent{
					CommandName: "find", DatabaseName: "db", RequestID: 5, Failure: overloaded, Duration: 7 * time.Millisecond}},
				{Sequence: 6, Type: result.PoolCleared, Address: "a:27017", Pool: &result.PoolEvent{InterruptInUseConnections: &yes, ServiceID: &service}},
				{Sequence: 7, Type: result.ConnectionClosed, Address: "a:27017", Pool: &result.PoolEvent{ConnectionID: 4, Reason: "stale", Err: "pool cleared"}},
				{Sequence: 8, Type: result.CommandSucceeded, Address: "b:27017", Command: &result.CommandEvent{
					CommandName: "find", DatabaseName: "db", Reply: raw(bson.D{{Key: "ok", Value: 1.0}, {Key: "operationTime", Value: bson.Timestamp{T: 1}}})}},
				{Sequence: 99, Type: result.CommandStarted, Address: "b:27017", Command: &result.CommandEvent{CommandName: "saslStart", DatabaseName: "admin", Redacted: true}},
			}, Omitted: result.Gap{After: 8, Count: 90}},
			{Client: "client1"},
		},
		ServerLog: []result.LogLine{
			{Time: start, Server: "a:27017", Text: "conn 3: fail point hits find: error 462 IngressRequestRateLimitExceeded"},
			{Time: start.Add(2 * time.Millisecond), Server: "a:27017", Text: "conn 3: closed"},
		},
		OmittedLog: result.Gap{After: 1, Count: 7},
		Began:      start,
		Duration:   15 * time.Millisecond,
		Timings:    result.Timings{Setup: time.Millisecond, Engine: 2 * time.Millisecond, Server: 9 * time.Millisecond, Waiting: 2 * time.Millisecond, Cleanup: time.Millisecond},
		Rerun:      []string{"utr", "run", "--run", `^specs/find\.yml: a failure <&"'$`, "specs/find.yml"},
	}
	skip := func(d string, kind result.SkipKind, why string) *result.Verdict {
		return &result.Verdict{Test: id(d), Position: at(60, 5), Status: result.Skipped, SkipKind: kind, Reason: why}
	}
	// A test that failed and then passed: no report takes it for one that passed.
	flaky := &result.Verdict{
		Test: id("by chance"), Position: at(80, 5), Status: result.Flaky, Reason: "passed at attempt 2, after failed", Duration: 2 * time.Second,
		Mismatches: []result.Mismatch{{Path: "expectEvents[0]", Position: at(81, 5), Message: "an event is missing"}},
		Clients:    []result.ClientLog{{Client: "client0"}},
	}
	first, second := *flaky, &result.Verdict{Test: flaky.Test, Position: at(80, 5), Status: result.Passed, Duration: time.Second}
	first.Status, first.Reason, first.Duration = result.Failed, "1 mismatch", time.Second
	flaky.Attempts = []*result.Verdict{&first, second}
	verdicts := []*result.Verdict{
		{Test: id("a pass"), Position: at(3, 5), Status: result.Passed, Duration: 3 * time.Millisecond, Timings: result.Timings{Setup: time.Millisecond, Server: 2 * time.Millisecond}},
		failed,
		{Test: id("a break"), Position: at(50, 5), Status: result.Broken, Reason: "initial data: connection refused\x00", Duration: 2 * time.Second, Rerun: []string{"utr", "run", "specs/find.yml"}},
		skip("too old", result.SkipRequirement, "minServerVersion 9.0, the deployment has 8.0"),
		skip("too old as well", result.SkipRequirement, "minServerVersion 9.0, the deployment has 8.0"),
		skip("not now", result.SkipFile, "DRIVERS-1"),
		skip("not able", result.SkipCapability, "bucket.rename"),
		skip("not wanted", result.SkipFilter, "--skip not"),
		{Test: id("a known failure"), Position: at(70, 5), Status: result.KnownFailing, Reason: "GODRIVER-1", Duration: time.Millisecond},
		{Test: again, Position: at(3, 5), Status: result.Passed, Duration: 4 * time.Millisecond},
		{Test: elsewhere, Position: at(3, 5), Status: result.Passed, Duration: 5 * time.Millisecond},
		flaky,
	}

	notes := []result.Note{
		result.RunStarted{Time: start, Engine: "reference 1", Total: len(verdicts) + 1, Files: 1, Jobs: 2, Seed: &seed},
		result.DeploymentReady{Name: "replicaset 8.0", Info: "3 members", Took: 12 * time.Millisecond},
	}
	summary := result.Summary{Duration: 2500 * time.Millisecond, Interrupted: true, Problems: []string{"--run xyz matches no test"}}
	for _, v := range verdicts {
		if v.Status != result.Skipped {
			notes = append(notes, result.TestStarted{Test: v.Test, Time: start})
		}
		notes = append(notes, result.TestFinished{Verdict: v})
		summary.Add(v)
	}
	return append(notes, result.RunFinished{Time: start.Add(time.Second), Summary: summary})
}

// ended is a run in which tests named by numbers ended as told, a letter each:
// p passed, f failed, b broken, k known to fail, s skipped; a minus is not there.
func ended(day int, endings string) []result.Note {
	began := time.Date(2026, 7, day, 2, 0, 0, 0, time.UTC)
	statuses := map[rune]result.Status{'p': result.Passed, 'f': result.Failed, 'b': result.Broken, 'k': result.KnownFailing, 's': result.Skipped}
	notes := []result.Note{result.RunStarted{Time: began, Engine: "reference 1"}}
	var s result.Summary
	for i, c := range endings {
		if c == '-' {
			continue
		}
		id := result.TestID{File: "specs/find.yml", Suite: "find", Description: fmt.Sprintf("t%d", i), Deployment: "replicaset 8.0", Iteration: 1}
		v := &result.Verdict{Test: id, Position: at(i+1, 5), Status: statuses[c], Began: began.Add(time.Duration(i) * time.Minute), Duration: time.Minute}
		s.Add(v)
		notes = append(notes, result.TestFinished{Verdict: v})
	}
	s.Duration = time.Duration(len(endings)) * time.Minute
	return append(notes, result.RunFinished{Summary: s})
}

// shard makes a run the run of a shard.
func shard(name string, notes []result.Note) []result.Note {
	notes = slices.Clone(notes)
	started := notes[0].(result.RunStarted)
	started.Shard = name
	notes[0] = started
	return notes
}

// cells is a run with cells: a good one, a bad one, one that is kept, one that
// broke before any test.
func cells() []result.Note {
	verdict := func(cell, test string, s result.Status) result.Note {
		return result.TestFinished{Verdict: &result.Verdict{Status: s, Duration: time.Second,
			Test: result.TestID{File: "f.yml", Suite: "s", Description: test, Deployment: "single 8.0", Cell: cell}}}
	}
	bad := result.Summary{Failed: 1, KnownFailing: 1, Duration: 90 * time.Second, Problems: []string{"p", "q"}}
	return []result.Note{
		result.RunStarted{Engine: "e", Total: 4, Files: 1},
		verdict("a", "t", result.Passed), result.CellFinished{Cell: "a", Summary: result.Summary{Passed: 1, Duration: time.Second}},
		verdict("b|c", "t", result.Failed), verdict("b|c", "u", result.KnownFailing), result.CellFinished{Cell: "b|c", Summary: bad},
		verdict("d", "t", result.Skipped), result.CellFinished{Cell: "d", Kept: true, Summary: result.Summary{Skipped: 1}},
		result.CellFinished{Cell: "e", Broken: "exit code 3: no\x1banswer"},
		result.RunFinished{Summary: result.Summary{Passed: 1, Failed: 1, KnownFailing: 1, Skipped: 1, Duration: 91 * time.Second}},
	}
}

// generate gives what a report says of a run.
func generate(g report.Generator, notes []result.Note) []byte {
	var out bytes.Buffer
	r := report.New("memory", g, &out)
	for _, n := range notes {
		r.Note(n)
	}
	return out.Bytes()
}

// plain gives the text report of a run.
func plain(o report.TextOptions, notes ...result.Note) string {
	return string(generate(report.Text(o), notes))
}

func lines(b []byte) []string { return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") }

func finished(v *result.Verdict) result.Note { return result.TestFinished{Verdict: v} }

func read(t *testing.T, text []byte) *report.Past {
	t.Helper()
	p, err := report.Read("r.json", bytes.NewReader(text))
	testkit.Check(t, err)
	return p
}

// earlier reads the report of a run for the page of a later one.
func earlier(t *testing.T, name string, notes []result.Note) *report.Earlier {
	t.Helper()
	text := generate(report.JSON(), notes)
	e, err := report.ReadEarlier(name, bytes.NewReader(text), time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
	testkit.Check(t, err)
	return e
}

// same reports the differences between what is wanted and what came.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}
