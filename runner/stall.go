package runner

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A stall is a time in which the process did not run: a signal, a debugger or a hypervisor paused it. Time limits
// expire meanwhile, so a failure says nothing about the driver.
const (
	stallTick  = 250 * time.Millisecond
	stallLimit = 2 * time.Second // longer than a loaded machine delays a goroutine
)

// stalls records stalls while watch runs.
type stalls struct {
	mu    sync.Mutex
	tick  time.Time // last time at which the process ran
	found []stall
}

type stall struct {
	to     time.Time
	length time.Duration
}

// watch records stalls until the returned function is called.
func (s *stalls) watch() (end func()) {
	s.note(time.Now())
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(stallTick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.note(time.Now())
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// note records that the process runs. The clock of the process stops while a virtual machine is suspended, and the
// wall clock does not.
func (s *stalls) note(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if length := max(now.Sub(s.tick), now.Round(0).Sub(s.tick.Round(0))); !s.tick.IsZero() && length > stallLimit {
		s.found = append(s.found, stall{now, length})
	}
	s.tick = now
}

// since returns an error if the process stalled after from.
func (s *stalls) since(from time.Time) error {
	s.note(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.found, func(f stall) bool { return f.to.After(from) })
	if i < 0 {
		return nil
	}
	return &stalledError{s.found[i].length}
}

// stalledError is why a test that failed during a stall is broken.
type stalledError struct{ length time.Duration }

func (e *stalledError) Error() string {
	return fmt.Sprintf("utr was paused for %s during the test, or the clock jumped", e.length.Round(time.Second))
}
