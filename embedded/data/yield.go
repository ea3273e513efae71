package data

import (
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
)

// yields lets the scripts of a command sleep. A statement that holds the lock must not
// sleep: it ends with errYield, sleeps without the lock, and runs again. What it has slept
// counts in the next run.
type yields struct {
	locked   bool          // the lock is held
	slept    time.Duration // by a statement that runs under the lock
	left     time.Duration // what this run has not used of slept
	deadline time.Time     // the end of maxTimeMS, zero without it
}

// errYield ends a statement that has to sleep for so long without the lock.
type errYield struct{ d time.Duration }

func (e errYield) Error() string { return fmt.Sprintf("the statement yields for %v", e.d) }

// scripts are those of the filters of a command.
func (s *scope) scripts() *query.Scripts {
	if ms := maxTimeMS(s.req); ms > 0 && s.yields.deadline.IsZero() {
		s.yields.deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.stopped}
}

// stopped reports why the command is over, though it still runs: its time is, or it was killed.
func (s *scope) stopped() error {
	if until := s.yields.deadline; !until.IsZero() && !time.Now().Before(until) {
		return command.Errorf(command.CodeMaxTimeMSExpired, "operation exceeded time limit")
	}
	if s.req.Context.Err() != nil {
		return interrupted()
	}
	return nil
}

func (s *scope) sleep(d time.Duration) error {
	y := &s.yields
	if !y.locked {
		return s.pause(d)
	}
	if y.left < d {
		return errYield{d - y.left}
	}
	y.left -= d
	return nil
}

// pause sleeps until the time is over, or that of the command, or the connection
// or the server is closed.
func (s *scope) pause(d time.Duration) error {
	late := false
	if until := s.yields.deadline; !until.IsZero() {
		if left := time.Until(until); left < d {
			d, late = left, true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.req.Context.Done():
		return interrupted()
	}
	if late {
		return command.Errorf(command.CodeMaxTimeMSExpired, "operation exceeded time limit")
	}
	return nil
}

// resume sleeps for a statement that yielded, before it runs again.
func (s *scope) resume(y errYield) error {
	s.yields.slept += y.d
	return s.pause(y.d)
}
