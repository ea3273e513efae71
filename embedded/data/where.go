package data

import (
	"time"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// scripts returns the environment of $where in the filters of the command.
func (s *scope) scripts() *query.Scripts {
	if ms := maxTimeMS(s.req); ms > 0 && s.deadline.IsZero() {
		s.deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.stopped}
}

// rehearse runs the scripts of a write without the lock, because they may sleep. When they run again with the lock,
// sleep returns immediately.
func (s *scope) rehearse(w *write) error {
	if !w.filter.Scripted() {
		return nil
	}
	_, records := s.records(w.db, w.coll)
	_, err := search(nil, records, w.filter, w.limit())
	s.slept = true
	return err
}

func timedOut() error {
	return command.Errorf(command.CodeMaxTimeMSExpired, "operation exceeded time limit")
}

func interrupted() error { return command.Errorf(command.CodeInterrupted, "operation was interrupted") }

// stopped returns an error if the time limit of the command has expired or the command was interrupted.
func (s *scope) stopped() error {
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return timedOut()
	}
	if s.req.Context.Err() != nil {
		return interrupted()
	}
	return nil
}

// sleep sleeps, at most until the time limit of the command expires or the command is interrupted.
func (s *scope) sleep(d time.Duration) error {
	if s.slept {
		return nil
	}
	if !s.deadline.IsZero() {
		d = min(d, time.Until(s.deadline))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.req.Context.Done():
	}
	return s.stopped()
}

func maxTimeMS(req *command.Request) int64 {
	v, ok := value.FromRaw(req.Body.Lookup("maxTimeMS"))
	if !ok {
		return 0
	}
	n, _ := value.Whole(v)
	return n
}
