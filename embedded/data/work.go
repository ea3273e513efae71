package data

import (
	"slices"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// work is the undo log of the current attempt of a scope outside of a transaction.
type work struct {
	steps    []step
	recorded []int32 // statement ids recorded in the session
	from     mark    // the state to which a blocked attempt is undone
	kept     mark    // the state to which a failed attempt is undone
}

// step is a change of a record. old is nil for an insert, new for a delete.
type step struct {
	c        *collection
	old, new *record
}

// mark is a position in the undo log.
type mark struct {
	steps, recorded int
	oplog           int64
}

func (s *scope) mark() mark {
	return mark{len(s.work.steps), len(s.work.recorded), s.d.oplog.next()}
}

// keep makes the changes so far survive an error. A blocked attempt is still undone.
func (s *scope) keep() { s.work.kept = s.mark() }

// settle makes the changes so far survive an error and a blocked attempt.
func (s *scope) settle() {
	s.keep()
	s.work.from = s.work.kept
}

// commit completes a successful attempt. The fail point onPrimaryTransactionalWrite applies to a retryable write that
// has changed something.
func (s *scope) commit() error {
	if s.session == nil || len(s.work.steps) == s.work.from.steps {
		return nil
	}
	f, hit := s.req.Strikes(failpoint.OnPrimaryTransactionalWrite)
	if !hit {
		return nil
	}
	if f.CloseConnection {
		s.req.HangUp()
	}
	if !f.HasCode {
		return nil
	}
	return command.Errorf(f.Code, "Failing write for %s:%d due to failpoint. The write must not be reflected.",
		sessionText(s.session.key), s.session.txnNumber)
}

// undo undoes the changes since a mark. The caller must have held mu since then.
func (s *scope) undo(to mark) {
	w := &s.work
	if len(w.steps) == to.steps {
		return
	}
	for _, u := range slices.Backward(w.steps[to.steps:]) {
		switch {
		case u.old == nil:
			u.c.remove(u.new)
		case u.new == nil:
			u.c.add(u.old)
		default:
			u.c.replace(u.old)
		}
	}
	for _, id := range w.recorded[to.recorded:] {
		delete(s.session.statements, id)
	}
	w.steps, w.recorded = w.steps[:to.steps], w.recorded[:to.recorded]
	s.d.oplog.truncate(to.oplog)
}
