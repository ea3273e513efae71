package result_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// events returns n events whose commands have about the given size.
func events(n, bytes int) (list []result.Event) {
	command, err := bson.Marshal(bson.D{{Key: "x", Value: strings.Repeat("x", bytes)}})
	if err != nil {
		panic(err)
	}
	for i := range n {
		list = append(list, result.Event{Sequence: int64(i + 1), Type: result.CommandStarted, Body: command})
	}
	return list
}

func TestTrimEvents(t *testing.T) {
	limits := result.Limits{Events: 8, EventBytes: 1000, Document: 400, Operations: 1, Decisions: 1, LogLines: 1,
		LogBytes: 1}
	for _, r := range []struct {
		reason   string
		events   []result.Event
		clients  int
		sequence []int64
		gap      result.Gap
	}{
		{"nothing", nil, 1, nil, result.Gap{}},
		{"as many as allowed", events(8, 10), 1, []int64{1, 2, 3, 4, 5, 6, 7, 8}, result.Gap{}},
		{"one too many: three quarters of the limit are kept from the start", events(9, 10), 1,
			[]int64{1, 2, 3, 4, 5, 6, 8, 9}, result.Gap{After: 6, Count: 1}},
		{"very many", events(1000, 0), 1, []int64{1, 2, 3, 4, 5, 6, 999, 1000}, result.Gap{After: 6, Count: 992}},
		{"few and large", events(5, 300), 1, []int64{1, 2, 5}, result.Gap{After: 2, Count: 2}},
		{"the first and the last are always kept", events(3, 380), 3, []int64{1, 3}, result.Gap{After: 1, Count: 1}},
		{"one that is too large", events(1, 380), 3, []int64{1}, result.Gap{}},
		{"also if there are no others", events(2, 380), 3, []int64{1, 2}, result.Gap{}},
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
			t.Errorf("%s: the original list was changed", r.reason)
		}
		v.Trim(result.DefaultLimits())
		if len(v.Clients[0].Events) != len(r.sequence) || v.Clients[0].Omitted != r.gap {
			t.Errorf("%s: larger limits omitted events", r.reason)
		}
	}
}

// Long documents are replaced everywhere in the verdict, but not in the engine's
// values.
func TestTrimDocuments(t *testing.T) {
	long, err := bson.Marshal(bson.D{{Key: "x", Value: strings.Repeat("long", 30_000)}})
	testkit.Check(t, err)
	short, err := bson.Marshal(bson.D{{Key: "short", Value: 1}})
	testkit.Check(t, err)
	failure := &result.Error{Response: long,
		Partial:     result.Value{RawValue: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: long}},
		WriteErrors: map[int]result.Document{3: long}, WriteConcernErrors: []result.Document{short}}
	kept := &result.Error{Response: short}
	command := result.Event{Body: long}
	v := &result.Verdict{
		Evidence: result.Evidence{Clients: []result.ClientLog{{Events: []result.Event{command, {Body: long},
			{Failure: failure}, {Failure: kept}, {}}}},
			Operations: []result.OperationLog{{Outcome: result.Outcome{Err: failure}},
				{Outcome: result.Outcome{Value: result.Value{RawValue: bson.RawValue{Type: bson.TypeEmbeddedDocument,
					Value: long}}}},
				{Outcome: result.Outcome{Err: kept,
					Value: result.Value{RawValue: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: short}}}}}},
	}
	engine := v.Operations
	v.Trim(result.DefaultLimits())
	want := fmt.Sprintf(`{"leftOut": "%d bytes"}`, len(long))
	events, operations := v.Clients[0].Events, v.Operations
	for reason, got := range map[string]result.Document{
		"a command": events[0].Body, "a reply": events[1].Body, "a failure's reply": events[2].Failure.Response,
		"an error's reply": operations[0].Outcome.Err.Response,
		"a partial result": []byte(operations[0].Outcome.Err.Partial.Document()),
		"a result":         []byte(operations[1].Outcome.Value.Document()),
	} {
		testkit.Equal(t, reason, got.String(), want)
	}
	testkit.Equal(t, "write errors", operations[0].Outcome.Err.WriteConcernErrors[0].String(),
		`{"leftOut": "1 write error and 1 write concern error"}`)
	if operations[2].Outcome.Err != kept || events[3].Failure != kept ||
		operations[2].Outcome.Value.Document().String() != `{"short": {"$numberInt":"1"}}` {
		t.Error("a short document was changed")
	}
	if len(command.Body) != len(long) || len(failure.Response) != len(long) || len(failure.WriteErrors) != 1 {
		t.Error("the original documents were changed")
	}
	if engine[0].Outcome.Err != failure || len(engine[1].Outcome.Value.Value) != len(long) {
		t.Error("the engine's operations were changed")
	}
}

