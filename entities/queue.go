package entities

import (
	"context"
	"errors"
	"sync"
)

// errStopped is the error of work for a stopped thread.
var errStopped = errors.New("the thread was notified that no more operations are forthcoming")

// Queue is a thread of the test runner ("thread"). It performs work in order. The zero value is ready to use. Its
// methods may be called concurrently.
type Queue struct {
	mu      sync.Mutex
	last    chan struct{} // closed when all work is done; nil before the first
	stopped bool
}

// Do queues work, unless the thread is stopped. The work must not panic.
func (t *Queue) Do(work func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return errStopped
	}
	before, done := t.last, make(chan struct{})
	t.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		work()
	}()
	return nil
}

// Stop makes further work an error.
func (t *Queue) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// Wait waits until all work is done or the context ends, whose cause it returns.
func (t *Queue) Wait(ctx context.Context) error {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	select {
	case <-last:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-last: // also done
		return nil
	default:
		return context.Cause(ctx)
	}
}
