package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/value"
	"github.com/unified-test-runner/utr/embedded/failpoint"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is data with a server in front of it.
type bench struct {
	t        testing.TB
	d        *Data
	rows     map[string]command.Row
	server   *command.Server
	ctx      context.Context
	lifetime time.Duration // of transactions
	strikes  func(failPoint string) (failpoint.Failure, bool)
	hangUp   func()
}

func newBench(t testing.TB, o Options) *bench {
	b := &bench{t: t, d: New(o), rows: map[string]command.Row{}, ctx: context.Background(), lifetime: time.Minute,
		server: &command.Server{Role: command.Primary, Address: "a:1", Wire: 25, Version: [3]int{8, 0, 0}}}
	if o.Sharded {
		b.server.Role = command.Mongos
	}
	for _, r := range b.d.Rows() {
		b.rows[r.Name] = r
	}
	return b
}

func replicaSet(t testing.TB) *bench { return newBench(t, Options{ReplicaSet: true}) }

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
	req, err := b.request(doc)
	if err != nil {
		return nil, err
	}
	return req.Row.Run(req)
}

// request is what a server makes of a command.
func (b *bench) request(doc bson.D) (*command.Request, error) {
	if len(doc) == 0 {
		return nil, errors.New("no command")
	}
	row, ok := b.rows[doc[0].Key]
	if !ok || b.server.Wire < row.MinWire || len(row.Topologies) > 0 && !slices.Contains(row.Topologies, b.server.Role) {
		return nil, command.Errorf(59, "no such command: '%s'", doc[0].Key)
	}
	body := value.Encode(doc)
	req := &command.Request{Context: b.ctx, Row: &row, Name: row.Name, DB: "db", Body: body, Server: b.server, Strikes: b.strikes, HangUp: b.hangUp}
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
		req.StartTransaction, req.TransactionLifetime = v, b.lifetime
	}
	return req, nil
}

// must runs a command that has to succeed, without write errors.
func (b *bench) must(s string) bson.D {
	b.t.Helper()
	r, err := b.do(s)
	if c := codeOf(r, err); c != 0 || err != nil {
		b.t.Fatalf("%s: %s, %v", s, value.Text(r), err)
	}
	return r
}

// code is the error code of a command, 0 if it succeeds.
func (b *bench) code(s string) int32 {
	b.t.Helper()
	return codeOf(b.do(s))
}

// codeOf is the code of an error or of the first write error, 0 if there is
// none, -1 for an error without a code.
func codeOf(r bson.D, err error) int32 {
	var e *command.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return -1
	}
	if w, ok := value.Field(r, "writeErrors"); ok {
		code, _ := value.Field(w.(bson.A)[0].(bson.D), "code")
		return code.(int32)
	}
	return 0
}

// docsOf are the documents of a reply, as text.
func docsOf(reply bson.D) string {
	c, _ := value.Field(reply, "cursor")
	cursor, _ := c.(bson.D)
	var out []string
	for _, k := range []string{"firstBatch", "nextBatch"} {
		if v, ok := value.Field(cursor, k); ok {
			for _, d := range v.([]bson.Raw) {
				out = append(out, value.Text(d))
			}
		}
	}
	return strings.Join(out, " ")
}

func cursorID(reply bson.D) int64 {
	c, _ := value.Field(reply, "cursor")
	id, _ := value.Field(c.(bson.D), "id")
	return id.(int64)
}

func (b *bench) want(reason, s, want string) {
	b.t.Helper()
	if got := docsOf(b.must(s)); got != want {
		b.t.Errorf("%s: %s gave %s, want %s", reason, s, got, want)
	}
}

func TestWriteThatFailsBeforeItsCommitIsNotKept(t *testing.T) {
	b := replicaSet(t)
	b.strikes = func(string) (failpoint.Failure, bool) { return failpoint.Failure{HasCode: true, Code: 7}, true }
	for _, row := range []struct {
		reason, command string
		code            int32
	}{
		{"a write that is not retryable", `{"insert":"c","documents":[{"_id":1}]}`, 0},
		{"an insert", `{"insert":"c","documents":[{"_id":2}],RETRY(1,1)}`, 7},
		{"an update", `{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"x":1}}}],RETRY(1,2)}`, 7},
	} {
		if c := b.code(inSession(row.command)); c != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, c, row.code)
		}
	}
	b.want("nothing was written", `{"find":"c"}`, `{ _id: 1 }`)
}