// Long texts are truncated at a character boundary; long lists lose their middle.
func TestTrimMismatches(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	v := &result.Verdict{Evidence: result.Evidence{Mismatches: make([]result.Mismatch, 20)}}
	for i := range v.Mismatches {
		v.Mismatches[i] = result.Mismatch{Path: fmt.Sprint(i), Diff: "x" + long}
	}
	before := v.Mismatches
	v.Trim(result.DefaultLimits())
	if n := len(v.Mismatches); n != 3 || v.Mismatches[2].Path != "19" ||
		v.OmittedMismatches != (result.Gap{After: 2, Count: 17}) {
		t.Errorf("%d mismatches, %+v", n, v.OmittedMismatches)
	}
	if d := v.Mismatches[0].Diff; !strings.HasSuffix(d, "ä… 34465 bytes left out") || strings.ContainsRune(d, '\uFFFD') {
		t.Errorf("…%s", d[len(d)-60:])
	}
	if len(before[0].Diff) != 100_001 {
		t.Error("the original mismatch was changed")
	}
}

// The start and the end of a long list are kept.
func TestTrimLists(t *testing.T) {
	v := &result.Verdict{Evidence: result.Evidence{Mismatches: make([]result.Mismatch, 1000),
		Operations: make([]result.OperationLog, 2000), ServerLog: make([]result.LogLine, 5000)}}
	v.Operations[1999].Outcome.Decisions = make([]result.Decision, 1000)
	for i := range v.ServerLog {
		v.ServerLog[i].Text = strings.Repeat("x", 400)
	}
	v.Trim(result.DefaultLimits())
	last := v.Operations[len(v.Operations)-1]
	for _, r := range []struct {
		reason string
		kept   int
		gap    result.Gap
		want   int
		left   result.Gap
	}{
		{"mismatches of a test", len(v.Mismatches), v.OmittedMismatches, 200, result.Gap{After: 150, Count: 800}},
		{"operations of a test", len(v.Operations), v.OmittedOperations, 500, result.Gap{After: 375, Count: 1500}},
		{"decisions of an operation", len(last.Outcome.Decisions), last.Omitted, 500, result.Gap{After: 375, Count: 500}},
		{"lines of the log, limited by bytes", len(v.ServerLog), v.OmittedLog, 20, result.Gap{After: 15, Count: 4980}},
	} {
		if r.kept != r.want || r.gap != r.left {
			t.Errorf("%s: kept %d, omitted %+v, want %d, %+v", r.reason, r.kept, r.gap, r.want, r.left)
		}
	}
	v.Trim(result.Limits{Mismatches: 8, MismatchBytes: 8, Operations: 500, EventBytes: 1, Decisions: 500, LogLines: 8,
		LogBytes: 4000})
	if len(v.Mismatches) != 8 || v.OmittedMismatches != (result.Gap{After: 6, Count: 992}) ||
		v.OmittedLog != (result.Gap{After: 6, Count: 4992}) {
		t.Errorf("gaps after trimming twice: %+v, %+v", v.OmittedMismatches, v.OmittedLog)
	}
}

