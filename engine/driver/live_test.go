package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// live is an engine test on an embedded replica set.
type live struct {
	*testing.T
	test engine.Test
	uri  string
}

func start(t *testing.T) *live {
	t.Helper()
	d, err := embedded.Start(t.Context(), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	test, err := New().Begin(t.Context())
	testkit.Check(t, err)
	t.Cleanup(func() { _ = test.End(context.Background()) })
	l := &live{t, test, d.URI()}
	l.open("client", "client", `{}`)
	l.open("database", "database", `{"client": "client", "databaseName": "db"}`)
	l.open("collection", "collection", `{"database": "database", "collectionName": "coll"}`)
	l.open("bucket", "bucket", `{"database": "database"}`)
	l.open("session", "session", `{"client": "client"}`)
	return l
}

func (l *live) try(kind, id, options string) error {
	var d bson.D
	testkit.Check(l, bson.Unmarshal(document(l, options), &d))
	return l.test.Open(l.Context(), engine.Entity{Kind: kind, ID: id, URI: l.uri,
		Options: raw(l, append(bson.D{{Key: "id", Value: id}}, d...))})
}

func (l *live) open(kind, id, options string) {
	l.Helper()
	testkit.Check(l, l.try(kind, id, options))
}

func (l *live) do(object, name, arguments string) result.Outcome {
	l.Helper()
	return l.test.Do(l.Context(), engine.Operation{Object: object, Name: name, Arguments: document(l, arguments)})
}

func (l *live) must(object, name, arguments string) bson.RawValue {
	l.Helper()
	out := l.do(object, name, arguments)
	if out.Err != nil {
		l.Fatalf("%s on %s: %v", name, object, out.Err)
	}
	return out.Value.RawValue
}

// play performs an operation or opens an entity, and returns its outcome.
func (l *live) play(t *testing.T, line string) string {
	words := append(strings.SplitN(line, " ", 3), "")
	var err error
	var out result.Outcome
	if words[0] == "open" {
		err = l.try(words[1], "opened", words[2])
	} else if out = l.do(words[0], words[1], words[2]); out.Err != nil {
		err = out.Err
	}
	return outcome(shown(out.Value.RawValue), err)
}

func shown(v bson.RawValue) string {
	if v.Type == 0 {
		return "nothing"
	}
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return err.Error()
	}
	return string(text[len(`{"v":`) : len(text)-1])
}

// TestResults covers what engine/enginetest does not.
func TestResults(t *testing.T) {
	l := start(t)
	testkit.Transcript(t, "testdata/results.txt", l.play)
	// A change stream returns later changes.
	out := l.test.Do(l.Context(), engine.Operation{Object: "collection", Name: "createChangeStream",
		Arguments: document(l, `{"pipeline": []}`), SaveAs: "stream"})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	l.must("collection", "insertOne", `{"document": {"_id": 9}}`)
	event := l.must("stream", "iterateUntilDocumentOrError", `{}`)
	if kind, _ := event.Document().Lookup("operationType").StringValueOK(); kind != "insert" {
		t.Errorf("got %s", shown(event))
	}
	l.must("stream", "close", `{}`)
	// In the driver, the write concern of dropDatabase is an option of the database.
	events, err := l.test.Events(l.Context(), "client", 0, 0)
	testkit.Check(t, err)
	var sent []string
	for _, e := range events {
		if e.Type == result.CommandStarted && e.CommandName == "dropDatabase" {
			sent = append(sent, e.DatabaseName+" "+e.Body.Lookup("writeConcern").String())
		}
	}
	testkit.Equal(t, "write concerns", sent, []string{"other ", `other {"w": "majority"}`})
}

func TestLacks(t *testing.T) {
	l := start(t)
	l.open("client", "timed", `{"uriOptions": {"timeoutMS": 60000}}`)
	l.open("database", "timed-db", `{"client": "timed", "databaseName": "db"}`)
	testkit.Transcript(t, "testdata/lacks.txt", l.play)
}

