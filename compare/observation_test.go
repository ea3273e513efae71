package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func raw(t testing.TB, v any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func session(n byte) bson.D {
	id := make([]byte, 16)
	id[0] = n
	return bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}
}

// story builds a client's log from words: "insert@a s1 t7" begins a command on
// a server in a session with a transaction number, "ok", "wce" and "fail"
// end it, "clear" clears a pool.
func story(t testing.TB, text string) []result.Event {
	t.Helper()
	var out []result.Event
	name, at := "", ""
	for _, step := range strings.Split(text, "; ") {
		words := strings.Fields(step)
		e := result.Event{Sequence: int64(len(out)) + 1}
		switch words[0] {
		case "ok":
			e.Type, e.Command = result.CommandSucceeded, &result.CommandEvent{CommandName: name, Reply: raw(t, bson.D{{Key: "ok", Value: 1}})}
		case "wce":
			e.Type, e.Command = result.CommandSucceeded, &result.CommandEvent{CommandName: name,
				Reply: raw(t, bson.D{{Key: "ok", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}}}})}
		case "fail":
			e.Type, e.Command = result.CommandFailed, &result.CommandEvent{CommandName: name, Failure: &result.Error{Code: 6, HasCode: true}}
		case "broken":
			e.Type, e.Command = result.CommandFailed, &result.CommandEvent{CommandName: name, Failure: &result.Error{Client: true}}
		case "clear":
			e.Type, e.Pool = result.PoolCleared, &result.PoolEvent{}
		case "opened":
			e.Type, e.Pool = result.ConnectionCreated, &result.PoolEvent{}
		default:
			name, at, _ = strings.Cut(words[0], "@")
			command := bson.D{{Key: name, Value: "c"}}
			for _, w := range words[1:] {
				switch w[0] {
				case 's':
					command = append(command, bson.E{Key: "lsid", Value: session(w[1])})
				case 't':
					command = append(command, bson.E{Key: "txnNumber", Value: int64(w[1])})
				}
			}
			e.Type, e.Command = result.CommandStarted, &result.CommandEvent{CommandName: name, DatabaseName: "d", Command: raw(t, command)}
		}
		e.Address = at
		out = append(out, e)
	}
	return out
}

// Two logs are the same, or not, to a comparison.
func TestFolding(t *testing.T) {
	for _, row := range []struct {
		why         string
		left, right string
		sharded     bool
		same        bool
	}{
		{"the same", "find@a s1; ok", "find@a s1; ok", false, true},
		{"ids of sessions are chance", "find@a s1; ok", "find@a s9; ok", false, true},
		{"whether a session is the same is not", "find@a s1; fail; find@a s1; ok", "find@a s1; fail; find@a s2; ok", false, false},
		{"numbers of transactions begin anywhere", "insert@a s1 t1; ok", "insert@a s1 t5; ok", false, true},
		{"a retry keeps the number", "insert@a s1 t1; fail; insert@a s1 t1; ok", "insert@a s1 t1; fail; insert@a s1 t2; ok", false, false},
		{"with a number or without", "insert@a s1 t1; ok", "insert@a s1; ok", false, false},
		{"one attempt or two", "find@a; fail", "find@a; fail; find@a; ok", false, false},
		{"failed or not", "find@a; fail", "find@a; ok", false, false},
		{"an error or no reply", "find@a; fail", "find@a; broken", false, false},
		{"a write concern error in a reply that is ok", "insert@a; wce", "insert@a; ok", false, false},
		{"addresses are chance", "find@a; ok", "find@b; ok", true, true},
		{"where the second attempt goes is not", "find@a; fail; find@b; ok", "find@a; fail; find@a; ok", true, false},
		{"members of a replica set are any", "find@a; fail; find@b; ok", "find@a; fail; find@a; ok", false, true},
		{"where the third goes is chance again", "find@a; fail; find@b; fail; find@a; ok", "find@a; fail; find@b; fail; find@b; ok", true, true},
		{"another operation begins anywhere", "find@a; fail; count@b; ok", "find@a; fail; count@a; ok", true, true},
		{"a pool is cleared before or after the event", "find@a; clear; broken", "find@a; broken; clear", false, true},
		{"a pool is cleared or not", "find@a; broken; clear", "find@a; broken", false, false},
		{"how many connections there are is each driver's own", "opened; find@a; ok", "find@a; ok; opened", false, true},
		{"cursors are killed or not", "find@a; ok; killCursors@a; ok", "find@a; ok", false, true},
	} {
		l, r := clientLines(story(t, row.left), row.sharded), clientLines(story(t, row.right), row.sharded)
		if slices.Equal(l, r) != row.same {
			t.Errorf("%s: same is %t, want %t\n%s\n%s", row.why, !row.same, row.same, strings.Join(l, "\n"), strings.Join(r, "\n"))
		}
	}
}

