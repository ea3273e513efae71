package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func raw(t testing.TB, v any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(v)
	testkit.Check(t, err)
	return doc
}

// story builds a client's log from words: "insert@a s1 t7" begins a command on
// a server in a session with a transaction number, "ok", "wce", "fail" and "broken"
// end it, "clear" clears a pool, "opened" opens a connection.
func story(t testing.TB, text string) (out []result.Event) {
	t.Helper()
	name, at := "", ""
	reply := func(more ...bson.E) *result.CommandEvent {
		return &result.CommandEvent{CommandName: name, Reply: raw(t, append(bson.D{{Key: "ok", Value: 1}}, more...))}
	}
	for step := range strings.SplitSeq(text, "; ") {
		words := strings.Fields(step)
		e := result.Event{Sequence: int64(len(out)) + 1}
		switch words[0] {
		case "ok":
			e.Type, e.Command = result.CommandSucceeded, reply()
		case "wce":
			e.Type, e.Command = result.CommandSucceeded, reply(bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}}})
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
				if w[0] == 's' {
					id := append(make([]byte, 15), w[1])
					command = append(command, bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}})
				} else {
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
		{"ids of sessions are random", "find@a s1; ok", "find@a s9; ok", false, true},
		{"whether a session is the same is not random", "find@a s1; fail; find@a s1; ok", "find@a s1; fail; find@a s2; ok", false, false},
		{"numbers of transactions begin anywhere", "insert@a s1 t1; ok", "insert@a s1 t5; ok", false, true},
		{"a retry keeps the number", "insert@a s1 t1; fail; insert@a s1 t1; ok", "insert@a s1 t1; fail; insert@a s1 t2; ok", false, false},
		{"with a number or without", "insert@a s1 t1; ok", "insert@a s1; ok", false, false},
		{"one attempt or two", "find@a; fail", "find@a; fail; find@a; ok", false, false},
		{"failed or not", "find@a; fail", "find@a; ok", false, false},
		{"an error or no reply", "find@a; fail", "find@a; broken", false, false},
		{"a write concern error in a reply that is ok", "insert@a; wce", "insert@a; ok", false, false},
		{"addresses are random", "find@a; ok", "find@b; ok", true, true},
		{"where the second attempt goes is not random", "find@a; fail; find@b; ok", "find@a; fail; find@a; ok", true, false},
		{"members of a replica set are any", "find@a; fail; find@b; ok", "find@a; fail; find@a; ok", false, true},
		{"where the third goes is random again", "find@a; fail; find@b; fail; find@a; ok", "find@a; fail; find@b; fail; find@b; ok", true, true},
		{"another operation begins anywhere", "find@a; fail; count@b; ok", "find@a; fail; count@a; ok", true, true},
		{"a pool is cleared before or after the event", "find@a; clear; broken", "find@a; broken; clear", false, true},
		{"a pool is cleared or not", "find@a; broken; clear", "find@a; broken", false, false},
		{"the number of connections is up to the driver", "opened; find@a; ok", "find@a; ok; opened", false, true},
		{"cursors are killed or not", "find@a; ok; killCursors@a; ok", "find@a; ok", false, true},
	} {
		l, r := clientLines(story(t, row.left), row.sharded), clientLines(story(t, row.right), row.sharded)
		if slices.Equal(l, r) != row.same {
			t.Errorf("%s: same is %t, want %t\n%s\n%s", row.why, !row.same, row.same, strings.Join(l, "\n"), strings.Join(r, "\n"))
		}
	}
}