// Only errors of operations with a timeoutMS are timeout errors.
func TestTimeouts(t *testing.T) {
	l := start(t)
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": {"times": 1},
		"data": {"failCommands": ["find"], "errorCode": 50}}}`)
	if out := l.do("collection", "find", `{"filter": {}}`); out.Err == nil || out.Err.Timeout || out.Err.Code != 50 {
		t.Errorf("MaxTimeMSExpired without timeoutMS: %+v", out.Err)
	}
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": "alwaysOn",
		"data": {"failCommands": ["find"], "blockConnection": true, "blockTimeMS": 60000}}}`)
	if out := l.do("collection", "find", `{"filter": {}, "timeoutMS": 50}`); out.Err == nil || !out.Err.Timeout ||
		!out.Err.Client {
		t.Errorf("timeoutMS: %+v", out.Err)
	}
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": "off"}}`)
}

// The labels of the callback's error determine whether withTransaction retries.
// It returns that error unchanged.
func TestWithTransaction(t *testing.T) {
	l := start(t)
	for _, row := range []struct {
		reason string
		errors []*result.Error // of the calls of the callback
		code   int32
		left   string // number of documents
	}{
		{"another error is returned", []*result.Error{{Message: "m", Code: 11000}}, 11000, "0"},
		{"a transient error is retried",
			[]*result.Error{{Message: "m", Code: 112, Labels: []string{"TransientTransactionError"}}, nil}, 0, "1"},
		{"without an error it commits", []*result.Error{nil}, 0, "2"},
	} {
		calls := 0
		out := l.test.Do(t.Context(), engine.Operation{Object: "session", Name: "withTransaction",
			Callback: func(ctx context.Context) *result.Error {
				calls++
				if inner := l.test.Do(ctx, engine.Operation{Object: "collection", Name: "insertOne",
					Arguments: document(l, `{"document": {}, "session": "session"}`)}); inner.Err != nil {
					return inner.Err
				}
				return row.errors[calls-1]
			}})
		var code int32
		if out.Err != nil {
			code = out.Err.Code
		}
		if left := shown(l.must("collection", "countDocuments", `{"filter": {}}`)); calls != len(row.errors) ||
			code != row.code || left != row.left {
			t.Errorf("%s: %d calls, %v, %s documents", row.reason, calls, out.Err, left)
		}
	}
}

// The driver sees only the deadlines of a timeoutMS. One of withTransaction also
// ends operations in its callback, in a timeout.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		outer, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ctx, stop := undated(outer)
		defer stop()
		if _, dated := ctx.Deadline(); dated {
			t.Error("the driver sees the runner's deadline")
		}
		timeout := 10 * time.Second
		outerTimed, end := timed(ctx, &timeout)
		defer end()
		undatedInner, stopInner := undated(outerTimed)
		defer stopInner()
		inner, endInner := timed(undatedInner, nil)
		defer endInner()
		if got, dated := inner.Deadline(); !dated || !got.Equal(began.Add(timeout)) {
			t.Errorf("an operation in a callback has the deadline %v", got)
		}
		<-inner.Done()
		if err := inner.Err(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != timeout {
			t.Errorf("an operation in a callback ended with %v after %s", err, time.Since(began))
		}
		plain, endPlain := timed(ctx, nil)
		defer endPlain()
		<-plain.Done()
		if err := plain.Err(); !errors.Is(err, context.Canceled) || time.Since(began) != time.Hour {
			t.Errorf("an operation without timeoutMS ended with %v after %s", err, time.Since(began))
		}
	})
}

// A client's monitors poll with serverMonitoringMode poll.
func TestServerMonitoringMode(t *testing.T) {
	l := start(t)
	l.open("client", "polling", `{"uriOptions": {"serverMonitoringMode": "poll"}}`)
	for after, seen := int64(0), 0; seen < 4; { // in stream mode, the second of each of the 3 members is awaited
		events, err := l.test.Events(t.Context(), "polling", after, testkit.Patience)
		if err != nil || len(events) == 0 {
			t.Fatalf("%d heartbeats, %v", seen, err)
		}
		for _, e := range events {
			after = e.Sequence
			if e.Type != result.ServerHeartbeatStarted {
				continue
			}
			if seen++; *e.Awaited {
				t.Fatal("a heartbeat is awaited")
			}
		}
	}
}
