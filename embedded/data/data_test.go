package data

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is data with a server in front of it.
type bench struct {
	t      testing.TB
	d      *Data
	rows   map[string]command.Row
	server *command.Server
	ctx    context.Context
}

func newBench(t testing.TB, o Options) *bench {
	b := &bench{t: t, d: New(o), rows: map[string]command.Row{}, ctx: context.Background(),
		server: &command.Server{Role: command.Primary, Address: "a:1", Wire: 25, Version: [3]int{8, 0, 0}}}
	if o.Sharded {
		b.server.Role = command.Mongos
	}
	for _, r := range b.d.Rows() {
		b.rows[r.Name] = r
	}
	return b
}

func ext(t testing.TB, s string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return value.Must(value.Encode(d))
}

// do runs a command, written in Extended JSON, on database db.
func (b *bench) do(s string) (bson.D, error) {
	b.t.Helper()
	return b.run(ext(b.t, s))
}

func (b *bench) run(doc bson.D) (bson.D, error) {
	body := value.Encode(doc)
	if len(doc) == 0 {
		return nil, errors.New("no command")
	}
	row, ok := b.rows[doc[0].Key]
	if !ok {
		return nil, errors.New("no such command")
	}
	if b.server.Wire < row.MinWire || len(row.Topologies) > 0 && !slices.Contains(row.Topologies, b.server.Role) {
		return nil, command.Errorf(59, "no such command: '%s'", row.Name)
	}
	req := &command.Request{Context: b.ctx, Row: &row, Name: row.Name, DB: "db", Body: body, Server: b.server}
	if row.AdminOnly || row.Name == "listDatabases" {
		req.DB = "admin"
	}
	if l, ok := body.Lookup("lsid").DocumentOK(); ok {
		req.LSID = l
	}
	if n, ok := body.Lookup("txnNumber").AsInt64OK(); ok {
		req.TxnNumber = &n
	}
	if auto, ok := body.Lookup("autocommit").BooleanOK(); ok && !auto {
		req.InTransaction = true
	}
	if v, ok := body.Lookup("startTransaction").BooleanOK(); ok {
		req.StartTransaction = v
	}
	return row.Run(req)
}

// must runs a command that has to succeed, without write errors.
func (b *bench) must(s string) bson.D {
	b.t.Helper()
	r, err := b.do(s)
	if err == nil {
		if w, ok := value.Field(r, "writeErrors"); ok {
			err = errors.New(value.Text(w))
		}
	}
	if err != nil {
		b.t.Fatalf("%s: %v", s, err)
	}
	return r
}

// code is the error code of a command, 0 if it succeeds.
func (b *bench) code(s string) int32 {
	b.t.Helper()
	r, err := b.do(s)
	var e *command.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		b.t.Fatalf("%s: %v", s, err)
	}
	if w, ok := value.Field(r, "writeErrors"); ok {
		code, _ := value.Field(w.(bson.A)[0].(bson.D), "code")
		return code.(int32)
	}
	return 0
}

// docs are the documents of a batch, as text.
func docs(t testing.TB, reply bson.D) string {
	t.Helper()
	c, _ := value.Field(reply, "cursor")
	for _, k := range []string{"firstBatch", "nextBatch"} {
		if v, ok := value.Field(c.(bson.D), k); ok {
			var out []string
			for _, d := range v.([]bson.Raw) {
				out = append(out, value.Text(d))
			}
			return strings.Join(out, " ")
		}
	}
	t.Fatalf("no batch in %s", value.Text(reply))
	return ""
}

func cursorID(reply bson.D) int64 {
	c, _ := value.Field(reply, "cursor")
	id, _ := value.Field(c.(bson.D), "id")
	return id.(int64)
}

func (b *bench) want(what, s, want string) {
	b.t.Helper()
	if got := docs(b.t, b.must(s)); got != want {
		b.t.Errorf("%s: %s gave %s, want %s", what, s, got, want)
	}
}

const (
	lsid1 = `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAQ==","subType":"04"}}}`
	lsid2 = `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAg==","subType":"04"}}}`
)

func replicaSet(t testing.TB) *bench { return newBench(t, Options{ReplicaSet: true}) }

