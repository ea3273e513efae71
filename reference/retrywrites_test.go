package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	_ "github.com/unified-test-runner/utr/internal/wire42" // labels by code need a server before 4.4
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// writeOp is an operation that writes, and the commands that it sends.
type writeOp struct {
	object, name string
	args         bson.D
	commands     string
}

func d(pairs ...any) bson.D {
	out := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// retryableWrites are all supported write operations (Retryable Writes,
// "Supported Write Operations").
func retryableWrites() []writeOp {
	x, set := d("_id", 1), d("$set", d("a", 1))
	return []writeOp{
		{"collection", "insertOne", d("document", x), "insert"},
		{"collection", "insertMany", d("documents", bson.A{x}), "insert"},
		{"collection", "insertMany", d("documents", bson.A{x}, "ordered", false), "insert"},
		{"collection", "updateOne", d("filter", x, "update", set), "update"},
		{"collection", "replaceOne", d("filter", x, "replacement", d("a", 1)), "update"},
		{"collection", "deleteOne", d("filter", x), "delete"},
		{"collection", "findOneAndDelete", d("filter", x), "findAndModify"},
		{"collection", "findOneAndReplace", d("filter", x, "replacement", d("a", 1)), "findAndModify"},
		{"collection", "findOneAndUpdate", d("filter", x, "update", set), "findAndModify"},
		{"collection", "bulkWrite", d("requests", bson.A{d("updateOne", d("filter", x, "update", set))}), "update"},
		{"collection", "bulkWrite", d("requests", bson.A{d("deleteOne", d("filter", x))}, "ordered", false), "delete"},
		{"client", "clientBulkWrite", d("models", bson.A{d("insertOne", d("namespace", "db.coll", "document", x))}), "bulkWrite"},
	}
}

// plainWrites are never retried, and have no transaction number ("Unsupported
// Write Operations").
func plainWrites() []writeOp {
	x, set := d("_id", 1), d("$set", d("a", 1))
	return []writeOp{
		{"collection", "updateMany", d("filter", x, "update", set), "update"},
		{"collection", "deleteMany", d("filter", x), "delete"},
		{"collection", "bulkWrite", d("requests", bson.A{d("updateOne", d("filter", x, "update", set)),
			d("updateMany", d("filter", x, "update", set))}), "update"},
		{"collection", "bulkWrite", d("requests", bson.A{d("deleteMany", d("filter", x))}, "ordered", false), "delete"},
		{"client", "clientBulkWrite", d("models", bson.A{d("insertOne", d("namespace", "db.coll", "document", x)),
			d("deleteMany", d("namespace", "db.coll", "filter", x))}), "bulkWrite"},
		{"collection", "aggregate", d("pipeline", bson.A{d("$out", "o")}), "aggregate"},
		{"collection", "aggregate", d("pipeline", bson.A{d("$merge", d("into", "o"))}), "aggregate"},
		{"collection", "createIndex", d("keys", d("a", 1)), "createIndexes"},
		{"database", "createCollection", d("collection", "made"), "create"},
		{"database", "dropCollection", d("collection", "made"), "drop"},
		{"database", "runCommand", d("commandName", "insert", "command", d("insert", "coll", "documents", bson.A{x})), "insert"},
	}
}

// concern is a reply with a write concern error.
func concern(code int32, labels ...string) step {
	r := d("ok", 1.0, "n", int32(1), "value", nil, "writeConcernError", d("code", code, "errmsg", "scripted concern"))
	if len(labels) > 0 {
		r = append(r, bson.E{Key: "errorLabels", Value: labels})
	}
	return step{reply: r}
}

// faulty is a reply with a write error, and perhaps a write concern error.
func faulty(code int32, more ...any) step {
	return step{reply: append(d("ok", 1.0, "n", int32(0), "writeErrors",
		bson.A{d("index", 0, "code", code, "errmsg", "scripted write")}), d(more...)...)}
}

var written = step{reply: bson.D{{Key: "ok", Value: 1.0}, {Key: "nInserted", Value: 1}, cursorField("firstBatch", 0, "admin.$cmd.bulkWrite")}}

// attemptsOf gives the started events of a command, and what was sent.
func attemptsOf(b *bench, command string) (ids []int64, operations map[int64]bool, sent []bson.Raw) {
	b.t.Helper()
	events, err := b.Events(context.Background(), "client", 0, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	operations = map[int64]bool{}
	for _, e := range events {
		if e.Type == result.CommandStarted && e.Command.CommandName == command {
			ids = append(ids, e.Command.RequestID)
			operations[e.Command.OperationID] = true
		}
	}
	return ids, operations, b.s.commands(command)
}

func TestWritesAreRetried(t *testing.T) {
	for _, kind := range []string{"replicaset", "sharded", "load-balanced"} {
		for _, fault := range []struct {
			name string
			step step
		}{{"network", closes}, {"91", fails(91, labelWrite)}, {"concern 91", concern(91, labelWrite)}, {"any code", fails(4711, labelWrite)},
			{"write error", faulty(91, "errorLabels", bson.A{labelWrite})}} {
			for i, op := range retryableWrites() {
				t.Run(fmt.Sprintf("%s %s %d %s", kind, fault.name, i, op.name), func(t *testing.T) {
					s := script(t, kind, map[string]int{"sharded": 1}[kind]+1)
					s.on(op.commands, fault.step)
					if op.commands == "bulkWrite" {
						s.on(op.commands, written)
					}
					b := open(t, s, Options{}, nil)
					if out := b.do(op.object, op.name, op.args); out.Err != nil {
						t.Fatal(out.Err)
					}
					ids, operations, sent := attemptsOf(b, op.commands)
					if len(sent) != 2 || len(ids) != 2 {
						t.Fatalf("%d attempts", len(sent))
					}
					if ids[0] == ids[1] || len(operations) != 1 {
						t.Errorf("requestIds %v, operationIds %v", ids, operations)
					}
					n := sent[0].Lookup("txnNumber")
					if n.Type != bson.TypeInt64 || n.Int64() < 1 || !n.Equal(sent[1].Lookup("txnNumber")) ||
						!sent[0].Lookup("lsid").Equal(sent[1].Lookup("lsid")) {
						t.Errorf("transaction ids %v, %v", sent[0], sent[1])
					}
				})
			}
		}
	}
}

func TestWritesThatAreNeverRetried(t *testing.T) {
	off := d("retryWrites", false)
	first := retryableWrites()[0]
	unacknowledged := writeOp{first.object, first.name, append(slices.Clone(first.args), bson.E{Key: "writeConcern", Value: d("w", 0)}), "insert"}
	type row struct {
		why, kind string
		op        writeOp
		options   bson.D
	}
	var rows []row
	for i, op := range plainWrites() {
		rows = append(rows, row{fmt.Sprintf("unsupported %d %s", i, op.name), "replicaset", op, nil})
	}
	for i, op := range retryableWrites() {
		rows = append(rows, row{fmt.Sprintf("retryWrites false %d %s", i, op.name), "replicaset", op, off},
			row{fmt.Sprintf("standalone %d %s", i, op.name), "single", op, nil})
	}
	for _, r := range rows {
		for _, fault := range []struct {
			name  string
			step  step
			label bool
		}{{"network", closes, false}, {"labelled", fails(91, labelWrite), true}, {"by code on an old server", fails(91), false}} {
			t.Run(r.why+" "+fault.name, func(t *testing.T) {
				s := script(t, r.kind, 1)
				if strings.Contains(fault.name, "old") && r.op.commands != "bulkWrite" {
					s.wire = 8
				}
				s.on(r.op.commands, fault.step)
				b := open(t, s, Options{}, r.options)
				out := b.do(r.op.object, r.op.name, r.op.args)
				if out.Err == nil || out.Err.HasLabel(labelWrite) != fault.label {
					t.Errorf("%+v", out.Err)
				}
				_, _, sent := attemptsOf(b, r.op.commands)
				if len(sent) != 1 {
					t.Fatalf("%d attempts", len(sent))
				}
				if _, err := sent[0].LookupErr("txnNumber"); err == nil {
					t.Errorf("a transaction number: %v", sent[0])
				}
			})
		}
	}
	t.Run("w: 0", func(t *testing.T) {
		s := script(t, "replicaset", 1)
		b := open(t, s, Options{}, nil)
		b.do(unacknowledged.object, unacknowledged.name, unacknowledged.args)
		b.do("database", "runCommand", d("commandName", "ping", "command", d("ping", 1))) // after it, on the same connection
		_, _, sent := attemptsOf(b, "insert")
		if len(sent) != 1 {
			t.Fatalf("%d attempts", len(sent))
		}
		for _, key := range []string{"txnNumber", "lsid"} {
			if _, err := sent[0].LookupErr(key); err == nil {
				t.Errorf("%s: %v", key, sent[0])
			}
		}
	})
	t.Run("in a transaction", func(t *testing.T) {
		for _, fault := range []step{closes, fails(91, labelWrite)} {
			s := script(t, "replicaset", 1)
			s.on("insert", fault)
			b := open(t, s, Options{}, nil)
			b.entity("session", "session", d("client", "client"))
			b.do("session", "startTransaction", nil)
			out := b.do("collection", "insertOne", d("document", d("_id", 1), "session", "session"))
			if _, _, sent := attemptsOf(b, "insert"); len(sent) != 1 || out.Err == nil {
				t.Errorf("%d attempts, %+v", len(sent), out.Err)
			}
			if fault.close && (out.Err.HasLabel(labelWrite) || !out.Err.HasLabel(labelTransient)) {
				t.Errorf("labels %v", out.Err.Labels)
			}
		}
	})
}

// TestWriteLabels: labels come from the server since 4.4, and before that from
// the driver, by code.
func TestWriteLabels(t *testing.T) {
	const old, new = 8, 25
	for _, c := range []struct {
		why     string
		kind    string
		wire    int32
		step    step
		options bson.D
		retried bool
	}{
		{"a listed code of a mongod before 4.4", "replicaset", old, fails(91), nil, true},
		{"ExceededTimeLimit counts too", "replicaset", old, fails(262), nil, true},
		{"another code", "replicaset", old, fails(64), nil, false},
		{"ReadConcernMajorityNotAvailableYet is for reads alone", "replicaset", old, fails(134), nil, false},
		{"a listed code of a mongos before 4.4", "sharded", old, fails(91), nil, true},
		{"a listed code since 4.4 without the label", "replicaset", new, fails(91), nil, false},
		{"retryWrites is off", "replicaset", old, fails(91), d("retryWrites", false), false},
		{"the write concern error of a mongod", "replicaset", old, concern(91), nil, true},
		{"the write concern error of a mongos", "sharded", old, concern(91), nil, false},
		{"a write concern error since 4.4 without the label", "replicaset", new, concern(91), nil, false},
		{"WriteConcernFailed is not listed", "replicaset", old, concern(64), nil, false},
		{"a write error never counts", "replicaset", old, faulty(91), nil, false},
		{"nor beside a write concern error", "replicaset", old, faulty(91, "writeConcernError", d("code", 64, "errmsg", "x")), nil, false},
		{"a write concern error beside a write error does", "replicaset", old, faulty(11000, "writeConcernError", d("code", 91, "errmsg", "x")), nil, true},
		{"a network error on an old server", "replicaset", old, closes, nil, true},
		{"a network error on a new server", "replicaset", new, closes, nil, true},
		{"a network error with retryWrites off", "replicaset", new, closes, d("retryWrites", false), false},
		{"a network error on a standalone", "single", new, closes, nil, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := script(t, c.kind, 1)
			s.wire = c.wire
			s.on("insert", c.step, c.step)
			b := open(t, s, Options{}, c.options)
			out := b.do("collection", "insertOne", d("document", d("_id", 1)))
			n := len(s.commands("insert"))
			if n != map[bool]int{true: 2, false: 1}[c.retried] || out.Err == nil || out.Err.HasLabel(labelWrite) != c.retried {
				t.Errorf("%d attempts, %+v", n, out.Err)
			}
		})
	}
}

// TestWhichWriteErrorIsRaised: the newest of those that tell of a write, else
// the first, and each with the server that it comes from.
func TestWhichWriteErrorIsRaised(t *testing.T) {
	const w, none = labelWrite, "NoWritesPerformed"
	for _, c := range []struct {
		why   string
		steps []step
		want  int32
	}{
		{"both tell of a write: the second", []step{fails(91, w), fails(10107, w)}, 10107},
		{"the second was no attempt to write", []step{fails(91, w), fails(10107, w, none)}, 91},
		{"neither was: the first", []step{fails(91, w, none), fails(10107, w, none)}, 91},
		{"the first was none", []step{fails(91, w, none), fails(10107, w)}, 10107},
		{"the second is not retryable", []step{fails(91, w), fails(42)}, 42},
		{"the second is not retryable, and was no attempt", []step{fails(91, w), fails(42, none)}, 91},
	} {
		for _, kind := range []string{"replicaset", "sharded"} {
			t.Run(kind+" "+c.why, func(t *testing.T) {
				s := script(t, kind, map[string]int{"sharded": 1}[kind]+1)
				s.on("insert", c.steps...)
				b := open(t, s, Options{}, nil)
				out := b.do("collection", "insertOne", d("document", d("_id", 1)))
				if out.Err == nil || out.Err.Code != c.want {
					t.Fatalf("%+v", out.Err)
				}
				events, _ := b.Events(context.Background(), "client", 0, 0)
				for _, e := range events {
					if e.Type == result.CommandFailed && e.Command.Failure != nil && e.Command.Failure.Code == c.want && e.Address != out.Err.Server {
						t.Errorf("the error of %s is said to come from %s", e.Address, out.Err.Server)
					}
				}
			})
		}
	}
}

// TestTransactionNumbersGrow over all commands that have one, whatever comes
// between them.
func TestTransactionNumbersGrow(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.on("update", fails(91, labelWrite))
	s.on("bulkWrite", written, written)
	b := open(t, s, Options{}, nil)
	for _, op := range append(append(retryableWrites(), plainWrites()...), writeOp{"collection", "bulkWrite", d("requests", bson.A{
		d("insertOne", d("document", d("_id", 7))), d("updateOne", d("filter", d(), "update", d("$set", d("a", 1)))),
		d("insertOne", d("document", d("_id", 8))), d("deleteMany", d("filter", d())), d("insertOne", d("document", d("_id", 9)))}), ""}) {
		b.do(op.object, op.name, op.args)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, numbered := map[string]int64{}, 0
	var before bson.Raw
	for _, c := range s.seen {
		n, err := c.LookupErr("txnNumber")
		if err != nil {
			continue
		}
		numbered++
		id := c.Lookup("lsid").String()
		if n.Int64() <= last[id] && !(before != nil && n.Int64() == last[id] && before.Lookup("updates").Equal(c.Lookup("updates"))) {
			t.Errorf("%d after %d: %v", n.Int64(), last[id], c)
		}
		last[id], before = n.Int64(), c
	}
	if numbered != len(retryableWrites())+1+4 { // a retry, and the batches of the last bulk but for one
		t.Errorf("%d commands have a number", numbered)
	}
}

// TestOldStorageEngine is prose test 1 of Retryable Writes.
func TestOldStorageEngine(t *testing.T) {
	const old, new = "Transaction numbers are only allowed on storage engines that support document-level locking",
		"This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
	refuses := func(code int32, message string) step {
		return step{reply: d("ok", 0.0, "code", code, "codeName", "IllegalOperation", "errmsg", message)}
	}
	insert := retryableWrites()[0]
	for _, c := range []struct {
		why     string
		op      writeOp
		step    step
		options bson.D
		want    string
	}{
		{"a retryable write", insert, refuses(20, old), nil, new},
		{"another message", insert, refuses(20, "Cannot do that"), nil, "Cannot do that"},
		{"another code", insert, refuses(21, old), nil, old},
		{"without a transaction number", insert, refuses(20, old), d("retryWrites", false), old},
		{"of runCommand", plainWrites()[10], refuses(20, old), nil, old},
	} {
		s := script(t, "replicaset", 1)
		s.on("insert", c.step, c.step)
		b := open(t, s, Options{}, c.options)
		out := b.do(c.op.object, c.op.name, c.op.args)
		if out.Err == nil || out.Err.Message != c.want || len(s.commands("insert")) != 1 {
			t.Errorf("%s: %+v", c.why, out.Err)
		}
	}
}

// TestAFailedRetryInterruptsABulk, ordered or not.
func TestAFailedRetryInterruptsABulk(t *testing.T) {
	for _, c := range []struct {
		why     string
		ordered bool
		steps   []step
		want    string
	}{
		{"the retry fails", false, []step{fails(91, labelWrite), fails(91, labelWrite)}, "insert insert"},
		{"the retry fails in its write concern", false, []step{concern(91, labelWrite), concern(91, labelWrite)}, "insert insert"},
		{"the retry succeeds", false, []step{fails(91, labelWrite)}, "insert insert update"},
		{"a write error does not interrupt unordered writes", false, []step{faulty(11000)}, "insert update"},
		{"it does interrupt ordered ones", true, []step{faulty(11000)}, "insert"},
		{"a write concern error does not", true, []step{concern(64)}, "insert update"},
		{"any other error does", false, []step{fails(42)}, "insert"},
	} {
		s := script(t, "replicaset", 1)
		s.on("insert", c.steps...)
		b := open(t, s, Options{}, nil)
		b.do("collection", "bulkWrite", d("ordered", c.ordered, "requests", bson.A{d("insertOne", d("document", d("_id", 1))),
			d("updateOne", d("filter", d("_id", 1), "update", d("$set", d("a", 1))))}))
		var got []string
		for _, m := range s.seen {
			if n := m.Index(0).Key(); n == "insert" || n == "update" {
				got = append(got, n)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}

// TestTransactionEndsAreRetried whatever retryWrites says; a commit then asks
// for a majority.
func TestTransactionEndsAreRetried(t *testing.T) {
	for _, end := range []string{"commitTransaction", "abortTransaction"} {
		for _, fault := range []struct {
			name string
			step step
		}{{"network", closes}, {"91", fails(91, labelWrite)}, {"concern", concern(91, labelWrite)}} {
			for _, on := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s %v", end, fault.name, on), func(t *testing.T) {
					s := script(t, "replicaset", 1)
					s.on(end, fault.step, fault.step)
					b := open(t, s, Options{}, d("retryWrites", on))
					b.entity("session", "session", d("client", "client"))
					b.do("session", "startTransaction", nil)
					b.do("collection", "insertOne", d("document", d("_id", 1), "session", "session"))
					out := b.do("session", end, nil)
					_, operations, sent := attemptsOf(b, end)
					if len(sent) != 2 || len(operations) != 1 || !sent[0].Lookup("txnNumber").Equal(sent[1].Lookup("txnNumber")) ||
						!sent[0].Lookup("txnNumber").Equal(s.commands("insert")[0].Lookup("txnNumber")) {
						t.Fatalf("sent %v", sent)
					}
					if end == "abortTransaction" {
						if out.Err != nil {
							t.Errorf("abort raised %+v", out.Err)
						}
						return
					}
					if out.Err == nil || !out.Err.HasLabel(labelWrite) || !out.Err.HasLabel(labelUnknownCommit) || out.Err.HasLabel(labelTransient) {
						t.Errorf("%+v", out.Err)
					}
					if _, err := sent[0].LookupErr("writeConcern"); err == nil {
						t.Errorf("the first commit has a write concern: %v", sent[0])
					}
					if w, _ := sent[1].Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
						t.Errorf("the second commit: %v", sent[1])
					}
				})
			}
		}
	}
}

// TestWritesUnderTimeoutMS are retried until the deadline, with one number.
func TestWritesUnderTimeoutMS(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.on("insert", fails(91, labelWrite), closes, concern(91, labelWrite), fails(10107, labelWrite))
	b := open(t, s, Options{}, d("timeoutMS", 15000))
	if out := b.do("collection", "insertOne", d("document", d("_id", 1))); out.Err != nil {
		t.Fatal(out.Err)
	}
	sent := s.commands("insert")
	if len(sent) != 5 {
		t.Fatalf("%d attempts", len(sent))
	}
	for _, c := range sent {
		if !c.Lookup("txnNumber").Equal(sent[0].Lookup("txnNumber")) {
			t.Errorf("another number: %v", c)
		}
	}
	for name, st := range map[string]step{"reply": fails(50), "write error": faulty(50), "concern": concern(50),
		"second": faulty(11000, "writeConcernError", d("code", 50, "errmsg", "x"))} {
		s.on("insert", st)
		out := b.do("collection", "insertOne", d("document", d("_id", 1)))
		if out.Err == nil || !out.Err.Timeout {
			t.Errorf("MaxTimeMSExpired in a %s: %+v", name, out.Err)
		}
	}
	// The time passes between a failure and the retry.
	for _, st := range []step{fails(91, labelWrite), {close: true}} {
		st.wait = 300 * time.Millisecond
		s.on("insert", st, st, st)
		out := b.do("collection", "insertOne", d("document", d("_id", 1), "timeoutMS", 100))
		if out.Err == nil || !out.Err.Timeout {
			t.Errorf("after the deadline: %+v", out.Err)
		}
		s.mu.Lock()
		delete(s.steps, "insert")
		s.mu.Unlock()
	}
}

// TestCheckOutUnderTimeoutMS: check-out has what server selection has left of
// serverSelectionTimeoutMS; waitQueueTimeoutMS counts without timeoutMS alone.
func TestCheckOutUnderTimeoutMS(t *testing.T) {
	for _, c := range []struct {
		why     string
		options bson.D
		holds   time.Duration
		fails   bool
	}{
		{"serverSelectionTimeoutMS ends it", d("timeoutMS", 60000, "serverSelectionTimeoutMS", 500), 5 * time.Second, true},
		{"waitQueueTimeoutMS does not", d("timeoutMS", 60000, "waitQueueTimeoutMS", 10), 300 * time.Millisecond, false},
		{"but does without timeoutMS", d("waitQueueTimeoutMS", 10), 5 * time.Second, true},
		{"serverSelectionTimeoutMS does not without it", d("serverSelectionTimeoutMS", 500), time.Second, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := script(t, "replicaset", 1)
			b := open(t, s, Options{}, append(d("maxPoolSize", 1), c.options...))
			// Until the server is known, which may outlast what the options allow.
			for late := time.Now().Add(30 * time.Second); ; {
				out := b.do("database", "runCommand", d("commandName", "ping", "command", d("ping", 1)))
				if out.Err == nil {
					break
				}
				if time.Now().After(late) {
					t.Fatalf("no ping succeeded: %+v", out.Err)
				}
			}
			s.on("find", step{wait: c.holds})
			done := make(chan struct{})
			go func() {
				defer close(done)
				b.do("collection", "find", d("filter", d()))
			}()
			for late := time.After(10 * time.Second); len(s.commands("find")) == 0; {
				select {
				case <-late:
					t.Fatal("the connection is not taken")
				case <-time.After(time.Millisecond):
				}
			}
			out := b.do("database", "runCommand", d("commandName", "ping", "command", d("ping", 1)))
			if c.fails && (out.Err == nil || out.Err.Kind != "connection check-out") || !c.fails && out.Err != nil {
				t.Errorf("%+v", out.Err)
			}
			if c.fails {
				select {
				case <-done:
					t.Error("the check-out waited for the connection")
				default:
				}
			}
			if timed := len(c.options) > 0 && c.options[0].Key == "timeoutMS"; c.fails && timed && !out.Err.Timeout {
				t.Errorf("no timeout error: %+v", out.Err)
			}
			s.members[0].mu.Lock() // the long find need not be waited for
			for k := range s.members[0].open {
				_ = k.Close()
			}
			s.members[0].mu.Unlock()
			<-done
		})
	}
}

