package driver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// live is a test on the engine with an embedded replica set behind it.
type live struct {
	*testing.T
	test engine.Test
	uri  string
}

func start(t *testing.T) *live {
	t.Helper()
	d, err := embedded.Start(context.Background(), embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	e := New(Options{})
	t.Cleanup(func() { _ = e.Close() })
	test, err := e.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t, test, d.URI()}
	l.open("client", "client", nil)
	l.open("database", "database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseName", Value: "db"}})
	l.open("collection", "collection", bson.D{{Key: "database", Value: "database"}, {Key: "collectionName", Value: "coll"}})
	l.open("bucket", "bucket", bson.D{{Key: "database", Value: "database"}})
	l.open("session", "session", bson.D{{Key: "client", Value: "client"}})
	return l
}

func (l *live) try(kind, id string, options bson.D) error {
	return l.test.Open(context.Background(), engine.Entity{Kind: kind, ID: id, URI: l.uri,
		Options: raw(l, append(bson.D{{Key: "id", Value: id}}, options...))})
}

func (l *live) open(kind, id string, options bson.D) {
	l.Helper()
	if err := l.try(kind, id, options); err != nil {
		l.Fatal(err)
	}
}

func (l *live) do(object, name, arguments string) result.Outcome {
	l.Helper()
	return l.perform(engine.Operation{Object: object, Name: name, Arguments: l.json(arguments)})
}

func (l *live) perform(op engine.Operation) result.Outcome {
	return l.test.Do(context.Background(), op)
}

func (l *live) json(text string) bson.Raw {
	l.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		l.Fatal(err)
	}
	return raw(l, d)
}

