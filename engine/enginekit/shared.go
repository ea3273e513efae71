package enginekit

import (
	"context"
	"sync"
	"time"
)

// Shared guards state that goroutines share and wait on. The zero value is ready.
type Shared struct {
	mu      sync.Mutex
	changed chan struct{} // closed by the next Update; nil without waiters
}

// Update calls change under the lock and wakes all waiters.
func (s *Shared) Update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Await waits until a condition holds. The condition is evaluated under the lock
// after each Update, and must not block. Await returns false if the context ends or
// the time limit passes first.
func (s *Shared) Await(ctx context.Context, limit time.Duration, holds func() bool) bool {
	var expired <-chan time.Time
	for {
		done, changed := s.check(holds)
		if done {
			return true
		}
		if expired == nil {
			expired = time.After(limit)
		}
		select {
		case <-changed:
		case <-expired:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// check evaluates a condition. If it does not hold, the next Update closes the
// channel.
func (s *Shared) check(holds func() bool) (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holds() {
		return true, nil
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return false, s.changed
}
