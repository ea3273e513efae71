package server_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
	"github.com/unified-test-runner/utr/embedded/wire"
)

// TestClientThatLeaves has clients leave while their commands wait: soon the server has forgotten
// them, but for a write that has begun.
func TestClientThatLeaves(t *testing.T) {
	block := d("failCommands", bson.A{"find", "insert"}, "blockConnection", true, "blockTimeMS", 1000*60*60)
	for _, row := range []struct {
		reason  string
		block   bson.D // data of failCommand
		command bson.D
		flags   wire.Flags
		stays   bool
	}{
		{"a read that a fail point blocks", block, d("find", "c"), 0, false},
		{"a write that a fail point blocks has not begun", block, d("insert", "c", "documents", bson.A{d("_id", 2)}), 0, false},
		{"a client that expects no answer may leave", block, d("insert", "c", "documents", bson.A{d("_id", 2)}), wire.MoreToCome, true},
		{"a hello that waits for news", nil, d("hello", 1, "topologyVersion", d("processId", bson.ObjectID{}, "counter", int64(0)), "maxAwaitTimeMS", 3600000), 0, false},
		{"a read that sleeps", nil, d("find", "c", "filter", d("$where", "sleep(3600000)")), 0, false},
		{"a write that waits for a transaction goes on", nil, d("update", "c", "updates", bson.A{d("q", bson.D{}, "u", d("$set", d("x", 1)))}), 0, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := joined(t, "8.0", 1, server.Config{Kind: server.ReplicaSet, Backend: data.New(data.Options{ReplicaSet: true})}).Members()[0]
				other := pipe(t, s)
				other.call(d("insert", "c", "documents", bson.A{d("_id", 1)}, "$db", "db"))
				other.call(append(d("update", "c", "updates", bson.A{d("q", bson.D{}, "u", d("$set", d("x", 2)))}, "startTransaction", true, "$db", "db"),
					d("lsid", lsid, "txnNumber", int64(1), "autocommit", false)...))
				if row.block != nil {
					other.call(d("configureFailPoint", "failCommand", "mode", "alwaysOn", "data", row.block))
				}
				if row.command[0].Key == "hello" {
					hello := other.call(d("hello", 1)).Lookup("topologyVersion")
					row.command[1].Value = hello
				}
				leaving := pipe(t, s)
				leaving.send(row.flags, append(row.command, d("$db", "db")...))
				synctest.Wait()
				if err := leaving.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if n := other.call(d("serverStatus", 1)).Lookup("connections", "current").Int32(); n == 2 != row.stays {
					t.Errorf("%d connections, and the one is to stay: %v", n, row.stays)
				}
			})
		})
	}
}

// TestClientThatSendsAhead sees that nothing of what came while a command waited is lost.
func TestClientThatSendsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipe(t, joined(t, "8.0", 1, server.Config{}).Members()[0])
		c.call(d("configureFailPoint", "failCommand", "mode", d("times", 1), "data",
			d("failCommands", bson.A{"find"}, "blockConnection", true, "blockTimeMS", 5000)))
		// While the first command waits, the next one has come already.
		c.send(0, d("find", "c"))
		synctest.Wait()
		c.send(0, d("ping", 1))
		for _, what := range []string{"find", "ping"} {
			if reply, _ := c.receive(); reply == nil || code(reply) != 0 {
				t.Errorf("%s got %v", what, reply)
			}
		}
	})
}

// fragile is a stub whose clock fails once.
type fragile struct {
	stub
	fails *atomic.Bool
}

func (f fragile) OperationTime() bson.Timestamp {
	if f.fails.CompareAndSwap(true, false) {
		panic("ouch")
	}
	return f.stub.OperationTime()
}

// TestFailureOutsideOfHandlers ends one connection, and nothing else.
func TestFailureOutsideOfHandlers(t *testing.T) {
	fails := new(atomic.Bool)
	s := joined(t, "8.0", 1, server.Config{Kind: server.ReplicaSet, Backend: fragile{fails: fails}}).Members()[0]
	one, two := pipe(t, s), pipe(t, s)
	fails.Store(true)
	if reply := one.call(d("ping", 1)); reply != nil {
		t.Errorf("got %v", reply)
	}
	if reply := two.call(d("ping", 1)); code(reply) != 0 {
		t.Errorf("the other client got %v", reply)
	}
}
