package commands

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/store"
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

	killed    chan struct{} // closed when the cursor is killed, to end a waiting getMore
	busy      bool          // guarded by cursors.mu
	await     bool
	noTimeout bool
	used      time.Time // time of creation or of the last getMore
}

// cursors are the open cursors of the servers, and the sessions that were used on them. Its lock may be held when that of
// the store is taken, never the other way round.
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
		all.kill(func(c *cursor) bool { return !c.busy && !c.noTimeout && now.Sub(c.used) > cursorTimeout })
	}
	all.open[c.id] = c
}

// kill kills chosen cursors. The caller holds mu.
func (all *cursors) kill(chosen func(*cursor) bool) {
	for id, c := range all.open {
		if chosen(c) {
			delete(all.open, id)
			close(c.killed)
		}
	}
}

// endSessions kills the cursors of chosen sessions.
func (all *cursors) endSessions(chosen func(key string) bool, forget bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.kill(func(c *cursor) bool { return c.session != "" && chosen(c.session) })
	maps.DeleteFunc(all.recent, func(k recentKey, _ time.Time) bool { return forget && chosen(k.session) })
}

// checkOut marks a cursor as busy for a getMore, if the request may use it.
func (all *cursors) checkOut(s *call, id int64, ns string, limited bool) (*cursor, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.open[id]
	switch {
	case c == nil || c.server != address(s.req):
		return nil, s.notFound(id, ns)
	case c.ns != ns:
		return nil, fault.Errorf(fault.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.busy:
		return nil, fault.Errorf(fault.CursorInUse, "cursor id %d is already in use", id)
	case c.session != "" && s.req.LSID == nil:
		return nil, fault.Errorf(50738, "Cannot run getMore on cursor %d, which was created in session %s, without an lsid", id, store.SessionText(c.session))
	case c.session != "" && store.SessionKey(s.req.LSID) != c.session:
		return nil, fault.Errorf(50739, "Cannot run getMore on cursor %d, which was created in session %s, in session %s", id, store.SessionText(c.session), store.SessionText(store.SessionKey(s.req.LSID)))
	case c.session == "" && s.req.LSID != nil:
		return nil, fault.Errorf(50737, "Cannot run getMore on cursor %d, which was not created in a session, in session %s", id, store.SessionText(store.SessionKey(s.req.LSID)))
	case c.txn >= 0 && !s.InTransaction():
		return nil, fault.Errorf(50740, "Cannot run getMore on cursor %d, which was created in transaction %d, without a txnNumber", id, c.txn)
	case limited && !c.await && mongos(s.req) && !s.old():
		return nil, fault.Errorf(fault.BadValue, "maxTimeMS can only be used with getMore for tailable, awaitData cursors")
	case limited && !c.await && (wire(s.req) < wire44 || !s.old()): // those between accept it, according to recordings
		return nil, fault.Errorf(fault.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	if c.api != s.req.API {
		return nil, fault.Errorf(fault.APIMismatchError, "API parameter mismatch: getMore used params %s, the cursor-creating command used %s", s.req.API, c.api)
	}
	c.busy = true
	return c, nil
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
			id := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(k.session)}}}
			id = append(id, bson.E{Key: "uid", Value: store.UserDigest("")})
			out = append(out, bson.D{{Key: "_id", Value: id}, {Key: "lastUse", Value: bson.NewDateTimeFromTime(used)}})
		}
	}
	return out
}