func TestRetriedWritesHappenOnce(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2}]}`)
	for _, row := range []struct{ reason, command, find, want string }{
		{"an insert", `{"insert":"c","documents":[{"_id":3}],` + lsid1 + `,"txnNumber":1}`, `{"find":"c","filter":{"_id":3}}`, `{ _id: 3 }`},
		{"an update", `{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}],` + lsid1 + `,"txnNumber":2}`, `{"find":"c","filter":{"_id":1}}`, `{ _id: 1, x: 2 }`},
		{"a delete", `{"delete":"c","deletes":[{"q":{"_id":2},"limit":1}],` + lsid1 + `,"txnNumber":3}`, `{"find":"c","filter":{"_id":2}}`, ``},
		{"a findAndModify", `{"findAndModify":"c","query":{"_id":1},"update":{"$inc":{"x":1}},"new":true,` + lsid1 + `,"txnNumber":4}`, `{"find":"c","filter":{"_id":1}}`, `{ _id: 1, x: 3 }`},
		{"a bulkWrite", `{"bulkWrite":1,"ops":[{"update":0,"filter":{"_id":1},"updateMods":{"$inc":{"x":1}}}],"nsInfo":[{"ns":"db.c"}],` + lsid1 + `,"txnNumber":5}`, `{"find":"c","filter":{"_id":1}}`, `{ _id: 1, x: 4 }`},
	} {
		first, again := b.must(row.command), b.must(row.command)
		for _, k := range []string{"n", "nModified", "value", "lastErrorObject", "nMatched"} {
			x, _ := value.Field(first, k)
			y, _ := value.Field(again, k)
			if !value.Equal(x, y) {
				t.Errorf("%s: the retry tells %s %s, want %s", row.reason, k, value.Text(y), value.Text(x))
			}
		}
		b.want(row.reason, row.find, row.want)
	}
	if c := b.code(`{"insert":"c","documents":[{"_id":9}],` + lsid1 + `,"txnNumber":1}`); c != 225 {
		t.Errorf("an older number: code %d, want 225", c)
	}
	if c := b.code(`{"find":"c",` + lsid1 + `,"txnNumber":9}`); c != 50768 {
		t.Errorf("a read with a number: code %d, want 50768", c)
	}
	if c := newBench(t, Options{}).code(`{"insert":"c","documents":[{}],` + lsid1 + `,"txnNumber":1}`); c != 20 {
		t.Errorf("a number on a standalone: code %d, want 20", c)
	}
}

func TestWriteThatFailsBeforeItsCommitIsNotKept(t *testing.T) {
	fails := command.Errorf(7, "as configured")
	b := newBench(t, Options{ReplicaSet: true, TransactionalWrite: func(*command.Request) error { return fails }})
	b.must(`{"insert":"c","documents":[{"_id":1}]}`) // no retryable write
	if c := b.code(`{"insert":"c","documents":[{"_id":2}],` + lsid1 + `,"txnNumber":1}`); c != 7 {
		t.Errorf("code %d, want 7", c)
	}
	if c := b.code(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"x":1}}}],` + lsid1 + `,"txnNumber":2}`); c != 7 {
		t.Errorf("code %d, want 7", c)
	}
	b.want("nothing was written", `{"find":"c"}`, `{ _id: 1 }`)
}

func txn(s, session string, number string, start bool) string {
	s = strings.TrimSuffix(s, "}") + `,` + session + `,"txnNumber":` + number + `,"autocommit":false`
	if start {
		s += `,"startTransaction":true`
	}
	return s + "}"
}

