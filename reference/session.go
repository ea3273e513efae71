package reference

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/unified-test-runner/utr/reference/pinning"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// serverSession is a server session (Driver Sessions, "ServerSession").
type serverSession struct {
	id      bson.Raw // {id: UUID}
	lastUse time.Time
	txn     int64 // the last transaction number
	dirty   bool
}

// sessionPool is the server session pool, ordered by last use (Driver Sessions, "Server Session Pool").
type sessionPool struct {
	mu   sync.Mutex
	idle []*serverSession
}

// acquireSession removes the most recently used session from the pool, or returns a new one if all are about to expire.
func (c *client) acquireSession() *serverSession {
	p := &c.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !c.expiring(s) {
			return s
		}
	}
	uuid := make([]byte, 16)
	_, _ = rand.Read(uuid) // never fails
	uuid[6] = uuid[6]&0x0f | 0x40
	uuid[8] = uuid[8]&0x3f | 0x80
	id, _ := bson.Marshal(document("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: uuid}))
	return &serverSession{id: id}
}

func (c *client) releaseSession(s *serverSession) {
	p := &c.sessions
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, c.expiring)
	if !s.dirty && !s.lastUse.IsZero() && !c.expiring(s) {
		p.idle = append(p.idle, s)
	}
}

// drain empties the pool and returns the ids.
func (p *sessionPool) drain() (ids bson.A) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		ids = append(ids, s.id)
	}
	p.idle = nil
	return ids
}

// expiring reports whether a session expires within a minute.
func (c *client) expiring(s *serverSession) bool {
	minutes := c.topology.Description().SessionTimeoutMinutes
	if minutes == nil || s.lastUse.IsZero() {
		return false
	}
	return c.driver.options.Now().Sub(s.lastUse) > time.Duration(*minutes-1)*time.Minute
}

// The states of a transaction.
const (
	txnNone       = "none"
	txnStarting   = "starting"
	txnInProgress = "in_progress"
	txnCommitted  = "committed"
	txnAborted    = "aborted"
)

// transactionOptions are the options of startTransaction or the session's defaults. Unset options are inherited from
// the client. A transaction has no timeoutMS.
type transactionOptions struct {
	scope
	maxCommitTime *int64 // milliseconds
}

// clientSession is a session entity or the implicit session of an operation. It is used by one operation at a time.
type clientSession struct {
	client   *client
	implicit bool
	causal   bool
	snapshot bool
	defaults transactionOptions
	timeout  *time.Duration // defaultTimeoutMS

	server        *serverSession // nil: not acquired; after the end, only its id is used
	clusterTime   bson.Raw       // {$clusterTime: …}
	operationTime *bson.Timestamp
	snapshotTime  *bson.Timestamp
	ended         bool

	state       string
	options     transactionOptions
	pinned      string           // address of the mongos
	conn        *mnet.Connection // pinned behind a load balancer
	recovery    bson.Raw
	emptyCommit bool           // nothing was sent in the transaction
	committed   bool           // commit was called before
	callback    *time.Duration // timeoutMS of withTransaction during its callback, or nil
	deadline    time.Time      // of withTransaction, or zero
	span        *span          // of the transaction, nil if not traced
	thread      pinning.Thread // only for policies with pinning
}

func (c *client) newSession(implicit bool) *clientSession {
	s := &clientSession{client: c, implicit: implicit, causal: !implicit, state: txnNone,
		thread: c.newThread(!implicit), defaults: transactionOptions{scope: c.settings.scope}}
	return s
}

// acquired returns the server session. An implicit session acquires it as late as possible: after the connection is
// checked out.
func (s *clientSession) acquired() *serverSession {
	if s.server == nil {
		s.server = s.client.acquireSession()
	}
	return s.server
}

// end returns the server session to the pool. The caller has aborted an open transaction.
func (s *clientSession) end() {
	if s.ended {
		return
	}
	s.ended = true
	s.span.end(nil)
	s.unpin()
	if s.server != nil {
		s.client.releaseSession(s.server)
	}
}