func (l *live) must(object, name, arguments string) bson.RawValue {
	l.Helper()
	out := l.do(object, name, arguments)
	if out.Err != nil {
		l.Fatalf("%s on %s: %v", name, object, out.Err)
	}
	return out.Value
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

// TestResults goes once through what is not looked at in engine/enginetest.
func TestResults(t *testing.T) {
	l := start(t)
	for _, row := range []struct{ object, name, arguments, want string }{
		{"collection", "insertMany", `{"documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}]}`, `{"insertedCount":2,"insertedIds":{"0":1,"1":2}}`},
		{"collection", "insertOne", `{"document": {"_id": 3}, "writeConcern": {"w": 0}}`, `{"acknowledged":false}`},
		{"collection", "deleteOne", `{"filter": {"_id": 3}}`, `{"deletedCount":1}`},
		{"collection", "updateOne", `{"filter": {"_id": 1}, "update": {"$inc": {"x": 10}}}`, `{"matchedCount":1,"modifiedCount":1,"upsertedCount":0}`},
		{"collection", "updateMany", `{"filter": {}, "update": [{"$set": {"y": 1}}]}`, `{"matchedCount":2,"modifiedCount":2,"upsertedCount":0}`},
		{"collection", "replaceOne", `{"filter": {"_id": 4}, "replacement": {"x": 4}, "upsert": true}`, `{"matchedCount":0,"modifiedCount":0,"upsertedCount":1,"upsertedId":4}`},
		{"collection", "bulkWrite", `{"requests": [{"updateOne": {"filter": {"_id": 5}, "update": {"$set": {"x": 5}}, "upsert": true}}, {"deleteMany": {"filter": {"_id": {"$gt": 3}}}}]}`,
			`{"insertedCount":0,"matchedCount":0,"modifiedCount":0,"deletedCount":2,"upsertedCount":1,"upsertedIds":{"0":5}}`},
		{"client", "clientBulkWrite", `{"models": [{"insertOne": {"namespace": "db.coll", "document": {"_id": 6}}}, {"deleteOne": {"namespace": "db.coll", "filter": {"_id": 6}}}], "verboseResults": true}`,
			`{"insertedCount":1,"matchedCount":0,"modifiedCount":0,"deletedCount":1,"upsertedCount":0,"insertResults":{"0":{"insertedId":6}},"updateResults":{},"deleteResults":{"1":{"deletedCount":1}}}`},
		{"collection", "findOneAndUpdate", `{"filter": {"_id": 1}, "update": {"$set": {"x": 0}}, "returnDocument": "After", "projection": {"y": 0}}`, `{"_id":1,"x":0}`},
		{"collection", "findOneAndReplace", `{"filter": {"_id": 1}, "replacement": {"x": 11}}`, `{"_id":1,"x":0,"y":1}`},
		{"collection", "find", `{"filter": {}, "sort": {"_id": -1}, "limit": 1, "projection": {"x": 1}, "readConcern": {"level": "majority"}}`, `[{"_id":2,"x":2}]`},
		{"collection", "distinct", `{"fieldName": "x", "filter": {}}`, `[11,2]`},
		{"collection", "estimatedDocumentCount", `{}`, `2`},
		{"collection", "aggregate", `{"pipeline": [{"$match": {"_id": 2}}, {"$project": {"x": 1}}], "readPreference": {"mode": "secondaryPreferred"}}`, `[{"_id":2,"x":2}]`},
		{"collection", "createIndex", `{"keys": {"x": 1}, "name": "by x", "unique": true}`, `"by x"`},
		{"collection", "dropIndex", `{"name": "by x"}`, `nothing`},
		{"collection", "dropIndexes", `{}`, `nothing`},
		{"collection", "listIndexes", `{"batchSize": 1}`, `[{"v":2,"key":{"_id":1},"name":"_id_"}]`},
		{"client", "listDatabaseNames", `{"filter": {"name": "db"}}`, `["db"]`},
		{"client", "listDatabaseNames", `{"filter": {"name": "nothing"}}`, `[]`},
		{"database", "listCollectionNames", `{"filter": {"name": "coll"}}`, `["coll"]`},
		{"database", "runCursorCommand", `{"commandName": "find", "command": {"find": "coll", "filter": {"_id": 2}, "projection": {"x": 1}}, "batchSize": 1}`, `[{"_id":2,"x":2}]`},
		{"database", "createCollection", `{"collection": "capped", "capped": true, "size": 4096}`, `nothing`},
		{"database", "createCollection", `{"collection": "view", "viewOn": "coll", "pipeline": []}`, `nothing`},
		{"database", "dropCollection", `{"collection": "capped"}`, `nothing`},
		{"bucket", "uploadWithId", `{"id": 7, "filename": "f", "source": {"$$hexBytes": "010203"}, "chunkSizeBytes": 2}`, `nothing`},
		{"bucket", "download", `{"id": 7}`, `{"$binary":{"base64":"AQID","subType":"00"}}`},
		{"bucket", "downloadByName", `{"filename": "f", "revision": 0}`, `{"$binary":{"base64":"AQID","subType":"00"}}`},
		{"bucket", "rename", `{"id": 7, "newFilename": "g"}`, `nothing`},
		{"bucket", "find", `{"filter": {"filename": "h"}}`, `[]`},
		{"bucket", "delete", `{"id": 7}`, `nothing`},
		{"bucket", "drop", `{}`, `nothing`},
		{"session", "startTransaction", `{"readConcern": {"level": "snapshot"}}`, `nothing`},
		{"collection", "insertOne", `{"document": {"_id": 8}, "session": "session"}`, `{"insertedId":8}`},
		{"session", "abortTransaction", `{}`, `nothing`},
		{"collection", "countDocuments", `{"filter": {"_id": 8}}`, `0`},
		{"client", "dropDatabase", `{"database": "other"}`, `nothing`},
		{"client", "dropDatabase", `{"database": "other", "writeConcern": {"w": "majority"}, "session": "session"}`, `nothing`},
		{"client", "appendMetadata", `{"driverInfoOptions": {"name": "library", "version": "1", "platform": "p"}}`, `nothing`},
	} {
		if got := shown(l.must(row.object, row.name, row.arguments)); got != row.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row.name, row.arguments, got, row.want)
		}
	}
}