func TestTransactions(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1}]}`)
	b.must(txn(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}]}`, lsid1, "1", true))
	b.want("it sees its own writes", txn(`{"find":"c"}`, lsid1, "1", false), `{ _id: 1, x: 2 }`)
	b.want("others do not", `{"find":"c"}`, `{ _id: 1, x: 1 }`)
	if c := b.code(txn(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}]}`, lsid2, "1", true)); c != 112 {
		t.Errorf("a second transaction that writes the same: code %d, want 112", c)
	}
	// A write outside of a transaction waits for its end, or for its own.
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	b.ctx = ended
	if c := b.code(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":10}}}]}`); c != 11601 {
		t.Errorf("a blocked write whose context ended: code %d, want 11601", c)
	}
	b.ctx = context.Background()
	if c := b.code(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":10}}}],"maxTimeMS":1}`); c != 50 {
		t.Errorf("a blocked write out of time: code %d, want 50", c)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.do(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":10}}}]}`)
		done <- err
	}()
	b.must(txn(`{"commitTransaction":1}`, lsid1, "1", false))
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the write still waits 10 s after the transaction has ended")
	}
	b.want("both writes", `{"find":"c"}`, `{ _id: 1, x: 12 }`)
	b.must(txn(`{"commitTransaction":1}`, lsid1, "1", false)) // may be repeated

	b.must(txn(`{"insert":"c","documents":[{"_id":2}]}`, lsid1, "2", true))
	b.must(`{"insert":"c","documents":[{"_id":3}]}`)
	b.want("a snapshot does not see what came later, by _id or not", txn(`{"find":"c","filter":{"_id":3}}`, lsid1, "2", false), ``)
	b.want("", txn(`{"find":"c","filter":{"_id":{"$gt":1}}}`, lsid1, "2", false), `{ _id: 2 }`)
	if c := b.code(txn(`{"insert":"c","documents":[{"_id":3}]}`, lsid1, "2", false)); c != 112 {
		t.Errorf("a key that came later: code %d, want 112", c)
	}
	if c := b.code(txn(`{"commitTransaction":1}`, lsid1, "2", false)); c != 251 {
		t.Errorf("commit after a failure: code %d, want 251", c)
	}
	b.want("it left nothing", `{"find":"c","filter":{"_id":2}}`, ``)

	b.must(txn(`{"create":"fresh"}`, lsid1, "3", true))
	b.want("not seen before the commit", `{"listCollections":1,"nameOnly":true,"filter":{"name":"fresh"}}`, ``)
	b.must(txn(`{"commitTransaction":1}`, lsid1, "3", false))
	b.want("and then", `{"listCollections":1,"nameOnly":true,"filter":{"name":"fresh"}}`, `{ name: "fresh", type: "collection" }`)

	b.must(txn(`{"insert":"c","documents":[{"_id":7}]}`, lsid1, "4", true))
	b.d.KillSessions(nil)
	if c := b.code(txn(`{"commitTransaction":1}`, lsid1, "4", false)); c != 251 {
		t.Errorf("commit of a killed transaction: code %d, want 251", c)
	}
	if len(b.d.locks) != 0 {
		t.Errorf("%d locks are left", len(b.d.locks))
	}
}

func TestChangeStreams(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`)
	more := func(extra string) bson.D {
		return ext(t, `{"getMore":{"$numberLong":"`+value.Text(cursorID(open))+`"},"collection":"c"`+extra+`}`)
	}
	if r, err := b.run(more(`,"maxTimeMS":1`)); err != nil || docs(t, r) != "" {
		t.Errorf("nothing happened, got %s, %v", value.Text(r), err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	b.ctx = ended
	if _, err := b.run(more(`,"maxTimeMS":60000`)); err == nil {
		t.Error("waiting does not end with the context")
	}
	b.ctx = context.Background()
	// A waiting getMore is woken by a write.
	got := make(chan string, 1)
	go func() {
		r, err := b.run(more(`,"maxTimeMS":60000`))
		if err != nil {
			got <- err.Error()
			return
		}
		got <- docs(t, r)
	}()
	b.must(`{"insert":"c","documents":[{"_id":1}]}`)
	select {
	case s := <-got:
		if !strings.Contains(s, `operationType: "insert"`) || !strings.Contains(s, "fullDocument: { _id: 1 }") {
			t.Errorf("event %s", s)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no event within 10 s of the insert")
	}
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"x":1},"$unset":{"y":1}}}]}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"z":1}}]}`)
	b.must(`{"delete":"c","deletes":[{"q":{},"limit":0}]}`)
	r, err := b.run(more(""))
	if err != nil {
		t.Fatal(err)
	}
	events := docs(t, r)
	for _, part := range []string{`updatedFields: { x: 1 }`, `operationType: "replace"`, `operationType: "delete"`, `wallTime`} {
		if !strings.Contains(events, part) {
			t.Errorf("no %s in %s", part, events)
		}
	}
	c, _ := value.Field(r, "cursor")
	batch, _ := value.Field(c.(bson.D), "nextBatch")
	first := batch.([]bson.Raw)[0].Lookup("_id").Document()
	resumed, err := b.run(bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$changeStream", Value: bson.D{{Key: "resumeAfter", Value: value.Must(first)}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "operationType", Value: int32(1)}}}},
	}}})
	if err != nil || strings.Contains(docs(t, resumed), `"update"`) || strings.Count(docs(t, resumed), "operationType") != 2 {
		t.Errorf("resumed after the update: %s, %v", value.Text(resumed), err)
	}
	b.must(`{"drop":"c"}`)
	if r, err := b.run(more("")); err != nil || !strings.Contains(docs(t, r), `operationType: "invalidate"`) || cursorID(r) != 0 {
		t.Errorf("after the drop: %s, %v", value.Text(r), err)
	}
	for _, row := range []struct {
		reason, stage string
		code          int32
	}{
		{"a token that is no hexadecimal", `{"$changeStream":{"resumeAfter":{"_data":"zz"}}}`, 9},
		{"an option that is none", `{"$changeStream":{"nosuch":1}}`, 40415},
		{"a token of another time", `{"$changeStream":{"resumeAfter":{"_data":"820000000100000001` + `2B022C0100296E04"}}}`, 280},
	} {
		if got := b.code(`{"aggregate":"c","pipeline":[` + row.stage + `],"cursor":{}}`); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
	if got := newBench(t, Options{}).code(`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`); got != 40573 {
		t.Errorf("on a standalone: code %d, want 40573", got)
	}
}

