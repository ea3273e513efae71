package data

import (
	"slices"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// work is what the current attempt of a scope has changed outside of a transaction,
// so that it can be taken back: what did not commit leaves no trace.
type work struct {
	steps    []step
	recorded []int32 // statements of the session
	from     mark    // what an attempt that runs again begins with
	kept     mark    // what an error leaves
}

// step is one change: of a record, nil where the record did not exist, or does not exist any more.
type step struct {
	c        *collection
	old, new *record
}

// mark is a state of the work to go back to.
type mark struct {
	steps, recorded int
	oplog           int64
}

func (s *scope) mark() mark {
	return mark{len(s.work.steps), len(s.work.recorded), s.d.oplog.next()}
}

// keep makes what was changed last: an error that follows leaves it. An attempt that
// runs again does all anew.
func (s *scope) keep() { s.work.kept = s.mark() }

// settle makes what was changed last even if the attempt runs again.
func (s *scope) settle() {
	s.keep()
	s.work.from = s.work.kept
}

// commit ends an attempt that went well. Of a retryable write that has changed
// something, the fail point onPrimaryTransactionalWrite may have its say.
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

// undo goes back to a mark. The caller has held mu since.
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