// TestBatches: groups follow the order if they have to, and are split where a
// server takes no more.
func TestBatches(t *testing.T) {
	kinds := map[byte]string{'i': "insertOne", 'u': "updateOne", 'U': "updateMany", 'd': "deleteOne"}
	for _, c := range []struct {
		why, models string
		ordered     bool
		limit       limits
		want        string
	}{
		{"one group", "iii", true, limits{9, 99}, "insert 0 1 2"},
		{"ordered groups follow each other", "iuudi", true, limits{9, 99}, "insert 0; update 1 2; delete 3; insert 4"},
		{"unordered ones are gathered", "iuudi", false, limits{9, 99}, "insert 0 4; update 1 2; delete 3"},
		{"many and one share a command", "uUu", true, limits{9, 99}, "update 0 1 2"},
		{"a full batch", "iiiii", true, limits{2, 99}, "insert 0 1; insert 2 3; insert 4"},
		{"a full batch among others", "iuiuii", false, limits{2, 99}, "insert 0 2; update 1 3; insert 4 5"},
		{"too many bytes", "iii", true, limits{9, 20}, "insert 0 1; insert 2"},
		{"a statement that is too large stands alone", "iii", false, limits{9, 5}, "insert 0; insert 1; insert 2"},
	} {
		var models []model
		sizes := make([]int, len(c.models))
		for i := range c.models {
			models, sizes[i] = append(models, model{kind: kinds[c.models[i]]}), 10
		}
		var got []string
		for _, b := range batches(models, sizes, c.ordered, c.limit) {
			got = append(got, strings.Trim(b.group+" "+strings.Trim(fmt.Sprint(b.models), "[]"), " "))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %s, want %s", c.why, s, c.want)
		}
	}
}