// The driver takes the write concern with the database, and not with the call.
func TestDropDatabaseWriteConcern(t *testing.T) {
	l := start(t)
	l.must("client", "dropDatabase", `{"database": "other"}`)
	l.must("client", "dropDatabase", `{"database": "other", "writeConcern": {"w": 1}}`)
	events, err := l.test.Events(context.Background(), "client", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, e := range events {
		if e.Type == result.CommandStarted && e.Command.CommandName == "dropDatabase" {
			sent = append(sent, e.Command.DatabaseName+" "+e.Command.Command.Lookup("writeConcern").String())
		}
	}
	if want := []string{"other ", `other {"w": {"$numberInt":"1"}}`}; !slices.Equal(sent, want) {
		t.Errorf("got %q, want %q", sent, want)
	}
}

// What the driver does not have is refused by name.
func TestLacks(t *testing.T) {
	l := start(t)
	l.open("client", "timed", bson.D{{Key: "uriOptions", Value: bson.D{{Key: "timeoutMS", Value: 60_000}}}})
	l.open("database", "timed-db", bson.D{{Key: "client", Value: "timed"}, {Key: "databaseName", Value: "db"}})
	for _, row := range []struct{ object, name, arguments, want string }{
		{"collection", "count", `{"filter": {}}`, "operation collection.count"},
		{"collection", "find", `{"filter": {}, "maxTimeMS": 5}`, "argument maxTimeMS of collection.find"},
		{"collection", "find", `{"filter": {}, "timeoutMS": 5, "timeoutMode": "iteration"}`, "argument timeoutMode of collection.find"},
		{"collection", "insertOne", `{"document": {}, "writeConcern": {"wtimeoutMS": 5}}`, "writeConcern.wtimeoutMS"},
		{"collection", "find", `{"filter": {}, "readPreference": {"mode": "secondary", "hedge": {"enabled": true}}}`, "readPreference.hedge"},
		{"collection", "bulkWrite", `{"requests": [{"insertOne": {"document": {}, "hint": "x"}}]}`, "insertOne.hint"},
		{"collection", "bulkWrite", `{"requests": [{"upsertOne": {}}]}`, "write model upsertOne"},
		{"client", "clientBulkWrite", `{"models": [{"deleteMany": {"namespace": "db.coll", "filter": {}, "sort": {"x": 1}}}]}`, "deleteMany.sort"},
		{"timed-db", "runCommand", `{"commandName": "ping", "command": {"ping": 1}, "timeoutMS": 0}`, "timeoutMS 0 of one operation"},
		{"database", "createCollection", `{"collection": "v", "viewOn": "coll", "capped": true}`, "argument capped of a view"},
		{"session", "$transactionState", `{}`, "operation session.$transactionState"},
	} {
		if out := l.do(row.object, row.name, row.arguments); out.Err == nil || out.Err.Unsupported != row.want {
			t.Errorf("%s %s: got %+v, want %q to be lacking", row.name, row.arguments, out.Err, row.want)
		}
	}
	for _, row := range []struct {
		kind    string
		options bson.D
		want    string
	}{
		{"client", bson.D{{Key: "uriOptions", Value: bson.D{{Key: "waitQueueTimeoutMS", Value: 5}}}}, "uriOptions.waitQueueTimeoutMS"},
		{"client", bson.D{{Key: "autoEncryptOpts", Value: bson.D{}}}, "option autoEncryptOpts of a client"},
		{"client", bson.D{{Key: "observeLogMessages", Value: bson.D{}}}, "option observeLogMessages of a client"},
		{"database", bson.D{{Key: "client", Value: "client"}, {Key: "databaseOptions", Value: bson.D{{Key: "timeoutMS", Value: 5}}}}, "databaseOptions.timeoutMS"},
		{"session", bson.D{{Key: "client", Value: "client"}, {Key: "sessionOptions", Value: bson.D{{Key: "defaultTimeoutMS", Value: 5}}}}, "sessionOptions.defaultTimeoutMS"},
		{"session", bson.D{{Key: "client", Value: "client"}, {Key: "sessionOptions", Value: bson.D{{Key: "defaultTransactionOptions",
			Value: bson.D{{Key: "maxCommitTimeMS", Value: 5}}}}}}, "defaultTransactionOptions.maxCommitTimeMS"},
		{"clientEncryption", nil, "entity clientEncryption"},
	} {
		err := l.try(row.kind, "lacking", row.options)
		var lack *result.Error
		if !errors.As(err, &lack) || lack.Unsupported != row.want {
			t.Errorf("%s %v: got %v, want %q to be lacking", row.kind, row.options, err, row.want)
		}
	}
}

// An error is one of timeoutMS only where there is one.
func TestTimeouts(t *testing.T) {
	l := start(t)
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": {"times": 1},
		"data": {"failCommands": ["find"], "errorCode": 50}}}`)
	if out := l.do("collection", "find", `{"filter": {}}`); out.Err == nil || out.Err.Timeout || out.Err.Code != 50 {
		t.Errorf("MaxTimeMSExpired without timeoutMS: %+v", out.Err)
	}
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": "alwaysOn",
		"data": {"failCommands": ["find"], "blockConnection": true, "blockTimeMS": 60000}}}`)
	if out := l.do("collection", "find", `{"filter": {}, "timeoutMS": 50}`); out.Err == nil || !out.Err.Timeout || !out.Err.Client {
		t.Errorf("timeoutMS: %+v", out.Err)
	}
	l.must("client", "$configureFailPoint", `{"command": {"configureFailPoint": "failCommand", "mode": "off"}}`)
}