func TestCursors(t *testing.T) {
	b := newBench(t, Options{Sharded: true})
	b.must(`{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]}`)
	open := b.must(`{"find":"c","batchSize":1,` + lsid1 + `}`)
	more := `{"getMore":{"$numberLong":"` + value.Text(cursorID(open)) + `"},"collection":"c","batchSize":1,` + lsid1 + `}`
	b.server = &command.Server{Role: command.Mongos, Address: "b:2", Wire: 25}
	if c := b.code(more); c != 43 {
		t.Errorf("on another mongos: code %d, want 43", c)
	}
	b.server = &command.Server{Role: command.Mongos, Address: "a:1", Wire: 25}
	b.want("the next", more, `{ _id: 2 }`)
	if c := b.code(strings.Replace(more, `"c"`, `"d"`, 1)); c != 13 {
		t.Errorf("of another collection: code %d, want 13", c)
	}
	if c := b.code(strings.Replace(more, lsid1, lsid2, 1)); c != 50739 {
		t.Errorf("in another session: code %d, want 50739", c)
	}
	b.d.EndSessions([]bson.Raw{value.Encode(ext(t, `{`+strings.TrimPrefix(lsid1, `"lsid":{`)))})
	if c := b.code(more); c != 43 {
		t.Errorf("after the session has ended: code %d, want 43", c)
	}
	b.want("a batch of nothing", `{"find":"c","batchSize":0,"limit":1}`, ``)
	if n := b.d.CursorCount(""); n != 1 {
		t.Errorf("%d cursors are open, want 1", n)
	}
}

func TestTailableCursor(t *testing.T) {
	b := newBench(t, Options{})
	b.must(`{"create":"c","capped":true,"size":4096,"max":2}`)
	b.must(`{"insert":"c","documents":[{"_id":1}]}`)
	open := b.must(`{"find":"c","tailable":true,"awaitData":true}`)
	more := `{"getMore":{"$numberLong":"` + value.Text(cursorID(open)) + `"},"collection":"c","maxTimeMS":1}`
	b.want("nothing yet", more, ``)
	b.must(`{"insert":"c","documents":[{"_id":2},{"_id":3}]}`)
	b.want("what came", more, `{ _id: 2 } { _id: 3 }`)
	b.want("the oldest made room", `{"find":"c"}`, `{ _id: 2 } { _id: 3 }`)
	b.must(`{"drop":"c"}`)
	if c := b.code(more); c != 175 {
		t.Errorf("after the drop: code %d, want 175", c)
	}
}

