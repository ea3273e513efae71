package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
	"github.com/unified-test-runner/utr/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench runs commands on data as a server does.
type bench struct {
	t        testing.TB
	d        *Deployment
	rows     map[string]Row
	server   *Identity
	ctx      context.Context
	lifetime time.Duration // of transactions
	strikes  func(failPoint string) (failpoint.Failure, bool)
	hangUp   func()
}

// reports changes the wire version of the server.
func (b *bench) reports(wire int) {
	b.server.Version = &version.Version{Numbers: [3]int{8, 0, 0}, Wire: wire, Has: version.Of(wire)}
}

func newBench(t testing.TB, o Options) *bench {
	b := &bench{t: t, d: New(o), rows: map[string]Row{}, ctx: context.Background(), lifetime: time.Minute,
		strikes: neverStrikes, server: &Identity{Role: Primary, Address: "a:1"}}
	b.reports(25)
	if o.Sharded {
		b.server.Role = Mongos
	}
	for _, r := range b.d.Rows() {
		b.rows[r.Name] = r
	}
	return b
}

func neverStrikes(string) (failpoint.Failure, bool) { return failpoint.Failure{}, false }

func replicaSet(t testing.TB) *bench { return newBench(t, Options{ReplicaSet: true}) }

func ext(t testing.TB, s string) bson.D {
	t.Helper()
	return value.Must(value.Encode(testkit.Extended[bson.D](t, s)))
}

// do runs a command in Extended JSON on the database db.
func (b *bench) do(s string) (bson.D, error) {
	b.t.Helper()
	return b.run(ext(b.t, s))
}

func (b *bench) run(doc bson.D) (bson.D, error) {
	req, err := b.request(doc)
	if err != nil {
		return nil, err
	}
	r, err := perform(req)
	return r.Fields, err
}

func perform(req *Request) (Response, error) {
	execute, err := req.Row.Parse(req)
	if err != nil {
		return Response{}, err
	}
	return execute()
}

// request returns the request for a command.
func (b *bench) request(doc bson.D) (*Request, error) {
	if len(doc) == 0 {
		return nil, errors.New("no command")
	}
	row, ok := b.rows[doc[0].Key]
	if !ok || !row.Exists(b.server.Wire, b.server.Role) {
		return nil, fault.Errorf(59, "no such command: '%s'", doc[0].Key)
	}
	body := value.Encode(doc)
	req := &Request{Context: b.ctx, Row: &row, Name: row.Name, DB: "db", Body: body, Server: b.server,
		FailPoint: b.strikes, HangUp: b.hangUp,
		Operations: func(bool) []bson.Raw { return nil }}
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

// must runs a command that must succeed without write errors.
func (b *bench) must(s string) bson.D {
	b.t.Helper()
	r, err := b.do(s)
	if c := codeOf(r, err); c != 0 || err != nil {
		b.t.Fatalf("%s: %s, %v", s, value.Text(r), err)
	}
	return r
}

// code returns the error code of a command. See codeOf.
func (b *bench) code(s string) int32 {
	b.t.Helper()
	return codeOf(b.do(s))
}

// codeOf returns the code of an error or of the first write error, -1 for an error without a code, and 0 for success.
func codeOf(r bson.D, err error) int32 {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return -1
	}
	if w := value.As[bson.A](r, "writeErrors"); len(w) > 0 {
		return value.As[int32](w[0].(bson.D), "code")
	}
	return 0
}

// messageOf returns the message of an error or of the first write error.
func messageOf(r bson.D, err error) string {
	if err != nil {
		return err.Error()
	}
	return value.As[string](value.As[bson.A](r, "writeErrors")[0].(bson.D), "errmsg")
}

// docsOf returns the text of the documents in a reply.
func docsOf(reply bson.D) string {
	var out []string
	for _, d := range batchOf(reply) {
		out = append(out, value.Text(value.Must(d)))
	}
	return strings.Join(out, " ")
}

func cursorID(reply bson.D) int64 {
	return value.As[int64](value.As[bson.D](reply, "cursor"), "id")
}

// TestTransactionAbortedMeanwhile aborts a transaction while one of its commands runs.
func TestTransactionAbortedMeanwhile(t *testing.T) {
	b := replicaSet(t)
	req, err := b.request(ext(t, inSession(`{"insert":"c",BEGIN(1,1)}`)))
	testkit.Check(t, err)
	s := b.d.newCall(req)
	testkit.Check(t, s.begin())
	b.d.KillSessions(nil)
	err = s.Update(func(*store.Tx) error {
		t.Error("a write ran in an aborted transaction")
		return nil
	})
	if c := codeOf(nil, err); c != 251 {
		t.Errorf("the write: %v, want NoSuchTransaction", err)
	}
	if _, err = s.inTransaction(bson.D{{Key: "n", Value: int32(1)}}, nil); codeOf(nil, err) != 251 {
		t.Errorf("its end: %v, want NoSuchTransaction", err)
	}
}

