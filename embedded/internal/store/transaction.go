package store

import (
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

type state uint8

const (
	running state = iota
	committed
	aborted
)

// transaction is a multi-document transaction. It reads a snapshot of all collections and writes to copies. Its writes
// take effect at the commit. The records it has written are locked: a write by another transaction is a conflict, a
// write outside of transactions waits.
type transaction struct {
	number int64
	state  state
	api    string
	at     bson.Timestamp // time of its snapshot
	// collections are the snapshots by namespace, or the copies that it has written to.
	collections map[string]*Collection
	used        map[string]bool // namespaces of the collections that it has read or written
	created     []*Collection
	ops         []Entry
	locks       []lockKey
	lsid        bson.Raw
	expiry      *time.Timer // aborts it at the end of its lifetime; nil: unlimited
}

// OpenTransaction is a transaction that has not ended.
type OpenTransaction struct {
	LSID   bson.Raw
	Number int64
}

// OpenTransactions returns the transactions that have not ended, in the order of their sessions.
func (s *Store) OpenTransactions() (out []OpenTransaction) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(s.sessions)) {
		if t := s.sessions[key].txn; t != nil && t.state == running {
			out = append(out, OpenTransaction{t.lsid, t.number})
		}
	}
	return out
}

func (w *Work) start(c Claim, known *session) *transaction {
	s, before := w.store, *known
	w.before = &before
	s.advance(known, c.Number)
	t := &transaction{number: c.Number, api: c.API, at: s.Now(), lsid: c.LSID, collections: map[string]*Collection{},
		used: map[string]bool{}}
	if c.Lifetime > 0 {
		t.expiry = time.AfterFunc(c.Lifetime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.abort(t)
		})
	}
	for _, collections := range s.databases {
		for _, c := range collections {
			view := *c
			view.docs = c.Snapshot()
			view.shared, view.frozen = true, true
			t.collections[c.NS()] = &view
		}
	}
	known.txn = t
	return t
}

func (w *Work) join(c Claim, known *session) (*transaction, error) {
	if c.Number < known.number {
		return nil, known.tooOld(c)
	}
	t := known.txn
	switch again := c.Start && c.Number == known.number; {
	case again && !c.Mongos:
		return nil, fault.Errorf(fault.ConflictingOperationInProgress,
			"Only servers in a sharded cluster can start a new transaction at the active transaction number")
	case again && (t != nil && t.state != aborted || t == nil && len(known.statements) > 0):
		return nil, fault.Errorf(50911,
			"Cannot start a transaction at given transaction number %d a transaction with the same number is in state TxnState::%s",
			c.Number, t.stateText())
	case c.Start && c.Refused == nil:
		return w.start(c, known), nil
	case c.Start:
		return nil, c.Refused
	case t == nil || c.Number != known.number:
		return nil, noSuch("Given transaction number %d does not match any in-progress transactions. "+
			"The active transaction number is %d", c.Number, known.number)
	case t.api != c.API:
		return nil, c.mismatch(t.api)
	case c.Commits || c.Aborts:
	case c.Refused != nil:
		return nil, c.Refused
	case t.state != running:
		return nil, t.endedError()
	}
	return t, nil
}

// tooOld is the error of a transaction whose number is below the session's number.
func (known *session) tooOld(c Claim) error {
	format := "Cannot start transaction %d on session %s because a newer %s with txnNumber %d has already started on this session."
	args := []any{c.Number, SessionText(known.key), known.kind(), known.number}
	if !c.Has.TransactionErrors {
		format = "Cannot start transaction %[1]d on session %[2]s because a newer transaction %[4]d has already started."
		if !c.Start {
			format = "Transaction number %[1]d is too old: session %[2]s is at %[4]d"
		}
	}
	return fault.Errorf(fault.TransactionTooOld, format, args...)
}

// stateText names the state of a transaction in messages. t is nil for a retryable write.
func (t *transaction) stateText() string {
	switch {
	case t == nil:
		return "ExecutedRetryableWrite"
	case t.state == running:
		return "InProgress"
	}
	return "Committed"
}

func noSuch(format string, args ...any) *fault.Error {
	return fault.Errorf(fault.NoSuchTransaction, format, args...)
}

