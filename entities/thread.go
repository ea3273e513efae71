package entities

import (
	"context"
	"errors"
	"sync"
)

// errStopped refuses work for a thread that was told that no more is
// forthcoming.
var errStopped = errors.New("the thread has been told that no more operations are forthcoming")

// Thread is a test runner thread ("thread"): it does work in the order in
// which it was given, beside the main thread. The zero Thread is ready. It may
// be used concurrently.
type Thread struct {
	mu      sync.Mutex
	last    chan struct{} // closed once all work so far is done; nil before the first
	stopped bool
}

// Do gives the thread work. The work must not panic. A stopped thread refuses
// it.
func (t *Thread) Do(work func()) error {
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

// Stop says that no more work is forthcoming. It may be called again.
func (t *Thread) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// Wait waits until the thread has done the work that it was given, or returns
// the cause of the context's end.
func (t *Thread) Wait(ctx context.Context) error {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	select {
	case <-last:
		return nil
	default:
	}
	select {
	case <-last:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
