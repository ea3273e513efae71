package reference

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

func TestHandshakesAreHandled(t *testing.T) {
	const here, there = "a:1", "b:2"
	failure := errors.New("refused")
	closed := func(address, reason string, err error) *event.PoolEvent {
		return &event.PoolEvent{Type: event.ConnectionClosed, Address: address, Reason: reason, Error: err}
	}
	for _, row := range []struct {
		reason string
		event  *event.PoolEvent
		want   bool
	}{
		{"nothing was told", nil, false},
		{"the connection is closed", closed(here, event.ReasonError, failure), true},
		{"its error was made anew", closed(here, event.ReasonError, errors.New("refused")), true},
		{"another one failed otherwise", closed(here, event.ReasonError, errors.New("cut")), false},
		{"one to another server", closed(there, event.ReasonError, failure), false},
		{"an idle one was closed", closed(here, event.ReasonIdle, nil), false},
		{"it was closed when the pool was cleared", closed(here, event.ReasonStale, nil), true},
		{"it was closed with the pool", closed(here, event.ReasonPoolClosed, nil), true},
		{"the pool was closed", &event.PoolEvent{Type: event.ConnectionPoolClosed, Address: here}, true},
		{"the pool of another server was closed", &event.PoolEvent{Type: event.ConnectionPoolClosed, Address: there}, false},
		{"the check-out failed, which is told before the topology handles it",
			&event.PoolEvent{Type: event.ConnectionCheckOutFailed, Address: here, Error: failure}, false},
		{"the pool was cleared, but the check is not cancelled yet",
			&event.PoolEvent{Type: event.ConnectionPoolCleared, Address: here, Error: failure}, false},
	} {
		h := newHandshakes()
		w := h.watch(here)
		if row.event != nil {
			h.event(row.event)
		}
		// A context that has ended lets only those go well that need no wait.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.handled(ctx, w, failure)
		if got := w.over || w.failed[failure.Error()]; got != row.want {
			t.Errorf("%s: handled %t, want %t", row.reason, got, row.want)
		}
		h.end(w)
		if len(h.watches) != 0 {
			t.Errorf("%s: a watch is left", row.reason)
		}
	}
}

// handled does not come back before the event, and does with it.
func TestHandshakesAreAwaited(t *testing.T) {
	h := newHandshakes()
	w := h.watch("a:1")
	defer h.end(w)
	failure := errors.New("refused")
	back := make(chan struct{})
	go func() {
		defer close(back)
		h.handled(t.Context(), w, failure)
	}()
	h.event(&event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", Reason: event.ReasonError, Error: errors.New("cut")})
	select {
	case <-back:
		t.Fatal("it came back for another connection")
	case <-time.After(10 * time.Millisecond): // a wrong one is back by then, mostly
	}
	h.event(&event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", Reason: event.ReasonError, Error: failure})
	select {
	case <-back:
	case <-time.After(handling):
		t.Fatal("it did not come back within " + handling.String())
	}
}

// A check-out fails after its connection is told to be closed.
func TestCheckOutsFailAfterTheirConnectionsClose(t *testing.T) {
	failed := topology.ConnectionError{Wrapped: io.EOF}
	for _, row := range []struct {
		reason string
		err    error
		watch  string
		event  *event.PoolEvent // that has to come first, if any
	}{
		{"nothing was wrong with a connection", topology.ErrPoolClosed, "a:1", nil},
		{"no error is told", nil, "a:1", nil},
		{"no one watches", failed, "b:1", nil},
		{"the connection is closed", failed, "a:1", &event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", Error: failed}},
		{"the pool is closed", failed, "a:1", &event.PoolEvent{Type: event.ConnectionPoolClosed, Address: "a:1"}},
	} {
		h := newHandshakes()
		h.watch(row.watch)
		over := make(chan struct{})
		go func() {
			h.closed("a:1", row.err)
			close(over)
		}()
		if row.event != nil {
			h.event(&event.PoolEvent{Type: event.ConnectionClosed, Address: "a:1", Error: io.ErrUnexpectedEOF})
			select {
			case <-over:
				t.Errorf("%s: it does not wait", row.reason)
			default:
			}
			h.event(row.event)
		}
		select {
		case <-over:
		case <-time.After(handling / 2):
			t.Errorf("%s: it waits for long", row.reason)
		}
	}
}