// endedError is the error of a command in a transaction that has been committed or aborted.
func (t *transaction) endedError() *fault.Error {
	if t.state == committed {
		return fault.Errorf(fault.TransactionCommitted, "Transaction %d has been committed.", t.number)
	}
	return noSuch("Transaction %d has been aborted.", t.number)
}

// abort aborts a transaction if it is running. t may be nil.
func (s *Store) abort(t *transaction) {
	if t != nil && t.state == running {
		t.state = aborted
		s.release(t)
	}
}

// Uncommitted returns how many documents the open transactions have added to a collection. A server's count of all
// documents includes them, because it does not read them.
func (w *Work) Uncommitted(db, name string) (n int64) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	for _, known := range w.store.sessions {
		if known.txn == nil || known.txn.state != running {
			continue
		}
		for _, op := range known.txn.ops {
			switch {
			case op.DB != db || op.Coll != name:
			case op.Kind == Insert:
				n++
			case op.Kind == Delete:
				n--
			}
		}
	}
	return n
}

func (s *Store) release(t *transaction) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	for _, k := range t.locks {
		delete(s.locks, k)
	}
	t.locks, t.collections = nil, nil
	s.dropUnlocked()
	s.announce()
}

// commit applies the writes of a transaction. Because of its locks, the records are still as in the snapshot.
func (s *Store) commit(t *transaction) {
	t.state = committed
	for _, c := range t.created {
		s.add(c)
		c.created = s.tick()
		s.log(c.creation())
	}
	var ts bson.Timestamp
	if len(t.ops) > 0 {
		ts = s.tick()
	}
	for i, op := range t.ops {
		c := s.collection(op.DB, op.Coll)
		if c == nil {
			continue // the collection has been renamed
		}
		c.swap(op.Old, op.New) // has no effect in the end on a collection that the transaction has created
		op.TS, op.TxnIndex, op.UUID, op.LSID, op.TxnNumber = ts, int32(i), c.UUID, t.lsid, t.number
		s.log(op)
	}
	t.created, t.ops = nil, nil
	s.release(t)
}

// Finish commits or aborts the transaction. A commit may be repeated.
func (w *Work) Finish() (err error) {
	s, c := w.store, w.claim
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.router != nil {
		send, err := w.router.end(c, w.known.key)
		if err != nil || !send {
			return err
		}
		w.Unsent = false
		find := w.join
		if w.router.recovers && c.Commits {
			find = s.outcome
		}
		if w.txn, err = find(c, w.known); err != nil {
			return err
		}
	}
	switch t := w.txn; {
	case t.state == aborted, t.state == committed && !c.Commits:
		return t.endedError()
	case t.state == committed:
	case c.Commits:
		s.commit(t)
	default:
		s.abort(t)
	}
	return nil
}

// Abandon aborts the transaction after an invalid commit or abort, unless a mongos has not sent it to the shard.
func (w *Work) Abandon() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if r := w.router; (r == nil || r.shard != "" && !r.ended) && w.known.number == w.claim.Number {
		w.store.abort(w.known.txn)
	}
}

// Complete completes a command of the transaction, which it aborts if the command has failed. It fails if the
// transaction was aborted while the command ran. answered reports whether the command has a reply, perhaps with write
// errors. A transaction that begins with a command that a mongos does not send has not begun.
func (w *Work) Complete(failed, answered bool) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	wasAborted := w.txn.state == aborted
	if failed {
		w.store.abort(w.txn)
	}
	switch r := w.router; {
	case r == nil:
	case w.Unsent && w.before != nil:
		*w.known, r.shard = *w.before, ""
	case answered && !w.Unsent:
		r.note(w.txn)
	}
	if wasAborted && !failed {
		return w.txn.endedError()
	}
	return nil
}

// Fail notes that a statement on another participant of the transaction than the shard was unsuccessful.
func (w *Work) Fail(participant string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.Unsent, w.router.failed = true, participant
}

// Recoverable reports whether the transaction has an outcome to recover from the shard.
func (w *Work) Recoverable() bool {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	return w.router != nil && w.router.wrote
}

// Statement names the transaction and the number of its statement in messages of a mongos.
func (w *Work) Statement() (transaction string, statement int) {
	return w.router.text(w.known.key), w.router.statement
}

// TxnNumber returns the number of the transaction or of the retryable write.
func (w *Work) TxnNumber() int64 { return w.claim.Number }