// The callback's error decides, by its labels, whether withTransaction tries
// again, and comes back as it was.
func TestWithTransaction(t *testing.T) {
	for _, row := range []struct {
		reason string
		errors []*result.Error // one a call
		calls  int
		want   int32 // code
	}{
		{"no error commits", []*result.Error{nil}, 1, 0},
		{"a transient one is tried again", []*result.Error{{Message: "m", Code: 112, Labels: []string{"TransientTransactionError"}}, nil}, 2, 0},
		{"another ends it", []*result.Error{{Message: "m", Code: 11000, HasCode: true}}, 1, 11000},
	} {
		t.Run(row.reason, func(t *testing.T) {
			l := start(t)
			calls := 0
			out := l.perform(engine.Operation{Object: "session", Name: "withTransaction", Callback: func(ctx context.Context) *result.Error {
				calls++
				if inner := l.test.Do(ctx, engine.Operation{Object: "collection", Name: "insertOne",
					Arguments: l.json(`{"document": {"_id": 1}, "session": "session"}`)}); inner.Err != nil {
					return inner.Err
				}
				return row.errors[calls-1]
			}})
			var code int32
			if out.Err != nil {
				code = out.Err.Code
			}
			if calls != row.calls || code != row.want {
				t.Errorf("%d calls, %v", calls, out.Err)
			}
			want := "1"
			if row.want != 0 {
				want = "0"
			}
			if got := shown(l.must("collection", "countDocuments", `{"filter": {}}`)); got != want {
				t.Errorf("%s documents", got)
			}
		})
	}
}

// A change stream gives what happens after it was opened.
func TestChangeStream(t *testing.T) {
	l := start(t)
	out := l.perform(engine.Operation{Object: "collection", Name: "createChangeStream", Arguments: l.json(`{"pipeline": []}`), SaveAs: "stream"})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	l.must("collection", "insertOne", `{"document": {"_id": 1}}`)
	event := l.must("stream", "iterateUntilDocumentOrError", `{}`)
	if kind, _ := event.Document().Lookup("operationType").StringValueOK(); kind != "insert" {
		t.Errorf("got %s", shown(event))
	}
	l.must("stream", "close", `{}`)
}

// A deadline that the suite does not give is none for the driver.
func TestUndated(t *testing.T) {
	outer, cancel := context.WithTimeout(context.Background(), time.Hour)
	ctx, stop := undated(outer)
	defer stop()
	if _, dated := ctx.Deadline(); dated {
		t.Error("it has a deadline")
	}
	second := 10 * time.Second
	timedOut, end := timed(ctx, &second)
	defer end()
	inner, stopInner := undated(timedOut)
	defer stopInner()
	again, endInner := timed(inner, nil)
	defer endInner()
	want, _ := timedOut.Deadline()
	if got, dated := again.Deadline(); !dated || !got.Equal(want) {
		t.Errorf("an operation in a callback has the deadline %v, want %v", got, want)
	}
	cancel()
	select {
	case <-again.Done():
	case <-time.After(time.Minute):
		t.Error("the end of the caller's context does not end it")
	}
}

// In a callback that outlasts timeoutMS an operation ends in a timeout, not in
// a cancellation.
func TestTimeoutInCallback(t *testing.T) {
	short := 10 * time.Millisecond
	outer, end := timed(context.Background(), &short)
	defer end()
	ctx, stop := undated(outer)
	defer stop()
	inner, endInner := timed(ctx, nil)
	defer endInner()
	<-inner.Done()
	if err := inner.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A client's monitors poll if the suite says so.
func TestServerMonitoringMode(t *testing.T) {
	l := start(t)
	l.open("client", "polling", bson.D{{Key: "uriOptions", Value: bson.D{{Key: "serverMonitoringMode", Value: "poll"}}}})
	for after, seen := int64(0), 0; seen < 4; { // of three members: in a stream the second of one is awaited
		events, err := l.test.Events(context.Background(), "polling", after, time.Minute)
		if err != nil || len(events) == 0 {
			t.Fatalf("%d heartbeats, %v", seen, err)
		}
		for _, e := range events {
			after = e.Sequence
			if e.Type != result.ServerHeartbeatStarted {
				continue
			}
			if seen++; *e.SDAM.Awaited {
				t.Fatal("a heartbeat is awaited")
			}
		}
	}
}
