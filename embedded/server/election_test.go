package server_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
)

// TestElectionEndsWhatThePrimaryHasBegun has a transaction open, and a write that waits for it, when
// the primary goes: neither is done, and a retryable write of before is known to the next primary.
func TestElectionEndsWhatThePrimaryHasBegun(t *testing.T) {
	for _, row := range []struct {
		reason string
		goes   func(c *server.Cluster, primary *server.Server) error
		dead   bool // it does not answer any more
	}{
		{"it steps down", func(c *server.Cluster, _ *server.Server) error { return c.StepDown() }, false},
		{"another is elected", func(c *server.Cluster, _ *server.Server) error { return c.Elect(c.Members()[2]) }, false},
		{"it leaves", func(c *server.Cluster, primary *server.Server) error { c.Leave(primary); return nil }, true},
		{"it is removed", func(c *server.Cluster, primary *server.Server) error {
			_, err := c.Configure(server.SetConfig{Name: "rs", Version: 2, Members: []server.Member{
				{ID: 1, Host: "h:1", Votes: 1, Priority: 1, BuildIndexes: true}, {ID: 2, Host: "h:2", Votes: 1, Priority: 1, BuildIndexes: true}}})
			return err
		}, true},
		{"it dies", func(c *server.Cluster, primary *server.Server) error { return c.Kill(primary) }, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := joined(t, "8.0", 3, server.Config{Kind: server.ReplicaSet, Backend: data.New(data.Options{ReplicaSet: true})})
				primary := c.Primary()
				session := func(name string, fields ...any) bson.D {
					id := bson.Binary{Subtype: 4, Data: []byte((name + "................")[:16])}
					return append(d(fields...), d("lsid", d("id", id), "txnNumber", int64(1))...)
				}
				docs := func(id int) bson.A { return bson.A{d("_id", id)} }
				once := session("writes", "insert", "c", "documents", docs(1), "$db", "db")
				commit := session("transacts", "commitTransaction", 1, "autocommit", false)

				before := pipe(t, primary)
				before.call(once)
				before.call(session("transacts", "insert", "c", "documents", docs(2), "autocommit", false, "startTransaction", true, "$db", "db"))
				waits := pipe(t, primary)
				waits.send(0, session("waits", "insert", "c", "documents", docs(2), "$db", "db"))
				synctest.Wait()
				if err := row.goes(c, primary); err != nil {
					t.Fatal(err)
				}
				if reply, _ := waits.receive(); row.dead != (reply == nil) || !row.dead && (code(reply) != 11602 || reply.Lookup("errorLabels").String() != `["RetryableWriteError"]`) {
					t.Errorf("the write that waited got %v", reply)
				}
				after := pipe(t, c.Primary())
				if reply := after.call(commit); code(reply) != 251 || reply.Lookup("errorLabels").String() != `["TransientTransactionError"]` {
					t.Errorf("the commit got %v", reply)
				}
				if reply := after.call(once); reply.Lookup("n").AsInt64() != 1 {
					t.Errorf("the retried write got %v", reply)
				}
				if found := after.call(d("find", "c", "$db", "db")).Lookup("cursor", "firstBatch").Array().String(); found != `[{"_id": {"$numberInt":"1"}}]` {
					t.Errorf("found %s", found)
				}
			})
		})
	}
}

// TestStandaloneStartsAnew sees that a standalone, which has no terms, can be written to again.
func TestStandaloneStartsAnew(t *testing.T) {
	c := empty(t, "8.0", server.Config{Backend: data.New(data.Options{})})
	s, err := c.Add("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Kill(s), c.Restart(s)); err != nil {
		t.Fatal(err)
	}
	if reply := pipe(t, s).call(d("insert", "c", "documents", bson.A{bson.D{}}, "$db", "db")); reply.Lookup("n").AsInt64() != 1 {
		t.Errorf("got %v", reply)
	}
}
