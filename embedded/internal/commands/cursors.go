package commands

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// cursorTimeout closes idle cursors.
const cursorTimeout = 10 * time.Minute

// cursor is an open cursor of one server.
type cursor struct {
	id      int64
	ns      string
	server  string
	session string
	txn     int64 // -1 outside of transactions
	api     string
	source  source
	work    *store.Work   // of the command that opened it
	left    time.Duration // of the time limit of the command that opened it; 0: none

	killed    chan struct{} // closed when the cursor is killed, to end a waiting getMore
	cause     error         // why it was killed; set before killed is closed
	busy      bool          // guarded by cursors.mu
	await     bool
	noTimeout bool
	used      time.Time // time of creation or of the last getMore
}

// cursors are the open cursors of the servers, and the sessions that were used on them. Its lock may be held when that
// of the store is taken, never the other way round.
type cursors struct {
	mu      sync.Mutex
	open    map[int64]*cursor
	checked time.Time               // last check for idle cursors
	recent  map[recentKey]time.Time // last use of sessions
}

// recentKey identifies a session that has been used on a server.
type recentKey struct{ server, session string }

// keep registers a cursor.
func (all *cursors) keep(c *cursor) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for c.id == 0 || all.open[c.id] != nil {
		c.id = rand.Int64() // positive, as on servers
	}
	if now := time.Now(); now.Sub(all.checked) >= cursorTimeout/10 {
		all.checked = now
		all.kill(errCursorKilled(), func(c *cursor) bool {
			return !c.busy && !c.noTimeout && now.Sub(c.used) > cursorTimeout
		})
	}
	all.open[c.id] = c
}

// kill kills chosen cursors. A getMore that waits on one fails with cause. The caller holds mu.
func (all *cursors) kill(cause error, chosen func(*cursor) bool) {
	for id, c := range all.open {
		if chosen(c) {
			delete(all.open, id)
			c.cause = cause
			close(c.killed)
		}
	}
}

func errCursorKilled() error {
	return fault.Errorf(fault.CursorKilled,
		"operation was interrupted because a client disconnected or the cursor was killed")
}

func (all *cursors) killSessions(chosen func(key string) bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.kill(store.Interrupted(), func(c *cursor) bool { return c.session != "" && chosen(c.session) })
}

// checkOut marks a cursor as busy for a getMore, if the request may use it. A mongos has its cursors by namespace.
func (all *cursors) checkOut(s *call, id int64, ns string, limited bool) (*cursor, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.open[id]
	switch {
	case c == nil, c.server != address(s.req), mongos(s.req) && c.ns != ns:
		return nil, s.notFound(id, ns)
	case c.ns != ns:
		return nil, fault.Errorf(fault.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.busy && mongos(s.req):
		return nil, fault.Errorf(fault.CursorInUse, "Cursor already in use (namespace: '%s', id: %d).", ns, id)
	case c.busy:
		return nil, fault.Errorf(fault.CursorInUse, "cursor id %d is already in use", id)
	}
	if err := c.belongs(s); err != nil {
		return nil, err
	}
	if err := c.accepts(s, limited); err != nil {
		if mongos(s.req) { // it has checked the cursor out, and kills it
			all.kill(errCursorKilled(), func(x *cursor) bool { return x == c })
		}
		return nil, err
	}
	c.busy = true
	return c, nil
}

// fail kills the cursor of a getMore that a shard has refused, and returns the error of the mongos.
func (all *cursors) fail(s *call, refused error) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	id := value.IntAt(s.req.Body, "getMore")
	ns := s.req.DB + "." + value.TextAt(s.req.Body, "collection")
	c := all.open[id]
	if c == nil || c.server != address(s.req) || c.ns != ns {
		return s.notFound(id, ns)
	}
	all.kill(errCursorKilled(), func(x *cursor) bool { return x == c })
	return s.onShardHost(c, refused)
}

// belongs returns an error if the getMore is not in the session and transaction of the cursor.
func (c *cursor) belongs(s *call) error {
	var p fault.First
	code := int32(50736) // the first of six; a mongos has others
	if mongos(s.req) {
		code = 50799
	}
	refuse := func(when bool, n int32, format string, args ...any) {
		p.Refuse(when, code+n, "Cannot run getMore on cursor %d, which was "+format, append([]any{c.id}, args...)...)
	}
	session, txn := store.SessionKey(s.req.LSID), int64(-1)
	if s.InTransaction() {
		txn = s.TxnNumber()
	}
	if c.session != session {
		mine, given := store.SessionText(c.session), store.SessionText(session)
		refuse(c.session == "", 0, "not created in a session, in session %s", given)
		refuse(session == "", 1, "created in session %s, without an lsid", mine)
		refuse(true, 2, "created in session %s, in session %s", mine, given)
	}
	refuse(c.txn < 0 && txn >= 0, 3, "not created in a transaction, in transaction %d", txn)
	refuse(c.txn >= 0 && txn < 0, 4, "created in transaction %d, without a txnNumber", c.txn)
	refuse(c.txn != txn, 5, "created in transaction %d, in transaction %d", c.txn, txn)
	return p.Err
}

// accepts returns an error if the getMore limits its time although the cursor does not await data, or has another API
// version.
func (c *cursor) accepts(s *call, limited bool) error {
	var p fault.First
	p.Refuse(limited && !c.await && mongos(s.req) && s.has.GetMoreLimits, fault.BadValue,
		"maxTimeMS can only be used with getMore for tailable, awaitData cursors")
	p.Refuse(limited && !c.await && s.has.AwaitLimits, fault.BadValue,
		"cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	p.Refuse(c.api != s.req.API, fault.APIMismatchError,
		"API parameter mismatch: getMore used params %s, the cursor-creating command used %s", s.req.API, c.api)
	return p.Err
}

// checkIn ends the use of a cursor and deletes it if it has ended.
func (all *cursors) checkIn(c *cursor, ended bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c.busy, c.used = false, time.Now()
	if ended {
		delete(all.open, c.id)
	}
}

// noteUse records the time of a command in a session for $listLocalSessions.
func (all *cursors) noteUse(req *Request) {
	if req.LSID == nil {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.recent) >= store.MaxSessions {
		maps.DeleteFunc(all.recent, func(_ recentKey, used time.Time) bool {
			return time.Since(used) > store.SessionTimeout || len(all.recent) >= store.MaxSessions/2
		})
	}
	all.recent[recentKey{address(req), store.SessionKey(req.LSID)}] = time.Now()
}

// localSessions returns the output of $listLocalSessions on a server.
func (all *cursors) localSessions(server string) []bson.D {
	all.mu.Lock()
	defer all.mu.Unlock()
	var out []bson.D
	for k, used := range all.recent {
		if k.server == server {
			id := withDigest(bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte(k.session)})
			out = append(out, value.Doc("_id", id, "lastUse", bson.NewDateTimeFromTime(used)))
		}
	}
	return out
}