// TestSplitBulksAreNumberedOneByOne: each command of a bulk has a number of its
// own, if what it holds allows one; results are put together again.
func TestSplitBulksAreNumberedOneByOne(t *testing.T) {
	s := script(t, "replicaset", 1)
	s.batch = 2
	s.on("insert", step{}, fails(91, labelWrite), step{reply: d("ok", 1.0, "n", 1, "writeErrors",
		bson.A{d("index", 1, "code", 11000, "errmsg", "twice")})})
	b := open(t, s, Options{}, nil)
	b.do("database", "runCommand", d("commandName", "ping", "command", d("ping", 1))) // the limits are known now
	var docs bson.A
	for i := range 5 {
		docs = append(docs, d("_id", i))
	}
	out := b.do("collection", "insertMany", d("documents", docs, "ordered", false))
	sent := s.commands("insert")
	var got []string
	for _, c := range sent {
		a, _ := c.Lookup("documents").Array().Values()
		got = append(got, fmt.Sprintf("%d of %d", len(a), c.Lookup("txnNumber").Int64()))
	}
	if want := "2 of 1, 2 of 2, 2 of 2, 1 of 3"; strings.Join(got, ", ") != want {
		t.Errorf("sent %v, want %s", got, want)
	}
	if out.Err == nil || len(out.Err.WriteErrors) != 1 || out.Err.WriteErrors[3] == nil {
		t.Errorf("%+v", out.Err)
	}
}