// TestBlockedWrite waits for the end of a transaction, or for its own.
func TestBlockedWrite(t *testing.T) {
	const write = `{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":10}}}]}`
	for _, row := range []struct {
		reason string
		end    func(b *bench, cancel func())
		code   int32  // of the write that waits
		want   string // the document afterwards
	}{
		{"the commit", func(b *bench, _ func()) { b.must(inSession(`{"commitTransaction":1,IN(1,1)}`)) }, 0, `{ _id: 1, x: 12 }`},
		{"the abort", func(b *bench, _ func()) { b.must(inSession(`{"abortTransaction":1,IN(1,1)}`)) }, 0, `{ _id: 1, x: 11 }`},
		{"sessions are killed", func(b *bench, _ func()) { b.d.KillSessions(nil) }, 0, `{ _id: 1, x: 11 }`},
		{"a newer transaction of the session", func(b *bench, _ func()) { b.must(inSession(`{"find":"c",BEGIN(1,2)}`)) }, 0, `{ _id: 1, x: 11 }`},
		{"the transaction expires", func(*bench, func()) { time.Sleep(time.Minute) }, 0, `{ _id: 1, x: 11 }`},
		{"the connection ends", func(_ *bench, cancel func()) { cancel() }, 11601, `{ _id: 1, x: 1 }`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := replicaSet(t)
				b.must(`{"insert":"c","documents":[{"_id":1,"x":1}]}`)
				b.must(inSession(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}],BEGIN(1,1)}`))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				writer := *b
				writer.ctx = ctx
				done := make(chan int32, 1)
				go func() { done <- writer.code(write) }()
				synctest.Wait()
				if len(done) != 0 {
					t.Error("the write did not wait")
				}
				row.end(b, cancel)
				if c := <-done; c != row.code {
					t.Errorf("code %d, want %d", c, row.code)
				}
				b.want(row.reason, `{"find":"c"}`, row.want)
				if got := b.code(inSession(`{"commitTransaction":1,IN(1,1)}`)); row.code == 0 && row.want == `{ _id: 1, x: 11 }` && got == 0 {
					t.Error("a transaction that had ended was committed")
				}
			})
		})
	}
}

// TestTransactionAbortedMeanwhile is about commands that run while something
// else ends their transaction.
func TestTransactionAbortedMeanwhile(t *testing.T) {
	b := replicaSet(t)
	req, err := b.request(ext(t, inSession(`{"insert":"c",BEGIN(1,1)}`)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.d.begin(req)
	if err != nil {
		t.Fatal(err)
	}
	b.d.KillSessions(nil)
	err = s.locked(func() error {
		t.Error("a write ran in a transaction that was gone")
		return nil
	})
	if c := codeOf(nil, err); c != 251 {
		t.Errorf("the write: %v, want NoSuchTransaction", err)
	}
	if _, err = b.d.inTransaction(s, bson.D{{Key: "n", Value: int32(1)}}, nil); codeOf(nil, err) != 251 {
		t.Errorf("its end: %v, want NoSuchTransaction", err)
	}
}

func TestChangeStreams(t *testing.T) { synctest.Test(t, changeStreams) }

func changeStreams(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`)
	more := ext(t, fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":60000}`, cursorID(open)))
	began := time.Now()
	if r, err := b.run(more); err != nil || docsOf(r) != "" || time.Since(began) != time.Minute {
		t.Errorf("nothing happened, got %s, %v after %v", value.Text(r), err, time.Since(began))
	}
	for _, end := range []struct {
		reason string
		do     func(cancel func())
		want   string
	}{
		{"the connection ends", func(cancel func()) { cancel() }, ""},
		{"a write", func(func()) { b.must(`{"insert":"c","documents":[{"_id":1}]}`) }, "fullDocument: { _id: 1 }"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := *b
		waiting.ctx = ctx
		got := make(chan string, 1)
		go func() { r, _ := waiting.run(more); got <- docsOf(r) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("%s: the getMore did not wait", end.reason)
		}
		began := time.Now()
		end.do(cancel)
		if s := <-got; (s == "") != (end.want == "") || !strings.Contains(s, end.want) || time.Since(began) != 0 {
			t.Errorf("%s: got %s after %v", end.reason, s, time.Since(began))
		}
		cancel()
	}
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$set":{"x":1},"$unset":{"y":1}}}]}`)
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"z":1}}]}`)
	b.must(`{"delete":"c","deletes":[{"q":{},"limit":0}]}`)
	r, err := b.run(more)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`updatedFields: { x: 1 }`, `operationType: "replace"`, `operationType: "delete"`, `wallTime`} {
		if events := docsOf(r); !strings.Contains(events, part) {
			t.Errorf("no %s in %s", part, events)
		}
	}
	c, _ := value.Field(r, "cursor")
	events, _ := value.Field(c.(bson.D), "nextBatch")
	first := events.([]bson.Raw)[0].Lookup("_id").Document()
	resumed, err := b.run(bson.D{{Key: "aggregate", Value: "c"}, {Key: "cursor", Value: bson.D{}}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$changeStream", Value: bson.D{{Key: "resumeAfter", Value: value.Must(first)}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "operationType", Value: int32(1)}}}},
	}}})
	if s := docsOf(resumed); err != nil || strings.Contains(s, `"update"`) || strings.Count(s, "operationType") != 2 {
		t.Errorf("resumed after the update: %s, %v", s, err)
	}
	b.must(`{"drop":"c"}`)
	if r, err := b.run(more); err != nil || !strings.Contains(docsOf(r), `operationType: "invalidate"`) || cursorID(r) != 0 {
		t.Errorf("after the drop: %s, %v", value.Text(r), err)
	}
	for _, row := range []struct {
		reason, stage string
		code          int32
	}{
		{"a token that is not hexadecimal", `{"$changeStream":{"resumeAfter":{"_data":"zz"}}}`, 9},
		{"an unknown option", `{"$changeStream":{"nosuch":1}}`, 40415},
		{"a token of another time", `{"$changeStream":{"resumeAfter":{"_data":"8200000001000000012B022C0100296E04"}}}`, 280},
	} {
		if got := b.code(`{"aggregate":"c","pipeline":[` + row.stage + `],"cursor":{}}`); got != row.code {
			t.Errorf("%s: code %d, want %d", row.reason, got, row.code)
		}
	}
	if got := newBench(t, Options{}).code(`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`); got != 40573 {
		t.Errorf("on a standalone: code %d, want 40573", got)
	}
}

// TestFailingGetMore sees that the fail point of getMore ends the cursor, and that it is told when
// a change stream is meant.
func TestFailingGetMore(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1},{"_id":2}]}`)
	for open, watches := range map[string]bool{`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`: true, `{"find":"c","batchSize":1}`: false} {
		b.strikes = nil
		id := cursorID(b.must(open))
		req, err := b.request(ext(t, fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, id)))
		if err != nil {
			t.Fatal(err)
		}
		req.Strikes = func(string) (failpoint.Failure, bool) { return failpoint.Failure{HasCode: true, Code: 6}, true }
		for _, code := range []int32{6, 43} {
			if _, err := req.Row.Run(req); codeOf(nil, err) != code || req.Watches != watches {
				t.Errorf("%s: got %v, want code %d; watches is %v", open, err, code, req.Watches)
			}
		}
	}
}