func value(t testing.TB, v any) bson.RawValue {
	return raw(t, bson.D{{Key: "v", Value: v}}).Lookup("v")
}

func TestOutcomes(t *testing.T) {
	for _, row := range []struct {
		why         string
		name        string
		left, right result.Outcome
		same        bool
	}{
		{"numbers are equal by value", "find", result.Outcome{Value: value(t, int32(1))}, result.Outcome{Value: value(t, 1.0)}, true},
		{"and only by value", "find", result.Outcome{Value: value(t, int32(1))}, result.Outcome{Value: value(t, 1.5)}, false},
		{"1 is not \"1\"", "find", result.Outcome{Value: value(t, 1)}, result.Outcome{Value: value(t, "1")}, false},
		{"keys have no order in results", "find", result.Outcome{Value: value(t, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}})},
			result.Outcome{Value: value(t, bson.D{{Key: "b", Value: 2}, {Key: "a", Value: 1}})}, true},
		{"lists have", "find", result.Outcome{Value: value(t, bson.A{1, 2})}, result.Outcome{Value: value(t, bson.A{2, 1})}, false},
		{"lists of names have not", "listIndexNames", result.Outcome{Value: value(t, bson.A{"a", "b"})}, result.Outcome{Value: value(t, bson.A{"b", "a"})}, true},
		{"what is in a deployment is of other tests", "listCollectionNames", result.Outcome{Value: value(t, bson.A{"a", "b"})}, result.Outcome{Value: value(t, bson.A{"b"})}, true},
		{"a list is no error", "listCollectionNames", result.Outcome{Value: value(t, bson.A{"a", "b"})}, result.Outcome{Err: &result.Error{}}, false},
		{"errors of close are suppressed", "close", result.Outcome{}, result.Outcome{Err: &result.Error{}}, true},
		{"lists of names have lengths", "listIndexNames", result.Outcome{Value: value(t, bson.A{"a", "a"})}, result.Outcome{Value: value(t, bson.A{"a"})}, false},
		{"counts of other operations may be left out", "insertMany", result.Outcome{Value: value(t, bson.D{{Key: "insertedCount", Value: 2}, {Key: "deletedCount", Value: 0}})},
			result.Outcome{Value: value(t, bson.D{{Key: "insertedCount", Value: 2}})}, true},
		{"counts may not differ", "insertMany", result.Outcome{Value: value(t, bson.D{{Key: "insertedCount", Value: 2}})},
			result.Outcome{Value: value(t, bson.D{{Key: "insertedCount", Value: 1}})}, false},
		{"nothing is not null", "find", result.Outcome{}, result.Outcome{Value: value(t, nil)}, false},
		{"an error is not a value", "find", result.Outcome{Err: &result.Error{}}, result.Outcome{}, false},
		{"messages are each driver's own", "find", result.Outcome{Err: &result.Error{Message: "a"}}, result.Outcome{Err: &result.Error{Message: "b"}}, true},
		{"codes are not", "find", result.Outcome{Err: &result.Error{HasCode: true, Code: 1}}, result.Outcome{Err: &result.Error{HasCode: true, Code: 2}}, false},
		{"who raised it is not", "find", result.Outcome{Err: &result.Error{Client: true}}, result.Outcome{Err: &result.Error{}}, false},
		{"labels with a meaning count", "find", result.Outcome{Err: &result.Error{Labels: []string{"RetryableWriteError"}}}, result.Outcome{Err: &result.Error{}}, false},
		{"labels of a driver's own do not", "find", result.Outcome{Err: &result.Error{Labels: []string{"NetworkError"}}}, result.Outcome{Err: &result.Error{}}, true},
		{"which write failed counts", "bulkWrite", result.Outcome{Err: &result.Error{WriteErrors: map[int]bson.Raw{0: raw(t, bson.D{{Key: "code", Value: 1}})}}},
			result.Outcome{Err: &result.Error{WriteErrors: map[int]bson.Raw{1: raw(t, bson.D{{Key: "code", Value: 1}})}}}, false},
	} {
		l := outcome(result.OperationLog{Name: row.name, Outcome: row.left}, &folder{})
		r := outcome(result.OperationLog{Name: row.name, Outcome: row.right}, &folder{})
		if (l == r) != row.same {
			t.Errorf("%s: same is %t, want %t\n%s\n%s", row.why, !row.same, row.same, l, r)
		}
	}
}

