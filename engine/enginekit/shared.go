package enginekit

import (
	"context"
	"sync"
	"time"
)

// Shared guards what several goroutines share, and wait for. The zero value is
// ready.
type Shared struct {
	mu      sync.Mutex
	changed chan struct{} // closed by the next Update; nil: nobody waits
}

// Update changes what Await looks at.
func (s *Shared) Update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Await waits until a condition holds, which is evaluated after each Update and
// must not wait for anything. It returns false if the context ends first, or if
// the limit is over.
func (s *Shared) Await(ctx context.Context, limit time.Duration, holds func() bool) bool {
	var over <-chan time.Time
	for {
		done, changed := s.look(holds)
		if done {
			return true
		}
		if over == nil {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			over = timer.C
		}
		select {
		case <-changed:
		case <-over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// look evaluates a condition. If it does not hold, the channel reports the next
// Update.
func (s *Shared) look(holds func() bool) (bool, <-chan struct{}) {
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