// TestForgottenWrites sees that change streams find their place in a log that
// has forgotten its beginning.
func TestForgottenWrites(t *testing.T) {
	b := replicaSet(t)
	docs := strings.TrimSuffix(strings.Repeat(`{},`, 1000), ",")
	for b.d.oplog.first == 0 {
		b.must(`{"insert":"c","documents":[` + docs + `]}`)
	}
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{}},{"$project":{"documentKey":1,"_id":1}}],"cursor":{}}`)
	b.must(`{"insert":"c","documents":[{"_id":"new"}]}`)
	r := b.must(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, cursorID(open)))
	if got := docsOf(r); strings.Count(got, "documentKey") != 1 || !strings.Contains(got, `documentKey: { _id: "new" }`) {
		t.Errorf("got %.300s", got)
	}
}

func TestEndOfASession(t *testing.T) {
	b := newBench(t, Options{Sharded: true})
	b.must(`{"insert":"c","documents":[{"_id":1},{"_id":2},{"_id":3}]}`)
	open := b.must(inSession(`{"find":"c","batchSize":1,SESSION(1)}`))
	b.must(`{"find":"c","batchSize":0}`)
	if n := b.d.CursorCount(""); n != 2 {
		t.Errorf("%d cursors are open, want 2", n)
	}
	b.d.EndSessions([]bson.Raw{value.Encode(ext(t, inSession(`{SESSION(1)}`))).Lookup("lsid").Document()})
	if c := b.code(inSession(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c",SESSION(1)}`, cursorID(open)))); c != 43 {
		t.Errorf("a cursor of a session that has ended: code %d, want 43", c)
	}
	if n := b.d.CursorCount(""); n != 1 {
		t.Errorf("%d cursors are open, want 1", n)
	}
}

