package store

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// session is the server-side state of a logical session.
type session struct {
	key    string
	number int64 // the highest txnNumber so far; -1 initially

	statements map[int32]*Statement // the retryable writes of number by statement id
	txn        *transaction         // the transaction of number; nil for a retryable write
	routers    map[string]*router   // by the address of the mongos
	// turn is held by the running command with a txnNumber. A retry waits for it, even if the first attempt has lost
	// its connection.
	turn chan struct{}
	used time.Time // time of the last command with a txnNumber
}

// Statement is the result of a write. For a retryable write it is recorded, to answer a retry.
type Statement struct {
	Kind        Kind // Insert (also of an upsert), Update or Delete
	N, Modified int64
	ID          any      // of an inserted document
	Pre, Post   bson.Raw // the document before and after a findAndModify; in a record only the one that it returned
}

// Wrote reports whether the statement has changed something.
func (st *Statement) Wrote() bool { return st.Modified > 0 || st.N > 0 && st.Kind != Update }

// SessionKey returns the bytes of the UUID of a session.
func SessionKey(lsid bson.Raw) string {
	_, data, _ := lsid.Lookup("id").BinaryOK()
	return string(data)
}

// UserDigest returns the uid of a session: the digest of the user's name, "" without authentication.
func UserDigest(name string) bson.Binary {
	sum := sha256.Sum256([]byte(name))
	return bson.Binary{Data: sum[:]}
}

// SessionText formats a session as in the server's messages.
func SessionText(key string) string {
	return value.UUIDText([]byte(key)) + " - " + base64.StdEncoding.EncodeToString(UserDigest("").Data)
}

// Limits of the sessions of a deployment.
const (
	SessionTimeout = 30 * time.Minute
	MaxSessions    = 10000
)

// session returns an existing or new session.
func (s *Store) session(key string) *session {
	known := s.sessions[key]
	if known == nil {
		s.forgetIdle()
		known = &session{key: key, number: -1, routers: map[string]*router{}, turn: make(chan struct{}, 1)}
		s.sessions[key] = known
	}
	return known
}

// forgetIdle deletes sessions that have timed out, and others if there are still too many.
func (s *Store) forgetIdle() {
	if len(s.sessions) < MaxSessions {
		return
	}
	maps.DeleteFunc(s.sessions, func(_ string, known *session) bool {
		busy := len(known.turn) > 0 || known.txn != nil && known.txn.state == running
		return !busy && (time.Since(known.used) > SessionTimeout || len(s.sessions) >= MaxSessions/2)
	})
}

// KillSessions aborts the transactions of chosen sessions.
func (s *Store) KillSessions(chosen func(key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, known := range s.sessions {
		if chosen(key) {
			s.abort(known.txn)
		}
	}
}

// EndTerm aborts the open transactions of a term and prevents its waiting writes.
func (s *Store) EndTerm(term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = term + 1
	for _, known := range s.sessions {
		s.abort(known.txn)
	}
	s.announce()
}

// Claim is what a command with a txnNumber claims about its session.
type Claim struct {
	LSID        bson.Raw
	Number      int64
	Transaction bool // the command belongs to a transaction, not to a retryable write
	Start       bool // and starts it
	Commits     bool // and commits it
	Aborts      bool // and aborts it
	Lifetime    time.Duration
	Refused     error  // why the command is not allowed in the transaction, if that exists
	Name, API   string // the name and API parameters of the command; a transaction has the parameters of its first command
	Has         *version.Features
	// Of a mongos: its address, the name of its shard, and whether a commit has a recovery token, with a shard or without.
	Server, Shard, Recovery string
	Mongos, Recovers        bool
}

func (c *Claim) mismatch(first string) error {
	who := c.Name + " used params"
	if c.Mongos {
		who = "transaction-continuing command used"
	}
	return fault.Errorf(fault.APIMismatchError, "API parameter mismatch: %s %s, the transaction's first command used %s",
		who, c.API, first)
}

// Begin waits for the turn of the session and finds its transaction or its retryable write. After success, End must be
// called.
func (w *Work) Begin(c Claim) (err error) {
	s := w.store
	known, err := w.checkOut(SessionKey(c.LSID))
	if err != nil {
		return err
	}
	w.turn, w.claim, w.known = known.turn, c, known
	defer func() {
		if err != nil {
			w.End()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Mongos && c.Transaction {
		w.Unsent = true
		if w.router, err = known.route(c); err != nil || c.Commits || c.Aborts {
			return err
		}
		w.Unsent = false
		c.Start, c.Refused = w.router.shard == "", nil
		w.router.shard = c.Shard
	}
	if c.Transaction {
		w.txn, err = w.join(c, known)
		return err
	}
	switch n := c.Number; {
	case n < known.number:
		return fault.Errorf(fault.TransactionTooOld,
			"Retryable write with txnNumber %d is prohibited on session %s because a newer %s with txnNumber %d has already "+
				"started on this session.", n, SessionText(known.key), known.kind(), known.number)
	case n > known.number:
		s.advance(known, n)
		known.statements = map[int32]*Statement{}
	case known.txn != nil && !c.Has.TransactionErrors:
		return fault.Errorf(fault.InvalidOptions,
			"Retryable write with txnNumber %d is prohibited on session %s because a transaction with the same txnNumber has "+
				"already started on this session.", n, SessionText(known.key))
	case known.txn != nil:
		return fault.Errorf(fault.IncompleteTransactionHistory,
			"Cannot retry a retryable write that has been converted into a transaction")
	}
	w.session = known
	return nil
}

// kind names what the session has begun with its number.
func (known *session) kind() string {
	if known.txn != nil {
		return "transaction"
	}
	return "retryable write"
}

// End passes the turn of the session on. Without Begin it has no effect.
func (w *Work) End() {
	if w.turn != nil {
		<-w.turn
		w.turn = nil
	}
}

// checkOut waits for the turn of a session. If the session ends meanwhile, it waits for the turn of the session that
// replaces it.
func (w *Work) checkOut(key string) (*session, error) {
	s := w.store
	for {
		s.mu.Lock()
		known := s.session(key)
		known.used = time.Now()
		s.mu.Unlock()
		select {
		case known.turn <- struct{}{}:
		case <-w.Context.Done():
			return nil, Interrupted()
		}
		s.mu.RLock()
		same := s.sessions[key] == known
		s.mu.RUnlock()
		if same {
			return known, nil
		}
		<-known.turn
	}
}

// advance sets a new txnNumber and aborts the open transaction.
func (s *Store) advance(known *session, n int64) {
	s.abort(known.txn)
	known.number, known.txn, known.statements = n, nil, nil
}

// Recorded returns the result of a statement that an earlier attempt has performed, or nil.
func (tx *Tx) Recorded(id int32) *Statement {
	if tx.session == nil {
		return nil
	}
	return tx.session.statements[id]
}

// Record records the result of a statement for retries.
func (tx *Tx) Record(id int32, st *Statement) {
	if tx.session != nil && tx.session.statements != nil {
		tx.session.statements[id] = st
		tx.undo = append(tx.undo, func() { delete(tx.session.statements, id) })
	}
}
