package entities

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped refuses work for a thread that was told that no more is
// forthcoming.
var ErrStopped = errors.New("the thread has been told that no more operations are forthcoming")

// Thread is a test runner thread ("thread"): idle until work is given to it,
// which it does in order, beside the main thread. It may be used concurrently.
type Thread struct {
	mu      sync.Mutex
	queue   []func()
	stopped bool
	wake    chan struct{} // capacity 1
	done    chan struct{}
}

// StartThread starts a thread. It ends after Stop, once its work is done.
func StartThread() *Thread {
	t := &Thread{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go t.loop()
	return t
}

// Do gives the thread work. The work must not panic. Error: ErrStopped.
func (t *Thread) Do(work func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return ErrStopped
	}
	t.queue = append(t.queue, work)
	t.signal()
	return nil
}

// Stop tells that no more work is forthcoming. Stopping twice is no error.
func (t *Thread) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.signal()
}

// Wait waits until a stopped thread has done all its work, or gives the cause
// of the context's end.
func (t *Thread) Wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	default:
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signal wakes the loop; the caller holds the lock.
func (t *Thread) signal() {
	select {
	case t.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

func (t *Thread) loop() {
	defer close(t.done)
	for {
		t.mu.Lock()
		var work func()
		if len(t.queue) > 0 {
			work, t.queue = t.queue[0], t.queue[1:]
		}
		stopped := t.stopped
		t.mu.Unlock()
		switch {
		case work != nil:
			work()
		case stopped:
			return
		default:
			<-t.wake
		}
	}
}
