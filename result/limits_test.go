package result_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// events makes so many events whose commands have so many bytes, about.
func events(n, bytes int) (list []result.Event) {
	command, err := bson.Marshal(bson.D{{Key: "x", Value: strings.Repeat("x", bytes)}})
	if err != nil {
		panic(err)
	}
	for i := range n {
		list = append(list, result.Event{Sequence: int64(i + 1), Type: result.CommandStarted, Command: &result.CommandEvent{Command: command}})
	}
	return list
}

func TestTrimEvents(t *testing.T) {
	limits := result.Limits{Events: 8, EventBytes: 1000, Document: 400, Operations: 1, Decisions: 1, LogLines: 1, LogBytes: 1}
	for _, r := range []struct {
		reason   string
		events   []result.Event
		clients  int
		sequence []int64
		gap      result.Gap
	}{
		{"nothing", nil, 1, nil, result.Gap{}},
		{"as many as there may be", events(8, 10), 1, []int64{1, 2, 3, 4, 5, 6, 7, 8}, result.Gap{}},
		{"one more: three quarters of the limit come first", events(9, 10), 1, []int64{1, 2, 3, 4, 5, 6, 8, 9}, result.Gap{After: 6, Count: 1}},
		{"very many", events(100_000, 0), 1, []int64{1, 2, 3, 4, 5, 6, 99_999, 100_000}, result.Gap{After: 6, Count: 99_992}},
		{"few and large", events(5, 300), 1, []int64{1, 2, 5}, result.Gap{After: 2, Count: 2}},
		{"the first and the last are kept, however large", events(3, 380), 3, []int64{1, 3}, result.Gap{After: 1, Count: 1}},
		{"clients share the bytes", events(8, 100), 2, []int64{1, 2, 3, 8}, result.Gap{After: 3, Count: 4}},
	} {
		v := &result.Verdict{}
		for i := range r.clients {
			v.Clients = append(v.Clients, result.ClientLog{Client: fmt.Sprint(i), Events: slices.Clone(r.events)})
		}
		before := v.Clients
		v.Trim(limits)
		for _, c := range v.Clients {
			var got []int64
			for _, e := range c.Events {
				got = append(got, e.Sequence)
			}
			if !slices.Equal(got, r.sequence) || c.Omitted != r.gap {
				t.Errorf("%s: %v %+v, want %v %+v", r.reason, got, c.Omitted, r.sequence, r.gap)
			}
		}
		if len(before[0].Events) != len(r.events) {
			t.Errorf("%s: the list itself was cut", r.reason)
		}
		v.Trim(result.NoLimits())
		if len(v.Clients[0].Events) != len(r.sequence) || v.Clients[0].Omitted != r.gap {
			t.Errorf("%s: without limits something is left out", r.reason)
		}
	}
}

// Long documents are replaced wherever they are, and what the engine has keeps
// them.
func TestTrimDocuments(t *testing.T) {
	long, err := bson.Marshal(bson.D{{Key: "x", Value: strings.Repeat("long", 30_000)}})
	if err != nil {
		t.Fatal(err)
	}
	short, err := bson.Marshal(bson.D{{Key: "short", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	failure := &result.Error{Response: long, Partial: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: long}, WriteErrors: map[int]bson.Raw{3: long}, WriteConcernErrors: []bson.Raw{short}}
	kept := &result.Error{Response: short}
	command := &result.CommandEvent{Command: long}
	v := &result.Verdict{
		Clients: []result.ClientLog{{Events: []result.Event{{Command: command}, {Command: &result.CommandEvent{Reply: long}}, {Command: &result.CommandEvent{Failure: failure}}, {Command: &result.CommandEvent{Failure: kept}}, {Pool: &result.PoolEvent{}}}}},
		Operations: []result.OperationLog{{Outcome: result.Outcome{Err: failure}}, {Outcome: result.Outcome{Value: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: long}}},
			{Outcome: result.Outcome{Err: kept, Value: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: short}}}},
	}
	v.Trim(result.DefaultLimits())
	want := fmt.Sprintf(`{"leftOut": "%d bytes"}`, len(long))
	events, operations := v.Clients[0].Events, v.Operations
	for reason, got := range map[string]bson.Raw{
		"a command": events[0].Command.Command, "a reply": events[1].Command.Reply, "a failure's reply": events[2].Command.Failure.Response,
		"an error's reply": operations[0].Outcome.Err.Response, "a partial result": operations[0].Outcome.Err.Partial.Document(), "a result": operations[1].Outcome.Value.Document(),
	} {
		if got.String() != want {
			t.Errorf("%s: %.100s, want %s", reason, got, want)
		}
	}
	if got := operations[0].Outcome.Err.WriteConcernErrors; len(got) != 1 || got[0].String() != `{"leftOut": "1 write errors and 1 write concern errors"}` {
		t.Errorf("write errors: %v", got)
	}
	if operations[2].Outcome.Err != kept || events[3].Command.Failure != kept || operations[2].Outcome.Value.Document().String() != `{"short": {"$numberInt":"1"}}` {
		t.Error("what is short was changed")
	}
	if len(command.Command) != len(long) || len(failure.Response) != len(long) || len(failure.WriteErrors) != 1 {
		t.Error("what the verdict refers to was changed")
	}
}

// Of long texts the end is left out, in whole characters; of many the middle.
func TestTrimMismatches(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	v := &result.Verdict{Mismatches: make([]result.Mismatch, 20)}
	for i := range v.Mismatches {
		v.Mismatches[i] = result.Mismatch{Path: fmt.Sprint(i), Diff: "x" + long}
	}
	before := v.Mismatches
	v.Trim(result.DefaultLimits())
	if n := len(v.Mismatches); n != 3 || v.Mismatches[2].Path != "19" || v.OmittedMismatches != (result.Gap{After: 2, Count: 17}) {
		t.Errorf("%d mismatches, %+v", n, v.OmittedMismatches)
	}
	if d := v.Mismatches[0].Diff; !strings.HasSuffix(d, "ä… 34465 bytes left out") || strings.ContainsRune(d, '\uFFFD') {
		t.Errorf("…%s", d[len(d)-60:])
	}
	if len(before[0].Diff) != 100_001 {
		t.Error("the mismatch itself was cut")
	}
}

func TestTrimLists(t *testing.T) {
	v := &result.Verdict{Mismatches: make([]result.Mismatch, 1000), Operations: make([]result.OperationLog, 2000), ServerLog: make([]result.LogLine, 5000)}
	v.Operations[1999].Outcome.Decisions = make([]result.Decision, 100_000)
	for i := range v.ServerLog {
		v.ServerLog[i].Text = strings.Repeat("x", 400)
	}
	v.Trim(result.DefaultLimits())
	if n := len(v.Mismatches); n != 200 || v.OmittedMismatches != (result.Gap{After: 150, Count: 800}) {
		t.Errorf("%d mismatches, %+v", n, v.OmittedMismatches)
	}
	last := v.Operations[len(v.Operations)-1]
	if len(v.Operations) != 500 || v.OmittedOperations != (result.Gap{After: 375, Count: 1500}) || len(last.Outcome.Decisions) != 500 || last.Omitted.Count != 99_500 {
		t.Errorf("%d operations %+v, %d decisions %+v", len(v.Operations), v.OmittedOperations, len(last.Outcome.Decisions), last.Omitted)
	}
	if n := len(v.ServerLog); n != 20 || v.OmittedLog != (result.Gap{After: 15, Count: 4980}) {
		t.Errorf("%d lines of the log, %+v", n, v.OmittedLog)
	}
}