func TestIndexes(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a_1","unique":true,"sparse":true}]}`)
	b.must(`{"createIndexes":"c","indexes":[{"key":{"p":1},"name":"p_1","unique":true,"partialFilterExpression":{"on":true}}]}`)
	for _, row := range []struct {
		reason, doc string
		code        int32
	}{
		{"the first", `{"_id":1,"a":1}`, 0},
		{"the same key", `{"_id":2,"a":1.0}`, 11000},
		{"the same _id", `{"_id":1}`, 11000},
		{"without the field, for it is sparse", `{"_id":3}`, 0},
		{"again", `{"_id":4}`, 0},
		{"an element of an array is a key", `{"_id":5,"a":[7,1]}`, 11000},
		{"outside of a partial index", `{"_id":6,"p":1}`, 0},
		{"and within", `{"_id":7,"p":1,"on":true}`, 0},
		{"twice within", `{"_id":8,"p":1,"on":true}`, 11000},
	} {
		if got := b.code(`{"insert":"c","documents":[` + row.doc + `]}`); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
	if c := b.code(`{"update":"c","updates":[{"q":{"_id":3},"u":{"$set":{"a":1}}}]}`); c != 11000 {
		t.Errorf("an update onto a key: code %d, want 11000", c)
	}
	b.must(`{"delete":"c","deletes":[{"q":{"_id":1},"limit":1}]}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":3},"u":{"$set":{"a":1}}}]}`)
	if c := b.code(`{"find":"c","hint":"nosuch"}`); c != 2 {
		t.Errorf("a hint that is no index: code %d, want 2", c)
	}
	b.must(`{"dropIndexes":"c","index":"a_1"}`)
	b.must(`{"insert":"c","documents":[{"_id":10,"a":1}]}`)
}

func TestCatalog(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2,"x":5}]}`)
	b.must(`{"create":"v","viewOn":"c","pipeline":[{"$match":{"x":{"$gt":2}}}]}`)
	b.want("a view", `{"find":"v","filter":{},"projection":{"x":1}}`, `{ _id: 2, x: 5 }`)
	if c := b.code(`{"insert":"v","documents":[{}]}`); c != 166 {
		t.Errorf("a write to a view: code %d, want 166", c)
	}
	b.must(`{"aggregate":"c","pipeline":[{"$match":{"x":1}},{"$out":"o"}],"cursor":{}}`)
	b.want("$out", `{"find":"o"}`, `{ _id: 1, x: 1 }`)
	b.must(`{"aggregate":"c","pipeline":[{"$set":{"y":1}},{"$merge":{"into":"o","whenMatched":"merge"}}],"cursor":{}}`)
	b.want("$merge", `{"find":"o"}`, `{ _id: 1, x: 1, y: 1 } { _id: 2, x: 5, y: 1 }`)
	if c := b.code(`{"renameCollection":"db.o","to":"db.c"}`); c != 48 {
		t.Errorf("a rename onto a collection: code %d, want 48", c)
	}
	b.must(`{"renameCollection":"db.o","to":"db.c","dropTarget":true}`)
	b.want("renamed", `{"find":"c","filter":{"_id":1}}`, `{ _id: 1, x: 1, y: 1 }`)
	b.must(`{"create":"checked","validator":{"x":{"$type":"string"}}}`)
	if c := b.code(`{"insert":"checked","documents":[{"_id":1,"x":1}]}`); c != 121 {
		t.Errorf("a document that breaks the rules: code %d, want 121", c)
	}
	b.must(`{"dropDatabase":1}`)
	b.want("gone", `{"listCollections":1}`, ``)
	if c := b.code(`{"create":"bad$name"}`); c != 73 {
		t.Errorf("a bad name: code %d, want 73", c)
	}
}

func TestReadingThePast(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2}]}`)
	at := b.d.OperationTime()
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}]}`)
	b.must(`{"delete":"c","deletes":[{"q":{"_id":2},"limit":1}]}`)
	b.must(`{"insert":"c","documents":[{"_id":3}]}`)
	concern := `"readConcern":{"level":"snapshot","atClusterTime":{"$timestamp":{"t":` + value.Text(int64(at.T)) + `,"i":` + value.Text(int64(at.I)) + `}}}`
	b.want("as it was", `{"find":"c",`+concern+`}`, `{ _id: 1, x: 1 } { _id: 2 }`)
	b.want("by _id, too", `{"find":"c","filter":{"_id":3},`+concern+`}`, ``)
	b.want("by a pipeline, too", `{"aggregate":"c","pipeline":[{"$count":"n"}],"cursor":{},`+concern+`}`, `{ n: 2 }`)
	b.want("now", `{"find":"c"}`, `{ _id: 1, x: 2 } { _id: 3 }`)
}

func TestMapReduce(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":0},{"_id":2,"x":1},{"_id":3,"x":2}]}`)
	r := b.must(`{"mapReduce":"c","map":{"$code":"function inc() { return emit(0, this.x + 1) }"},
		"reduce":{"$code":"function sum(key, values) { return values.reduce((acc, x) => acc + x); }"},"out":{"inline":1}}`)
	results, _ := value.Field(r, "results")
	if got := value.Text(results); got != `[ { _id: 0.0, value: 6.0 } ]` {
		t.Errorf("results %s", got)
	}
	if c := b.code(`{"mapReduce":"c","map":"function() { while (1) {} }","reduce":"() => 1","out":{"inline":1}}`); c != 139 {
		t.Errorf("JavaScript that is not known: code %d, want 139", c)
	}
}

