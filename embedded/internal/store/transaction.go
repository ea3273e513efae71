package store

import (
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
	number   int64
	state    state
	server   string // address of the server that began it; another mongos cannot continue it
	api      string
	silent   bool // a mongos knows it only from a commit
	rootless bool // it was silent once: the mongos does not know its shard
	wrote    bool // there is an outcome to recover from the shard
	// collections are the snapshots by namespace, and the copies of those that it has written to.
	collections map[string]*Collection
	created     []*Collection
	ops         []Entry
	locks       []lockKey
	lsid        bson.Raw
	expiry      *time.Timer // aborts it at the end of its lifetime; nil: unlimited
}

// start starts a transaction.
func (s *Store) start(c Claim, known *session) (*transaction, error) {
	switch n := c.Number; {
	case n < known.number && c.Mongos:
		return nil, tooOld(c, known)
	case n < known.number:
		return nil, fault.Errorf(fault.TransactionTooOld, "Cannot start transaction %d on session %s because a newer transaction %d has already started.", n, SessionText(known.key), known.number)
	case n == known.number && c.Mongos:
		return nil, fault.Errorf(fault.ConflictingOperationInProgress, "txnNumber %d for session %s already started", n, SessionText(known.key))
	case n == known.number:
		return nil, fault.Errorf(fault.ConflictingOperationInProgress, "Only servers in a sharded cluster can start a new transaction at the active transaction number")
	case c.Refused != nil:
		return nil, c.Refused
	}
	s.advance(known, c.Number)
	t := &transaction{number: c.Number, server: c.Server, api: c.API, lsid: c.LSID, collections: map[string]*Collection{}}
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
	return t, nil
}

// join starts or continues a transaction.
func (s *Store) join(c Claim, known *session) (*transaction, error) {
	if c.Start {
		return s.start(c, known)
	}
	n := c.Number
	current := known.txn != nil && known.number == n
	switch here := current && (!c.Mongos || known.txn.server == c.Server); {
	case !here && c.Mongos && n < known.number && known.txn != nil && known.txn.server == c.Server:
		return nil, tooOld(c, known)
	case !here && c.Mongos && c.Commits:
		return s.recover(c, known, current)
	case !here && c.Mongos:
		return nil, noSuch("cannot continue txnId %d for session %s with txnId %d", known.number, SessionText(known.key), n)
	case !here && n < known.number:
		return nil, fault.Errorf(fault.TransactionTooOld, "Transaction number %d is too old: session %s is at %d", n, SessionText(known.key), known.number)
	case !here:
		return nil, noSuch("Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", n, known.number)
	case known.txn.api != c.API:
		return nil, fault.Errorf(fault.APIMismatchError, "API parameter mismatch: %s used params %s, the transaction's first command used %s", c.Name, c.API, known.txn.api)
	case known.txn.silent && c.Commits && !c.Recovers:
		return nil, fault.Errorf(50940, "Cannot recover the transaction decision without a recoveryToken")
	case known.txn.silent && c.Aborts:
		return nil, noSuch("no known command has been sent by this router for this transaction")
	case c.Commits || c.Aborts:
	case c.Refused != nil:
		return nil, c.Refused
	case known.txn.state == committed:
		return known.txn, known.txn.committedError()
	case known.txn.state == aborted:
		return nil, known.txn.abortedError()
	}
	if !c.Commits && !c.Aborts {
		known.txn.silent = false
	}
	return known.txn, nil
}

// recover returns the transaction of a commit that was sent to another mongos. current reports whether the claimed
// transaction is the session's.
func (s *Store) recover(c Claim, known *session, current bool) (*transaction, error) {
	switch {
	case !c.Recovers && !current && c.Number > known.number:
		if t, err := s.start(c, known); err == nil {
			t.silent, t.rootless = true, true // later commands continue the transaction
		}
		fallthrough
	case !c.Recovers:
		return nil, fault.Errorf(50940, "Cannot recover the transaction decision without a recoveryToken")
	case !current:
		return nil, noSuch("Transaction %d has been aborted.", c.Number)
	case known.txn.state == running:
		s.abort(known.txn)
		return nil, known.txn.abortedError()
	}
	return known.txn, nil
}

// tooOld is the error of a mongos for a number that is less than that of the session.
func tooOld(c Claim, known *session) error {
	return fault.Errorf(fault.TransactionTooOld, "txnNumber %d is less than last txnNumber %d seen in session %s", c.Number, known.number, SessionText(known.key))
}

func noSuch(format string, args ...any) *fault.Error {
	return fault.Errorf(fault.NoSuchTransaction, format, args...)
}

func (t *transaction) abortedError() *fault.Error {
	return noSuch("Transaction %d has been aborted.", t.number)
}

func (t *transaction) committedError() *fault.Error {
	return fault.Errorf(fault.TransactionCommitted, "Transaction %d has been committed.", t.number)
}

// abort aborts a transaction if it is running. t may be nil.
func (s *Store) abort(t *transaction) {
	if t != nil && t.state == running {
		t.state = aborted
		s.release(t)
	}
}

func (s *Store) release(t *transaction) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	for _, k := range t.locks {
		delete(s.locks, k)
	}
	t.locks, t.collections = nil, nil
	s.announce()
}

// commit applies the writes of a transaction. Because of its locks, the records are still those of the snapshot.
func (s *Store) commit(t *transaction) {
	t.state = committed
	for _, c := range t.created {
		s.add(c)
		e := c.creation()
		e.TS = s.tick()
		s.log(e)
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
func (w *Work) Finish(commit bool) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	switch t := w.txn; {
	case t.state == aborted:
		return t.abortedError()
	case t.state == committed && !commit:
		return t.committedError()
	case t.state == committed:
	case commit:
		w.store.commit(t)
	default:
		w.store.abort(t)
	}
	return nil
}

// Complete completes a command of the transaction, which it aborts if the command has failed. It fails if the
// transaction was aborted while the command ran. wrote is set if the command leaves an outcome to recover.
func (w *Work) Complete(failed, wrote bool) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.txn.wrote = w.txn.wrote || wrote
	switch {
	case failed:
		w.store.abort(w.txn)
	case w.txn.state == aborted:
		return w.txn.abortedError()
	}
	return nil
}

// Wrote reports whether the transaction has an outcome to recover from the shard.
func (w *Work) Wrote() bool {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	return w.txn.wrote && !w.txn.rootless
}

// TxnNumber returns the number of the transaction or of the retryable write.
func (w *Work) TxnNumber() int64 {
	if w.txn != nil {
		return w.txn.number
	}
	return w.session.number
}
