package server_test

import (
	"testing"
	"testing/synctest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
)

// TestCommandOutlivesItsConnection has a fail point close the connection of an update whose second
// statement has to wait: the update goes on, its retry waits for it, and does nothing again.
func TestCommandOutlivesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := joined(t, "8.0", 1, server.Config{Kind: server.ReplicaSet, Backend: data.New(data.Options{ReplicaSet: true})}).Members()[0]
		other := pipe(t, s)
		on := func(fields bson.D) bson.D { return append(fields, d("$db", "db")...) }
		inc := func(id int) bson.D { return d("q", d("_id", id), "u", d("$inc", d("n", 1))) }
		session := d("lsid", d("id", bson.Binary{Subtype: 4, Data: []byte("another session.")}), "txnNumber", int64(1))
		update := on(append(d("update", "c", "updates", bson.A{inc(1), inc(2)}), session...))
		txn := append(d("lsid", lsid, "txnNumber", int64(1), "autocommit", false), d("$db", "db")...)

		other.call(on(d("insert", "c", "documents", bson.A{d("_id", 1, "n", 0), d("_id", 2, "n", 0)})))
		other.call(append(d("update", "c", "updates", bson.A{d("q", d("_id", 2), "u", d("$inc", d("n", 10)))}, "startTransaction", true), txn...))
		other.call(d("configureFailPoint", "onPrimaryTransactionalWrite", "mode", d("times", 1), "data", bson.D{}))

		if reply := pipe(t, s).call(update); reply != nil {
			t.Fatalf("the connection was not closed: %v", reply)
		}
		retry := pipe(t, s)
		retry.send(0, update)
		synctest.Wait()
		txn[3].Value = "admin"
		if reply := other.call(append(d("commitTransaction", 1), txn...)); code(reply) != 0 {
			t.Fatal(reply)
		}
		if reply, _ := retry.receive(); reply.Lookup("n").AsInt64() != 2 {
			t.Errorf("the retry got %v", reply)
		}
		found := other.call(on(d("find", "c"))).Lookup("cursor", "firstBatch").Array().String()
		if want := `[{"_id": {"$numberInt":"1"},"n": {"$numberInt":"1"}},{"_id": {"$numberInt":"2"},"n": {"$numberInt":"11"}}]`; found != want {
			t.Errorf("got %s, want %s", found, want)
		}
	})
}
