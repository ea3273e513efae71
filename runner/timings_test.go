package runner

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// The time of the engine is divided according to the events and decisions that it reports.
func TestDivided(t *testing.T) {
	const ms = result.Duration(time.Millisecond)
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	out := func(kind result.EventType, address string, ms int) result.Event {
		return result.Event{Type: kind, Address: address, Time: at(ms)}
	}
	find := func(took result.Duration, failure *result.Error) result.Event {
		e := result.Event{Type: result.CommandSucceeded, CommandName: "find", Duration: took, Failure: failure}
		if failure != nil {
			e.Type = result.CommandFailed
		}
		return e
	}
	blocks := `{"configureFailPoint": "failCommand", "data": {"failCommands": ["find"], "blockConnection": true, "blockTimeMS": 20}}`
	for _, r := range []struct {
		reason    string
		failPoint string
		decisions []result.Decision
		events    []result.Event
		want      result.Timings // Engine is what is left of 100 ms
	}{
		{"an engine that reports nothing", "{}", nil, nil, result.Timings{}},
		{"a command", "{}", nil, []result.Event{find(9*ms, nil)}, result.Timings{Server: 9 * ms}},
		{"a blocked command", blocks, nil, []result.Event{find(29*ms, nil)},
			result.Timings{Server: 9 * ms, Blocked: 20 * ms}},
		{"a command that was not blocked", blocks, nil, []result.Event{find(9*ms, nil)}, result.Timings{Server: 9 * ms}},
		{"a blocked command that the client gave up", blocks, nil, []result.Event{find(9*ms, &result.Error{Client: true})},
			result.Timings{Blocked: 9 * ms}},
		{"a blocked command that fails", blocks, nil, []result.Event{find(21*ms, &result.Error{Code: 6})},
			result.Timings{Server: ms, Blocked: 20 * ms}},
		{"another command", blocks, nil,
			[]result.Event{{Type: result.CommandSucceeded, CommandName: "insert", Duration: 30 * ms}},
			result.Timings{Server: 30 * ms}},
		{"a fail point that does not block", `{"data": {"failCommands": ["find"], "blockTimeMS": 20}}`, nil,
			[]result.Event{find(29*ms, nil)},
			result.Timings{Server: 29 * ms}},
		{"waits", "{}", []result.Decision{{Action: "select", Took: 3 * ms}, {Action: "send", Took: 50 * ms},
			{Action: "back off", Took: 4 * ms},
			{Action: "select", Took: 5 * ms}}, nil, result.Timings{Selection: 8 * ms, BackOff: 4 * ms}},
		{"check-outs that overlap on one of two servers, and one that fails", "{}", nil, []result.Event{
			out(result.ConnectionCheckOutStarted, "a", 0), out(result.ConnectionCheckOutStarted, "a",
				2), out(result.ConnectionCheckOutStarted, "b", 3),
			out(result.ConnectionCheckedOut, "a", 5), out(result.ConnectionCheckOutFailed, "b",
				9), out(result.ConnectionCheckedOut, "a", 10)},
			result.Timings{Handshakes: 19 * ms}},
		{"a check-out that does not end, an end without a start, and one without times", "{}", nil, []result.Event{
			out(result.ConnectionCheckedOut, "a", 5), out(result.ConnectionCheckOutStarted, "a", 7),
			{Type: result.ConnectionCheckOutStarted, Address: "b"}, {Type: result.ConnectionCheckedOut,
				Address: "b"}}, result.Timings{}},
	} {
		var failPoint bson.Raw
		testkit.Check(t, bson.UnmarshalExtJSON([]byte(r.failPoint), false, &failPoint))
		run := &testRun{timings: result.Timings{Setup: ms, Engine: 100 * ms}}
		run.blocksFrom(failPoint)
		run.waited(r.decisions)
		r.want.Setup, r.want.Engine = ms, 100*ms-r.want.Sum()
		testkit.Equal(t, r.reason, run.divided([]result.ClientLog{{Events: r.events}}), r.want)
	}
	run := &testRun{timings: result.Timings{Engine: ms}}
	testkit.Equal(t, "threads may take longer than the test",
		run.divided([]result.ClientLog{{Events: []result.Event{find(9*ms, nil)}}}),
		result.Timings{Server: 9 * ms})
}