// Pairs of verdicts are compared, explained, or left out, and none is lost.
func TestPairs(t *testing.T) {
	verdict := func(name, deployment string, status result.Status, log string) *result.Verdict {
		v := &result.Verdict{Test: result.TestID{File: "f.yml", Description: name, Deployment: deployment}, Status: status, Reason: "why"}
		if log != "" {
			v.Clients = []result.ClientLog{{Client: "client", Events: story(t, log)}}
		}
		return v
	}
	for _, row := range []struct {
		why         string
		left, right *result.Verdict
		want        string
	}{
		{"the same", verdict("a", "single", result.Passed, "find@a; ok"), verdict("a", "single", result.Passed, "find@a; ok"), "1 same, 0 different, 0 explained, 0 not compared"},
		{"another verdict", verdict("a", "single", result.Passed, ""), verdict("a", "single", result.Failed, ""), "0 same, 1 different, 0 explained, 0 not compared"},
		{"another log", verdict("a", "single", result.Passed, "find@a; ok"), verdict("a", "single", result.Passed, "find@a; fail"), "0 same, 1 different, 0 explained, 0 not compared"},
		{"an engine that lacks something", verdict("a", "single", result.Passed, "find@a; ok"), verdict("a", "single", result.Skipped, ""), "0 same, 0 different, 0 explained, 1 not compared"},
		{"a known failure", verdict("a", "single", result.Passed, "find@a; ok"), verdict("a", "single", result.KnownFailing, ""), "0 same, 0 different, 1 explained, 0 not compared"},
		{"a test that one side never ran", verdict("a", "single", result.Passed, ""), verdict("b", "single", result.Passed, ""), "0 same, 2 different, 0 explained, 0 not compared"},
		{"commands at the same time come in any order", verdict("a", "single", result.Passed, "find@a s1; count@a; ok; ok"), verdict("a", "single", result.Passed, "count@a; find@a s1; ok; ok"), "1 same, 0 different, 0 explained, 0 not compared"},
		{"what threads do comes in any order", verdict("threads", "single", result.Passed, "find@a s1; ok; find@a s2; fail"), verdict("threads", "single", result.Passed, "find@a s1; fail; find@a s1; ok"), "1 same, 0 different, 0 explained, 0 not compared"},
		{"which of two mongoses fails is chance", verdict("a", "sharded 8.0", result.Passed, "find@a; fail; find@b; ok"), verdict("a", "sharded 8.0", result.Passed, "find@b; ok"), "1 same, 0 different, 0 explained, 0 not compared"},
		{"what became of the test is not", verdict("a", "sharded 8.0", result.Passed, "find@a; fail; find@b; ok"), verdict("a", "sharded 8.0", result.Failed, "find@b; ok"), "0 same, 1 different, 0 explained, 0 not compared"},
	} {
		threads := func(id result.TestID) bool { return id.Description == "threads" }
		found := pairs([]*result.Verdict{row.left}, []*result.Verdict{row.right}, false, threads)
		if got := Count(found).String(); got != row.want {
			t.Errorf("%s: %s, want %s", row.why, got, row.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	p := Pair{Differences: []Difference{
		{Aspect: "verdict", Left: "passed", Right: "failed: f.yml:3:1: operations[0]: wrong"},
		{Aspect: "events", Where: "client", Left: "send find\n  find failed", Right: "send find\n  find failed\nsend find"},
	}}
	want := `  verdict
    reference: passed
    driver: failed: f.yml:3:1: operations[0]: wrong
  events client (- reference, + driver)
      send find
        find failed
    + send find
`
	if got := p.Describe("reference", "driver"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