func TestReadingThePast(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1,"x":1},{"_id":2}]}`)
	at := b.d.OperationTime()
	b.must(`{"update":"c","updates":[{"q":{"_id":1},"u":{"$inc":{"x":1}}}]}`)
	b.must(`{"delete":"c","deletes":[{"q":{"_id":2},"limit":1}]}`)
	b.must(`{"insert":"c","documents":[{"_id":3}]}`)
	concern := fmt.Sprintf(`"readConcern":{"level":"snapshot","atClusterTime":{"$timestamp":{"t":%d,"i":%d}}}`, at.T, at.I)
	b.want("as it was", `{"find":"c",`+concern+`}`, `{ _id: 1, x: 1 } { _id: 2 }`)
	b.want("by _id, too", `{"find":"c","filter":{"_id":3},`+concern+`}`, ``)
	b.want("by a pipeline, too", `{"aggregate":"c","pipeline":[{"$count":"n"}],"cursor":{},`+concern+`}`, `{ n: 2 }`)
	b.want("now", `{"find":"c"}`, `{ _id: 1, x: 2 } { _id: 3 }`)
}

// TestMany lets readers, writers and watchers work at once, for the race
// detector.
func TestMany(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	done := make(chan error)
	commands := []string{
		`{"insert":"c","documents":[{"x":1},{"x":2}]}`, `{"find":"c","filter":{"x":1}}`,
		`{"update":"c","updates":[{"q":{"x":1},"u":{"$set":{"x":2}},"multi":true}]}`,
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
		if err := testkit.Receive(t, "the end of a client", done); err != nil {
			t.Error(err)
		}
	}
}

// TestPanicKeepsNoLock lets functions fail while they hold locks: others still
// get them, since the server answers with an error and goes on.
func TestPanicKeepsNoLock(t *testing.T) {
	fails := func() { panic("on purpose") }
	for name, run := range map[string]func(*Data){
		"reading":   func(d *Data) { d.reading(fails) },
		"changing":  func(d *Data) { d.changing(fails) },
		"attempt":   func(d *Data) { _ = (&scope{d: d}).locked(func() error { fails(); return nil }) },
		"kill some": func(d *Data) { d.killCursorsOf(func(string) bool { fails(); return false }) },
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{ReplicaSet: true})
			d.cursors[1] = &cursor{session: "s", killed: make(chan struct{})}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("nothing failed")
					}
				}()
				run(d)
			}()
			free := make(chan struct{})
			go func() {
				d.changing(func() {})
				d.CursorCount("")
				close(free)
			}()
			testkit.Receive(t, "a lock", free)
		})
	}
}

// FuzzCommand runs anything as a command. Handlers may refuse, and not panic.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		`{"insert":"c","documents":[{"_id":1}]}`, `{"find":"c","filter":{"a":{"$gt":1}},"sort":{"a":1},"projection":{"a":1},"skip":1,"limit":2}`,
		`{"update":"c","updates":[{"q":{},"u":[{"$set":{"a":1}}],"upsert":true}]}`, `{"delete":"c","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"c","query":{},"update":{"$inc":{"a":1}},"fields":{"a":1}}`, `{"createSearchIndexes":"c","indexes":[{"definition":{}}]}`,
		`{"aggregate":"c","pipeline":[{"$group":{"_id":"$a"}},{"$out":"o"}],"cursor":{}}`, `{"create":"v","viewOn":"c","pipeline":[]}`,
		`{"aggregate":"c","pipeline":[{"$changeStream":{"resumeAfter":{"_data":"82"}}}],"cursor":{}}`, `{"explain":{"find":"c"}}`,
		`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"}]}`, `{"bulkWrite":1,"ops":[{"insert":0,"document":{}}],"nsInfo":[{"ns":"a.b"}]}`,
		`{"mapReduce":"c","map":"()=>emit(1,2)","reduce":"()=>1","out":"o"}`, `{"getMore":{"$numberLong":"1"},"collection":"c"}`,
		`{"collMod":"c","index":{"keyPattern":{"_id":1},"hidden":true}}`, `{"create":"d","clusteredIndex":{"key":{"_id":1},"unique":true}}`,
		`{"distinct":"c","key":"a"}`, `{"count":"c"}`, `{"renameCollection":"db.a","to":"db.b"}`, `{"listDatabases":1,"filter":{"name":"a"}}`,
		`{"collStats":"c"}`,
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
		b.must(`{"insert":"c","documents":[{"a":1}]}`)
		_, _ = b.run(doc)
	})
}
