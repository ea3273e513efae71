package reference

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// handshakes tells when the topology is done with a handshake that failed. It
// hands the error out first; then it marks the server Unknown, clears the pool
// and cancels the monitor's check; and last it tells that the connection is closed. A
// retry that begins earlier selects a server that is about to be Unknown, and
// fails for the clearing of its pool: one failure would count as two attempts.
type handshakes struct {
	mu      sync.Mutex
	watches map[*watch]bool
	changed chan struct{} // closed and replaced with each event
}

func newHandshakes() *handshakes {
	return &handshakes{watches: map[*watch]bool{}, changed: make(chan struct{})}
}

// handling bounds the wait for what the topology does without waiting for
// anyone: it is reached only if it does not tell of a connection at all.
const handling = 5 * time.Second

// watch notes the connections to a server that were closed since it began.
type watch struct {
	address string
	woken   chan struct{} // has room for one

	// Guarded by mu of handshakes.
	failed map[string]bool // texts of the errors, for they are all that tells connections apart
	over   bool            // the pool was closed, or closed what it had: no more is told
}

// watch begins before a connection is asked for, and is to be ended.
func (h *handshakes) watch(address string) *watch {
	w := &watch{address: address, woken: make(chan struct{}, 1), failed: map[string]bool{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watches[w] = true
	return w
}

func (h *handshakes) end(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches, w)
}

// event hears what a pool tells.
func (h *handshakes) event(e *event.PoolEvent) {
	over := e.Type == event.ConnectionPoolClosed ||
		e.Type == event.ConnectionClosed && (e.Reason == event.ReasonPoolClosed || e.Reason == event.ReasonStale)
	if !over && (e.Type != event.ConnectionClosed || e.Error == nil) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		if w.address != e.Address {
			continue
		}
		w.over = w.over || over
		if e.Error != nil {
			w.failed[e.Error.Error()] = true
		}
		select {
		case w.woken <- struct{}{}:
		default: // it is woken already
		}
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// closed waits until the pool has told that the connection is closed for which
// a check-out fails with err: that is told first (Connection Monitoring and
// Pooling, "Checking Out a Connection"). It is called during the check-out, which
// is watched.
func (h *handshakes) closed(address string, err error) {
	if err == nil || !checkoutFailure(err, address).rules.Handshake {
		return
	}
	text := err.Error()
	timer := time.NewTimer(handling)
	defer timer.Stop()
	for {
		h.mu.Lock()
		watched, told, changed := false, false, h.changed
		for w := range h.watches {
			if w.address == address {
				watched = true
				told = told || w.over || w.failed[text]
			}
		}
		h.mu.Unlock()
		if told || !watched {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// handled waits until the topology is done with the connection that failed
// with err. If another one to the same server failed with the same text, either
// will do: the pool was cleared for it, and errors of older connections have no
// effect then.
func (h *handshakes) handled(ctx context.Context, w *watch, err error) {
	text := err.Error()
	timer := time.NewTimer(handling)
	defer timer.Stop()
	for {
		h.mu.Lock()
		done := w.over || w.failed[text]
		h.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.woken:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