// Two outcomes of an operation are the same, or not.
func TestOutcomes(t *testing.T) {
	fail := func(e result.Error) result.Outcome { return result.Outcome{Err: &e} }
	of := func(json string) result.Outcome {
		var doc bson.Raw
		testkit.Check(t, bson.UnmarshalExtJSON([]byte(`{"v":`+json+`}`), true, &doc))
		return result.Outcome{Value: doc.Lookup("v")}
	}
	nothing, failed, one := result.Outcome{}, fail(result.Error{}), raw(t, bson.D{{Key: "code", Value: 1}})
	for _, row := range []struct {
		why         string
		name        string
		left, right result.Outcome
		same        bool
	}{
		{"numbers are equal by value", "find", of(`{"$numberInt":"1"}`), of(`{"$numberDouble":"1"}`), true},
		{"and only by value", "find", of(`{"$numberInt":"1"}`), of(`{"$numberDouble":"1.5"}`), false},
		{"1 is not \"1\"", "find", of(`{"$numberInt":"1"}`), of(`"1"`), false},
		{"keys of results have no order", "find", of(`{"a":"1","b":"2"}`), of(`{"b":"2","a":"1"}`), true},
		{"lists have an order", "find", of(`["1","2"]`), of(`["2","1"]`), false},
		{"lists of names have no order", "listIndexNames", of(`["a","b"]`), of(`["b","a"]`), true},
		{"other tests decide what a deployment holds", "listCollectionNames", of(`["a","b"]`), of(`["b"]`), true},
		{"a list is not an error", "listCollectionNames", of(`["a","b"]`), failed, false},
		{"errors of close are suppressed", "close", nothing, failed, true},
		{"lists of names have lengths", "listIndexNames", of(`["a","a"]`), of(`["a"]`), false},
		{"counts of other operations may be left out", "insertMany", of(`{"insertedCount":2,"deletedCount":0}`), of(`{"insertedCount":2}`), true},
		{"counts may not differ", "insertMany", of(`{"insertedCount":2}`), of(`{"insertedCount":1}`), false},
		{"nothing is not null", "find", nothing, of(`null`), false},
		{"an error is not a value", "find", failed, nothing, false},
		{"messages are up to the driver", "find", fail(result.Error{Message: "a"}), fail(result.Error{Message: "b"}), true},
		{"codes are not up to the driver", "find", fail(result.Error{HasCode: true, Code: 1}), fail(result.Error{HasCode: true, Code: 2}), false},
		{"neither is who raised it", "find", fail(result.Error{Client: true}), failed, false},
		{"labels with a meaning count", "find", fail(result.Error{Labels: []string{"RetryableWriteError"}}), failed, false},
		{"labels that a driver makes up do not", "find", fail(result.Error{Labels: []string{"NetworkError"}}), failed, true},
		{"which write failed counts", "bulkWrite", fail(result.Error{WriteErrors: map[int]bson.Raw{0: one}}),
			fail(result.Error{WriteErrors: map[int]bson.Raw{1: one}}), false},
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
	const passed = result.Passed
	on := func(where string, status result.Status, log string) *result.Verdict {
		name, deployment, _ := strings.Cut(where, " ")
		v := &result.Verdict{Test: result.TestID{File: "f.yml", Description: name, Deployment: deployment}, Status: status, Reason: "why"}
		if log != "" {
			v.Clients = []result.ClientLog{{Client: "client", Events: story(t, log)}}
		}
		return v
	}
	for _, row := range []struct {
		why         string
		left, right *result.Verdict
		want        string // same/different/explained/not compared
	}{
		{"the same", on("a single", passed, "find@a; ok"), on("a single", passed, "find@a; ok"), "1/0/0/0"},
		{"another verdict", on("a single", passed, ""), on("a single", result.Failed, ""), "0/1/0/0"},
		{"another log", on("a single", passed, "find@a; ok"), on("a single", passed, "find@a; fail"), "0/1/0/0"},
		{"an engine that lacks something", on("a single", passed, "find@a; ok"), on("a single", result.Skipped, ""), "0/0/0/1"},
		{"a known failure", on("a single", passed, "find@a; ok"), on("a single", result.KnownFailing, ""), "0/0/1/0"},
		{"a test that one side did not run", on("a single", passed, ""), on("b single", passed, ""), "0/2/0/0"},
		{"commands at the same time come in any order", on("a single", passed, "find@a s1; count@a; ok; ok"), on("a single", passed, "count@a; find@a s1; ok; ok"), "1/0/0/0"},
		{"what threads do comes in any order", on("threads single", passed, "find@a s1; ok; find@a s2; fail"), on("threads single", passed, "find@a s1; fail; find@a s1; ok"), "1/0/0/0"},
		{"which of two mongoses fails is random", on("a sharded", passed, "find@a; fail; find@b; ok"), on("a sharded", passed, "find@b; ok"), "1/0/0/0"},
		{"the end of the test is not random", on("a sharded", passed, "find@a; fail; find@b; ok"), on("a sharded", result.Failed, "find@b; ok"), "0/1/0/0"},
	} {
		threads := func(id result.TestID) bool { return id.Description == "threads" }
		found := pairs([2]string{}, []*result.Verdict{row.left}, []*result.Verdict{row.right}, false, threads)
		c := Count(found)
		testkit.Equal(t, row.why, fmt.Sprintf("%d/%d/%d/%d", c.Same, c.Different, c.Explained, c.NotCompared), row.want)
	}
}

func TestDescribe(t *testing.T) {
	p := Pair{Differences: []Difference{
		{Aspect: "verdict", Left: "passed", Right: "failed: f.yml:3:1: operations[0]: wrong"},
		{Aspect: "events", Where: "client", Left: "send find\n  find failed", Right: "send find\n  find failed\nsend find"},
	}}
	testkit.Equal(t, "the description", p.Describe("reference", "driver"), `  verdict
    reference: passed
    driver: failed: f.yml:3:1: operations[0]: wrong
  events client (- reference, + driver)
      send find
        find failed
    + send find
`)
}