// TestClientBulksAreSplit: their results and errors have the places of the
// whole.
func TestClientBulksAreSplit(t *testing.T) {
	reply := func(n int, docs ...bson.D) step {
		return step{reply: bson.D{{Key: "ok", Value: 1.0}, {Key: "nInserted", Value: n}, cursorField("firstBatch", 0, "admin.$cmd.bulkWrite", docs...)}}
	}
	done := func(at int) bson.D { return d("ok", 1.0, "idx", at, "n", 1) }
	bad := d("ok", 0.0, "idx", 1, "code", 11000, "errmsg", "twice")
	for _, c := range []struct {
		why     string
		ordered bool
		steps   []step
		sent    string
		results string // places
		errors  []int
		partial bool
	}{
		{"all well", true, []step{reply(2, done(0), done(1)), reply(2, done(0), done(1)), reply(1, done(0))}, "2 of 1, 2 of 2, 1 of 3", "0 1 2 3 4", nil, false},
		{"an error ends ordered writes", true, []step{reply(2, done(0), done(1)), reply(1, done(0), bad)}, "2 of 1, 2 of 2", "0 1 2", []int{3}, true},
		{"and not unordered ones", false, []step{reply(2, done(0), done(1)), reply(1, done(0), bad), reply(1, done(0))}, "2 of 1, 2 of 2, 1 of 3", "0 1 2 4", []int{3}, true},
		{"a retry has the number and the writes of the first attempt", true, []step{reply(2, done(0), done(1)), closes, reply(2, done(0), done(1)), reply(1, done(0))},
			"2 of 1, 2 of 2, 2 of 2, 1 of 3", "0 1 2 3 4", nil, false},
		{"a failed retry ends it", false, []step{reply(2, done(0), done(1)), fails(91, labelWrite), fails(91, labelWrite)}, "2 of 1, 2 of 2, 2 of 2", "0 1", nil, true},
		{"so does an error of the first command", false, []step{fails(42)}, "2 of 1", "", nil, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := script(t, "replicaset", 1)
			s.batch = 2
			s.on("bulkWrite", c.steps...)
			b := open(t, s, Options{}, nil)
			b.do("database", "runCommand", d("commandName", "ping", "command", d("ping", 1))) // the limits are known now
			var models bson.A
			for i := range 5 {
				models = append(models, d("insertOne", d("namespace", fmt.Sprintf("db.c%d", i/3), "document", d("_id", i))))
			}
			out := b.do("client", "clientBulkWrite", d("models", models, "ordered", c.ordered, "verboseResults", true))
			var got []string
			for _, m := range s.commands("bulkWrite") {
				ops, _ := m.Lookup("ops").Array().Values()
				ns, _ := m.Lookup("nsInfo").Array().Values()
				got = append(got, fmt.Sprintf("%d of %d", len(ops), m.Lookup("txnNumber").Int64()))
				for _, op := range ops {
					if at, _ := enginekit.Integer(op.Document().Lookup("insert")); int(at) >= len(ns) {
						t.Errorf("namespace %d of %v", at, ns)
					}
				}
			}
			if strings.Join(got, ", ") != c.sent {
				t.Errorf("sent %v, want %s", got, c.sent)
			}
			if failed := c.errors != nil || strings.Contains(c.why, "fail") || strings.Contains(c.why, "first command"); failed != (out.Err != nil) {
				t.Fatalf("%+v", out.Err)
			}
			value := out.Value
			if out.Err != nil {
				value = out.Err.Partial
				for _, at := range c.errors {
					if out.Err.WriteErrors[at] == nil {
						t.Errorf("no error of write %d: %v", at, out.Err.WriteErrors)
					}
				}
				if len(out.Err.WriteErrors) != len(c.errors) || c.partial != (value.Type != 0) {
					t.Errorf("%+v", out.Err)
				}
			}
			var places []string
			if value.Type != 0 {
				es, _ := value.Document().Lookup("insertResults").Document().Elements()
				for _, e := range es {
					places = append(places, e.Key())
				}
			}
			if strings.Join(places, " ") != c.results {
				t.Errorf("results %v, want %s", places, c.results)
			}
		})
	}
}