func TestFieldsOfLaterVersions(t *testing.T) {
	for _, row := range []struct {
		reason, command string
		wire            int
		code            int32
	}{
		{"let in an old find", `{"find":"c","let":{"a":1}}`, 9, 9},
		{"let in a find", `{"find":"c","let":{"a":1}}`, 13, 0},
		{"sort in an update of 7.0", `{"update":"c","updates":[{"q":{},"u":{"a":1},"sort":{"a":1}}]}`, 21, 40415},
		{"sort in an update of 8.0", `{"update":"c","updates":[{"q":{},"u":{"a":1},"sort":{"a":1}}]}`, 25, 0},
		{"sort in an update of many", `{"update":"c","updates":[{"q":{},"u":{"$set":{"a":1}},"sort":{"a":1},"multi":true}]}`, 25, 9},
		{"hint in a delete of 4.2", `{"delete":"c","deletes":[{"q":{},"limit":1,"hint":"_id_"}]}`, 8, 40415},
		{"a document as comment in 4.2", `{"find":"c","comment":{"a":1}}`, 8, 9},
	} {
		b := replicaSet(t)
		b.server.Wire = row.wire
		if got := b.code(row.command); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
}

// TestMany lets readers, writers and watchers work at once, for the race
// detector.
func TestMany(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	done := make(chan error)
	commands := []string{
		`{"insert":"c","documents":[{"x":1},{"x":2}]}`, `{"find":"c","filter":{"x":1}}`, `{"update":"c","updates":[{"q":{"x":1},"u":{"$set":{"x":2}},"multi":true}]}`,
		`{"delete":"c","deletes":[{"q":{"x":2},"limit":0}]}`, `{"aggregate":"c","pipeline":[{"$group":{"_id":"$x","n":{"$sum":1}}}],"cursor":{}}`,
		`{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocument":"updateLookup"}}],"cursor":{}}`, `{"listCollections":1}`,
		`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"}]}`, `{"dropIndexes":"c","index":"*"}`, `{"count":"c","hint":"_id_"}`,
	}
	for _, c := range commands {
		go func() {
			for range 50 {
				if _, err := b.do(c); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range commands {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzCommand runs anything as a command. Handlers may refuse, and not panic.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		`{"insert":"c","documents":[{"_id":1}]}`, `{"find":"c","filter":{"a":{"$gt":1}},"sort":{"a":1},"projection":{"a":1},"skip":1,"limit":2}`,
		`{"update":"c","updates":[{"q":{},"u":[{"$set":{"a":1}}],"upsert":true}]}`, `{"delete":"c","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"c","query":{},"update":{"$inc":{"a":1}},"fields":{"a":1}}`, `{"aggregate":"c","pipeline":[{"$group":{"_id":"$a"}},{"$out":"o"}],"cursor":{}}`,
		`{"aggregate":"c","pipeline":[{"$changeStream":{"resumeAfter":{"_data":"82"}}}],"cursor":{}}`, `{"create":"v","viewOn":"c","pipeline":[]}`,
		`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"bulkWrite":1,"ops":[{"insert":0,"document":{}}],"nsInfo":[{"ns":"a.b"}]}`,
		`{"mapReduce":"c","map":"()=>emit(1,2)","reduce":"()=>1","out":"o"}`, `{"explain":{"find":"c"}}`, `{"getMore":{"$numberLong":"1"},"collection":"c"}`,
		`{"collMod":"c","index":{"keyPattern":{"_id":1},"hidden":true}}`, `{"create":"d","clusteredIndex":{"key":{"_id":1},"unique":true}}`,
		`{"createSearchIndexes":"c","indexes":[{"definition":{}}]}`, `{"distinct":"c","key":"a"}`, `{"count":"c"}`, `{"renameCollection":"db.a","to":"db.b"}`, `{"listDatabases":1,"filter":{"name":"a"}}`, `{"collStats":"c"}`,
	} {
		f.Add([]byte(value.Encode(ext(f, s))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := value.Decode(data)
		if err != nil {
			return
		}
		b := replicaSet(t)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		b.ctx = ended
		if _, err := b.run(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: int32(1)}}}}}); err != nil {
			t.Fatal(err)
		}
		_, _ = b.run(doc)
	})
}

