package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/query"
)

// rest is the sleep of $where in a command. A statement that holds the lock
// must not sleep: it ends with errAsleep, sleeps without the lock, and runs
// again, when what it has slept already counts.
type rest struct {
	locked bool          // the lock is held
	slept  time.Duration // of a statement that runs under the lock
	left   time.Duration // of slept, in this run
	until  time.Time     // the end of maxTimeMS, zero without
}

// errAsleep is wrapped by what ends a statement that has to sleep.
var errAsleep = errors.New("asleep")

type asleep struct{ d time.Duration }

func (a asleep) Error() string { return fmt.Sprintf("%v for %v", errAsleep, a.d) }
func (a asleep) Unwrap() error { return errAsleep }

// scripts are those of the filters of a command.
func (s *scope) scripts() *query.Scripts {
	if ms := maxTimeMS(s.req); ms > 0 && s.rest.until.IsZero() {
		s.rest.until = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return &query.Scripts{Disabled: s.d.opts.NoScripting, Sleep: s.sleep, Stopped: s.stopped}
}

// stopped reports why the command is over, though it still runs: its time is, or it was killed.
func (s *scope) stopped() error {
	if until := s.rest.until; !until.IsZero() && !time.Now().Before(until) {
		return command.Errorf(50, "operation exceeded time limit")
	}
	if s.req.Context.Err() != nil {
		return interrupted()
	}
	return nil
}

func (s *scope) sleep(d time.Duration) error {
	r := &s.rest
	if !r.locked {
		return s.nap(d)
	}
	if r.left < d {
		return asleep{d - r.left}
	}
	r.left -= d
	return nil
}

// nap sleeps until the time is over, or that of the command, or the connection
// or the server is closed.
func (s *scope) nap(d time.Duration) error {
	late := false
	if until := s.rest.until; !until.IsZero() {
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
		return command.Errorf(50, "operation exceeded time limit")
	}
	return nil
}

// again sleeps for a statement that ended with errAsleep. It is to run again.
func (s *scope) again(err error) error {
	var a asleep
	if !errors.As(err, &a) {
		return err
	}
	s.rest.slept += a.d
	return s.nap(a.d)
}
