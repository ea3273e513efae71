package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Work is what one command reads and writes: the data of the deployment or, in a transaction, what the transaction
// sees. It belongs to one goroutine.
type Work struct {
	Context  context.Context
	Deadline time.Time // zero: none
	Term     int64     // of the primary that runs the command
	// BeforeCommit, unless nil, runs before a retryable write commits. Its error undoes the write.
	BeforeCommit func() error
	// Unvalidated work stores documents that the validator of their collection refuses.
	Unvalidated bool

	// Unsent is set if a mongos has refused the command, so that it has not reached the shard.
	Unsent bool
	// Tried is set when the work has locked the data to write it, even if it changed nothing.
	Tried bool

	store   *Store
	txn     *transaction // nil outside of transactions
	session *session     // of a retryable write; else nil
	turn    chan struct{}
	claim   Claim
	known   *session // the session of the claim
	router  *router  // of a transaction on a mongos; else nil
	before  *session // what the session was before the transaction began with this command; else nil
}

// NewWork returns the work of a command outside of a session.
func (s *Store) NewWork(ctx context.Context, deadline time.Time, term int64) *Work {
	return &Work{Context: ctx, Deadline: deadline, Term: term, store: s}
}

// InTransaction reports whether the work belongs to a transaction.
func (w *Work) InTransaction() bool { return w.txn != nil }

// Retryable reports whether the work is a retryable write.
func (w *Work) Retryable() bool { return w.session != nil }

// Tx changes data, within Work.Update, or reads it, within Work.View.
type Tx struct {
	*Work
	undo  []func() // undoes the changes, the last one first
	kept  int      // the part of undo that is undone only if the attempt is blocked
	wrote bool     // something was written
}

// View runs a function that only reads.
func (w *Work) View(f func(*Tx)) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()
	f(&Tx{Work: w})
}

// errBlocked means that an open transaction has locked the data to be written.
var errBlocked = errors.New("locked by a transaction")

// Update runs a function that writes. If a transaction blocks it, Update waits and runs it again.
func (w *Work) Update(f func(*Tx) error) error {
	var timeout <-chan time.Time
	if !w.Deadline.IsZero() {
		timeout = time.After(time.Until(w.Deadline))
	}
	for {
		changed, err := w.attempt(f)
		if !errors.Is(err, errBlocked) {
			return err
		}
		select {
		case <-changed:
		case <-timeout:
			return TimedOut()
		case <-w.Context.Done():
			return Interrupted()
		}
	}
}

// Try runs a function that writes once. It fails, without an effect, if a transaction blocks it.
func (w *Work) Try(f func(*Tx) error) error {
	_, err := w.attempt(f)
	return err
}

// attempt fails if the transaction has been aborted or the term has ended. The returned channel is closed at the next
// change.
func (w *Work) attempt(f func(*Tx) error) (changed <-chan struct{}, err error) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Tried = true
	switch {
	case w.txn != nil && w.txn.state == aborted:
		return s.changed, w.txn.endedError()
	case w.Term < s.term:
		return s.changed, fault.Errorf(fault.InterruptedDueToReplStateChange, "operation was interrupted")
	}
	tx := &Tx{Work: w}
	if err = f(tx); err == nil && w.session != nil && tx.wrote && w.BeforeCommit != nil {
		err = w.BeforeCommit()
	}
	switch {
	case errors.Is(err, errBlocked):
		tx.rollBack(0)
	case err != nil:
		tx.rollBack(tx.kept)
	}
	if err == nil && tx.wrote || len(tx.undo) > 0 {
		s.announce()
	}
	return s.changed, err
}

// Keep makes the changes so far survive an error. A blocked attempt is still undone.
func (tx *Tx) Keep() { tx.kept = len(tx.undo) }

// settle makes the changes so far survive an error and a blocked attempt.
func (tx *Tx) settle() {
	tx.undo, tx.kept = nil, 0
	tx.store.announce()
}

// rollBack undoes the changes after the first n.
func (tx *Tx) rollBack(n int) {
	for _, f := range slices.Backward(tx.undo[n:]) {
		f()
	}
	tx.undo = tx.undo[:n]
}

// TimedOut is the error of a command whose time limit has expired.
func TimedOut() error { return fault.Errorf(fault.MaxTimeMSExpired, "operation exceeded time limit") }

// Interrupted is the error of a command that was interrupted.
func Interrupted() error { return fault.Errorf(fault.Interrupted, "operation was interrupted") }

// Late returns an error if the time limit of the command has expired.
func (w *Work) Late() error {
	if !w.Deadline.IsZero() && !time.Now().Before(w.Deadline) {
		return TimedOut()
	}
	return nil
}

// Stopped returns an error if the time limit of the command has expired or the command was interrupted.
func (w *Work) Stopped() error {
	if err := w.Late(); err != nil || w.Context.Err() == nil {
		return err
	}
	return Interrupted()
}

// Sleep sleeps, at most until the time limit of the command expires or the command is interrupted.
func (w *Work) Sleep(d time.Duration) error {
	if !w.Deadline.IsZero() {
		d = min(d, time.Until(w.Deadline))
	}
	select {
	case <-time.After(d):
	case <-w.Context.Done():
	}
	return w.Stopped()
}