// The size of a mismatch and of an event includes all parts.
func TestSizes(t *testing.T) {
	text := strings.Repeat("x", 600)
	for i, one := range []result.Mismatch{{Path: text}, {Message: text}, {Want: text}, {Got: text}, {Diff: text}} {
		v := &result.Verdict{Evidence: result.Evidence{Mismatches: []result.Mismatch{one, one, one}}}
		v.Trim(result.Limits{Mismatches: 9, MismatchBytes: 1000, Document: 600})
		if len(v.Mismatches) != 2 || v.OmittedMismatches != (result.Gap{After: 1, Count: 1}) {
			t.Errorf("part %d: kept %d, omitted %+v", i, len(v.Mismatches), v.OmittedMismatches)
		}
	}
	document := events(1, 600)[0].Body
	for i, one := range []result.Event{{Body: document}, {Failure: &result.Error{Response: document}}} {
		v := &result.Verdict{Evidence: result.Evidence{Clients: []result.ClientLog{{Events: []result.Event{one, one,
			{}, one}}}}}
		v.Trim(result.Limits{Events: 9, EventBytes: 1000, Document: 1000})
		if c := v.Clients[0]; len(c.Events) != 2 || c.Omitted != (result.Gap{After: 1, Count: 2}) {
			t.Errorf("part %d: kept %d, omitted %+v", i, len(c.Events), c.Omitted)
		}
	}
}

// A document of exactly the limit is kept, a longer one is not.
func TestLimitsAreInclusive(t *testing.T) {
	document := events(1, 100)[0].Body
	exactly := result.Limits{Document: len(document), Operations: 1, Events: 9, EventBytes: 9999}
	value := result.Value{RawValue: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document}}
	for reason, r := range map[string]struct {
		err  *result.Error
		kept func(*result.Error) bool
	}{
		"a response": {&result.Error{Response: document},
			func(e *result.Error) bool { return len(e.Response) == len(document) }},
		"a partial result": {&result.Error{Partial: value},
			func(e *result.Error) bool { return len(e.Partial.Value) == len(document) }},
		"a write error": {&result.Error{WriteErrors: map[int]result.Document{0: document}},
			func(e *result.Error) bool { return len(e.WriteErrors) == 1 }},
		"a write concern error": {&result.Error{WriteConcernErrors: []result.Document{document}},
			func(e *result.Error) bool { return len(e.WriteConcernErrors[0]) == len(document) }},
	} {
		for _, less := range []int{0, 1} {
			limits := exactly
			limits.Document -= less
			v := &result.Verdict{
				Evidence: result.Evidence{Operations: []result.OperationLog{{Outcome: result.Outcome{Err: r.err}}},
					Clients: []result.ClientLog{{Events: []result.Event{{Body: document, Failure: r.err}}}}},
			}
			v.Trim(limits)
			got, event := v.Operations[0].Outcome.Err, v.Clients[0].Events[0]
			if r.kept(got) != (less == 0) || (got == r.err) != (less == 0) || (event.Failure == r.err) != (less == 0) {
				t.Errorf("%s of %d bytes with a limit of %d: %+v", reason, len(document), limits.Document, got)
			}
			if len(event.Body) == len(document) != (less == 0) {
				t.Errorf("a command of %d bytes with a limit of %d: %s", len(document), limits.Document, event.Body)
			}
		}
	}
	for _, many := range []*result.Error{{WriteErrors: map[int]result.Document{0: nil, 1: nil}},
		{WriteConcernErrors: make([]result.Document, 2)}} {
		for _, limit := range []int{1, 2} {
			v := &result.Verdict{Evidence: result.Evidence{Operations: []result.OperationLog{{Outcome: result.Outcome{Err: many}}}}}
			v.Trim(result.Limits{Document: 1000, Operations: limit, EventBytes: 1})
			if kept := v.Operations[0].Outcome.Err == many; kept != (limit == 2) {
				t.Errorf("two of %+v with a limit of %d: kept is %t", many, limit, kept)
			}
		}
	}
}
