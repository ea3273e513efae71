package commands

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// inProgress returns the documents of $currentOp: commands in progress, open transactions unless idleSessions is false,
// and open cursors if idleCursors is true.
func (s *call) inProgress(options bson.D) (out []bson.D) {
	for _, o := range s.req.Operations(value.Get(options, "localOps") == true) {
		out = append(out, value.Must(o))
	}
	idle := func(kind string, fields ...any) {
		out = append(out, value.Append(value.Doc("type", kind, "host", address(s.req)), fields...))
	}
	if value.Get(options, "idleSessions") != false {
		for _, t := range s.d.OpenTransactions() {
			id, _ := value.FromRaw(t.LSID.Lookup("id"))
			idle("idleSession", "desc", "inactive transaction", "active", false, "lsid", withDigest(id),
				"transaction", value.Doc("parameters", value.Doc("txnNumber", t.Number, "autocommit", false)))
		}
	}
	if value.Get(options, "idleCursors") == true {
		for _, c := range s.d.cursors.idle(address(s.req)) {
			idle("idleCursor", "ns", c.ns, "cursor", value.Doc("cursorId", c.id, "tailable", c.await, "awaitData", c.await,
				"noCursorTimeout", c.noTimeout, "lastAccessDate", bson.NewDateTimeFromTime(c.used)))
		}
	}
	return out
}

// withDigest returns a session id as servers show it, with the digest of its user.
func withDigest(id any) bson.D {
	return value.Doc("id", id, "uid", store.UserDigest(""))
}

// idle returns copies of the cursors of a server that no command uses, in the order of their ids.
func (all *cursors) idle(server string) (out []cursor) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, c := range all.open {
		if c.server == server && !c.busy {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b cursor) int { return int(a.id>>32) - int(b.id>>32) })
	return out
}
