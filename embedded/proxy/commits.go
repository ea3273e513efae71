package proxy

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// lackingField is a field that takes effect inside a server: the write must not be reflected.
const lackingField = "failBeforeCommitExceptionCode"

// LackingFields returns the fields of the data of fail points that a proxy refuses.
func LackingFields() []string { return []string{lackingField} }

// commits evaluates onPrimaryTransactionalWrite for each commit of a retryable write, and reports whether the
// connection is closed. The command has run: a server, too, continues a command whose connection it closes.
func (k *conn) commits(x *pending, reply bson.Raw) (closes bool) {
	registry := k.registry()
	number, numbered := x.Body.Lookup("txnNumber").AsInt64OK()
	if registry == nil || value.Has(x.Body, "autocommit") || !numbered {
		return false
	}
	if on, _ := registry.On(failpoint.OnPrimaryTransactionalWrite); !on {
		return false
	}
	n := commitsOf(&x.request, reply)
	if n > 0 && !k.front.proxy.numbers.next(x.Body.Lookup("lsid", "id"), number) {
		return false
	}
	for range n {
		f, hit := registry.During(failpoint.OnPrimaryTransactionalWrite, k.command(x))
		closes = closes || hit && f.CloseConnection
	}
	return closes
}

// commitsOf returns how often a retryable write has committed: once for each update and delete that changes something,
// and once for documents that are inserted together.
func commitsOf(r *request, reply bson.Raw) int {
	number := func(from bson.Raw, path ...string) int {
		return int(value.IntAt(from, path...))
	}
	switch r.name {
	case "insert":
		return together(number(reply, "n"), 1, value.Has(reply, "writeErrors"))
	case "update":
		return number(reply, "nModified") + len(value.Elements(reply.Lookup("upserted")))
	case "delete":
		return number(reply, "n")
	case "findAndModify", "findandmodify":
		return number(reply, "lastErrorObject", "n")
	case "bulkWrite":
		others := number(reply, "nModified") + number(reply, "nUpserted") + number(reply, "nDeleted")
		return others + together(number(reply, "nInserted"), r.inserts(), number(reply, "nErrors") > 0)
	}
	return 0
}

// together returns how often n inserted documents have committed. If a statement has failed, a server commits them one
// by one.
func together(n, batches int, failed bool) int {
	if failed {
		return n
	}
	return min(n, batches)
}

// inserts returns the number of batches of a bulkWrite command: of consecutive inserts into a collection.
func (r *request) inserts() (batches int) {
	before := bson.RawValue{}
	for _, op := range value.Documents(r.Document().Lookup("ops")) {
		into, _ := op.LookupErr("insert")
		if !into.IsZero() && !into.Equal(before) {
			batches++
		}
		before = into
	}
	return batches
}

// numbers are the transaction numbers of the writes that have run: a server answers a repeated one from its records.
type numbers struct {
	mu  sync.Mutex
	all map[string]int64 // by session
}

// next notes a number, and reports whether it is new.
func (n *numbers) next(session bson.RawValue, number int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	last, known := n.all[string(session.Value)]
	if known && number <= last {
		return false
	}
	n.all[string(session.Value)] = number
	return true
}