func BenchmarkFindByID(b *testing.B) { benchmarkFind(b, `{"find":"c","filter":{"_id":3}}`) }
func BenchmarkFindAll(b *testing.B)  { benchmarkFind(b, `{"find":"c","filter":{},"sort":{"_id":1}}`) }

func benchmarkFind(b *testing.B, s string) {
	w := replicaSet(b)
	w.must(`{"insert":"c","documents":[{"_id":1,"x":11},{"_id":2,"x":22},{"_id":3,"x":33}]}`)
	doc := ext(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.run(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTransactionAbortedMeanwhile is about commands that run at the same time
// as what ends their transaction: a newer transaction of the session, or
// killSessions.
func TestTransactionAbortedMeanwhile(t *testing.T) {
	b := replicaSet(t)
	row := b.rows["insert"]
	body := value.Encode(ext(t, `{"insert":"c","lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}},"txnNumber":1}`))
	n := int64(1)
	req := &command.Request{Context: b.ctx, Row: &row, Name: "insert", DB: "db", Body: body, Server: b.server,
		LSID: body.Lookup("lsid").Document(), TxnNumber: &n, InTransaction: true, StartTransaction: true}
	s, err := b.d.begin(req)
	if err != nil {
		t.Fatal(err)
	}
	b.d.KillSessions(nil)
	err = s.locked(func() error {
		t.Error("a write ran in a transaction that was gone")
		return nil
	})
	if e, ok := err.(*command.Error); !ok || e.Code != 251 {
		t.Errorf("the write: %v, want NoSuchTransaction", err)
	}
	_, err = b.d.inTransaction(s, bson.D{{Key: "n", Value: int32(1)}}, nil)
	if e, ok := err.(*command.Error); !ok || e.Code != 251 {
		t.Errorf("its end: %v, want NoSuchTransaction", err)
	}
}

// TestTransactionIsNotOpenForEver is about a client that has left its
// transaction open: what waits for the transaction's locks goes on when its
// time is over.
func TestTransactionIsNotOpenForEver(t *testing.T) {
	now := time.Now()
	b := newBench(t, Options{ReplicaSet: true, Now: func() time.Time { return now }})
	row := b.rows["insert"]
	n := int64(1)
	body := value.Encode(ext(t, `{"insert":"c","documents":[{"_id":1}],"txnNumber":1,
		"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"04"}}}}`))
	req := &command.Request{Context: b.ctx, Row: &row, Name: "insert", DB: "db", Body: body, Server: b.server,
		LSID: body.Lookup("lsid").Document(), TxnNumber: &n, InTransaction: true, StartTransaction: true, TransactionLifetime: 20 * time.Millisecond}
	if _, err := row.Run(req); err != nil {
		t.Fatal(err)
	}
	if _, err := b.do(`{"insert":"c","documents":[{"_id":1}],"maxTimeMS":1}`); err == nil {
		t.Error("the transaction's lock was not in the way")
	}
	now = now.Add(20 * time.Millisecond)
	if _, err := b.do(`{"insert":"c","documents":[{"_id":1}],"maxTimeMS":10000}`); err != nil {
		t.Errorf("when the transaction's time is over: %v", err)
	}
	req.StartTransaction = false
	_, err := row.Run(req)
	if e, ok := err.(*command.Error); !ok || e.Code != 251 {
		t.Errorf("the transaction goes on: %v, want NoSuchTransaction", err)
	}
}