// TestFailingGetMore checks that the fail point of getMore ends the cursor, and that the request is marked if the
// cursor is a change stream.
func TestFailingGetMore(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"insert":"c","documents":[{"_id":1},{"_id":2}]}`)
	for open, watches := range map[string]bool{`{"aggregate":"c","pipeline":[{"$changeStream":{}}],"cursor":{}}`: true,
		`{"find":"c","batchSize":1}`: false} {
		b.strikes = neverStrikes
		id := cursorID(b.must(open))
		req, err := b.request(ext(t, fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, id)))
		testkit.Check(t, err)
		req.FailPoint = func(string) (failpoint.Failure, bool) { return failpoint.Failure{HasCode: true, Code: 6}, true }
		for _, code := range []int32{6, 43} {
			r, err := perform(req)
			if codeOf(nil, err) != code || r.IsChangeStream != (watches && code == 6) {
				t.Errorf("%s: got %v, want code %d; watches is %v", open, err, code, r.IsChangeStream)
			}
		}
	}
}

// TestTruncatedOplog checks that change streams find their position in a truncated oplog.
func TestTruncatedOplog(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	testkit.Check(t, b.d.NewWork(t.Context(), time.Time{}, 0).Update(func(tx *store.Tx) error {
		for range 2*store.MaxOplog + 1 {
			tx.Log(store.Entry{})
		}
		return nil
	}))
	open := b.must(`{"aggregate":"c","pipeline":[{"$changeStream":{}},{"$project":{"documentKey":1,"_id":1}}],"cursor":{}}`)
	b.must(`{"insert":"c","documents":[{"_id":"new"}]}`)
	r := b.must(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c"}`, cursorID(open)))
	if got := docsOf(r); strings.Count(got, "documentKey") != 1 || !strings.Contains(got, `documentKey: { _id: "new" }`) {
		t.Errorf("got %.300s", got)
	}
}

// TestMany runs readers, writers and change streams concurrently, for the race detector.
func TestMany(t *testing.T) {
	b := replicaSet(t)
	b.must(`{"create":"c"}`)
	done := make(chan error)
	commands := []string{
		`{"insert":"c","documents":[{"x":1},{"x":2}]}`, `{"find":"c","filter":{"x":1}}`,
		`{"update":"c","updates":[{"q":{"x":1},"u":{"$set":{"x":2}},"multi":true}]}`,
		`{"delete":"c","deletes":[{"q":{"x":2},"limit":0}]}`,
		`{"aggregate":"c","pipeline":[{"$group":{"_id":"$x","n":{"$sum":1}}}],"cursor":{}}`,
		`{"aggregate":"c","pipeline":[{"$changeStream":{"fullDocument":"updateLookup"}}],"cursor":{}}`,
		`{"listCollections":1}`,
		`{"createIndexes":"c","indexes":[{"key":{"x":1},"name":"x_1"}]}`, `{"dropIndexes":"c","index":"*"}`,
		`{"count":"c","hint":"_id_"}`,
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

// TestPanicReleasesLocks checks that a panic releases locks, because the server turns it into an error and continues.
func TestPanicReleasesLocks(t *testing.T) {
	fails := func() { panic("on purpose") }
	for name, run := range map[string]func(*Deployment, *store.Work){
		"view":   func(_ *Deployment, w *store.Work) { w.View(func(*store.Tx) { fails() }) },
		"update": func(_ *Deployment, w *store.Work) { _ = w.Update(func(*store.Tx) error { fails(); return nil }) },
		"kill some": func(d *Deployment, _ *store.Work) {
			d.cursors.killSessions(func(string) bool { fails(); return false })
		},
	} {
		d := New(Options{ReplicaSet: true})
		d.cursors.open[1] = &cursor{session: "s", killed: make(chan struct{})}
		w := d.NewWork(t.Context(), time.Time{}, 0)
		func() {
			defer func() { testkit.Equal(t, name, recover(), "on purpose") }()
			run(d, w)
		}()
		free := make(chan struct{})
		go func() {
			_ = w.Update(func(*store.Tx) error { return nil })
			openCursors(d)
			close(free)
		}()
		testkit.Receive(t, "the locks after "+name, free)
	}
}

// FuzzCommand runs commands, which may fail but not panic.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		`{"insert":"c","documents":[{"_id":1}]}`,
		`{"find":"c","filter":{"a":{"$gt":1}},"sort":{"a":1},"projection":{"a":1},"skip":1,"limit":2}`,
		`{"update":"c","updates":[{"q":{},"u":[{"$set":{"a":1}}],"upsert":true}]}`,
		`{"delete":"c","deletes":[{"q":{},"limit":0}]}`,
		`{"findAndModify":"c","query":{},"update":{"$inc":{"a":1}},"fields":{"a":1}}`,
		`{"createSearchIndexes":"c","indexes":[{"definition":{}}]}`,
		`{"aggregate":"c","pipeline":[{"$group":{"_id":"$a"}},{"$out":"o"}],"cursor":{}}`,
		`{"create":"v","viewOn":"c","pipeline":[]}`,
		`{"aggregate":"c","pipeline":[{"$changeStream":{"resumeAfter":{"_data":"82"}}}],"cursor":{}}`,
		`{"explain":{"find":"c"}}`,
		`{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a"}]}`,
		`{"bulkWrite":1,"ops":[{"insert":0,"document":{}}],"nsInfo":[{"ns":"a.b"}]}`,
		`{"mapReduce":"c","map":"()=>emit(1,2)","reduce":"()=>1","out":"o"}`,
		`{"getMore":{"$numberLong":"1"},"collection":"c"}`,
		`{"collMod":"c","index":{"keyPattern":{"_id":1},"hidden":true}}`,
		`{"create":"d","clusteredIndex":{"key":{"_id":1},"unique":true}}`,
		`{"distinct":"c","key":"a"}`, `{"count":"c"}`, `{"renameCollection":"db.a","to":"db.b"}`,
		`{"listDatabases":1,"filter":{"name":"a"}}`,
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

// openCursors returns the number of open cursors.
func openCursors(d *Deployment) int {
	d.cursors.mu.Lock()
	defer d.cursors.mu.Unlock()
	return len(d.cursors.open)
}
