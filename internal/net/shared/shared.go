// Package shared guards state that goroutines change and wait on.
package shared

import (
	"context"
	"sync"
	"time"
)

// State guards state that goroutines share and wait on. The zero value is ready.
type State struct {
	sync.Mutex
	changed chan struct{} // closed by the next Update; nil until Await
}

// Update calls change under the lock, and then wakes all waiters.
func (s *State) Update(change func()) {
	s.Lock()
	defer s.Unlock()
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Await waits until a condition holds. The condition is evaluated under the lock after each Update, and must not
// block. Await returns false if the context ends or the time limit passes first.
func (s *State) Await(ctx context.Context, limit time.Duration, holds func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		s.Lock()
		done := holds()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