// timeoutMS returns the timeout of commitTransaction, abortTransaction, withTransaction and endSession (Client Side
// Operations Timeout, "Sessions").
func (s *clientSession) timeoutMS() *time.Duration {
	return cmp.Or(s.callback, s.timeout, s.client.settings.timeout)
}

func (s *clientSession) inTransaction() bool {
	return s.state == txnStarting || s.state == txnInProgress
}

// permits checks the read preference of a read in a transaction.
func (s *clientSession) permits(cmd *command) *result.Error {
	if !s.inTransaction() || cmd.write || cmd.op.EndsTransaction || cmd.hidden {
		return nil
	}
	p := cmd.preference
	if !cmd.explicit {
		p = s.options.preference
	}
	if p.Mode != "" && p.Mode != selection.Primary {
		return argument("read preference in a transaction must be primary")
	}
	return nil
}

// leaveTransaction resets the state of an ended transaction before another command (Transactions, "ClientSession
// changes" and "When to unpin").
func (s *clientSession) leaveTransaction(cmd *command) {
	if cmd.inTransaction() || s.state == txnNone || cmd.name() == "getMore" || cmd.name() == "killCursors" {
		return
	}
	s.unpin()
	s.state = txnNone
}

// unpin releases the pinned mongos or connection.
func (s *clientSession) unpin() {
	s.pinned = ""
	if s.conn != nil {
		_ = s.conn.UnpinFromTransaction()
		_ = s.conn.Close()
		s.conn = nil
	}
}

// advance advances the cluster time and the operation time.
func (s *clientSession) advance(clusterTime bson.Raw, operationTime *bson.Timestamp) {
	if clusterTime != nil {
		s.clusterTime = later(s.clusterTime, clusterTime)
	}
	if operationTime != nil && (s.operationTime == nil || s.operationTime.Before(*operationTime)) {
		s.operationTime = operationTime
	}
}

// later returns the later of two cluster times. nil is earlier than any other.
func later(a, b bson.Raw) bson.Raw {
	ta, tb := timestampOf(a, "$clusterTime", "clusterTime"), timestampOf(b, "$clusterTime", "clusterTime")
	if tb == nil || ta != nil && !ta.Before(*tb) {
		return a
	}
	return b
}

// clusterTimeOf returns {$clusterTime: …} of a reply, or nil.
func clusterTimeOf(reply bson.Raw) bson.Raw {
	v, ok := reply.Lookup("$clusterTime").DocumentOK()
	if !ok {
		return nil
	}
	out, _ := bson.Marshal(document("$clusterTime", v))
	return out
}

func timestampOf(reply bson.Raw, keys ...string) *bson.Timestamp {
	t, i, ok := reply.Lookup(keys...).TimestampOK()
	if !ok {
		return nil
	}
	return &bson.Timestamp{T: t, I: i}
}

// start starts a transaction.
func (s *clientSession) start(ctx context.Context, o transactionOptions) *result.Error {
	switch {
	case s.ended:
		return argument("the session has ended")
	case s.inTransaction():
		return argument("transaction already in progress")
	case s.snapshot:
		return argument("transactions are not supported in snapshot sessions")
	case unacknowledged(o.writeConcern):
		return argument("transactions do not support unacknowledged write concerns")
	}
	if err := consistent(o.writeConcern); err != nil {
		return err
	}
	s.unpin()
	s.options, s.state, s.recovery, s.emptyCommit, s.committed = o, txnStarting, nil, false, false
	s.acquired().txn++
	if t := s.client.tracing; t != nil {
		s.span.end(nil)
		s.span = t.start(ctx, "transaction")
	}
	return nil
}

func unacknowledged(writeConcern bson.D) bool {
	return slices.ContainsFunc(writeConcern,
		func(e bson.E) bool { return e.Key == "w" && (e.Value == int32(0) || e.Value == int64(0)) })
}
