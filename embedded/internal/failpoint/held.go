package failpoint

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
)

// Held are the commands of a deployment that fail points block. Its methods may be called concurrently.
type Held struct {
	mu  sync.Mutex
	all map[*hold]bool
}

// hold is a blocked command.
type hold struct {
	server any
	lsid   bson.RawValue // the id of the session; zero without one
	killed chan struct{}
	ended  chan struct{}
}

// Wait blocks a command of a server for a time. It returns the error of the command if its session is killed, and
// ErrClose if ctx ends.
func (h *Held) Wait(ctx context.Context, server any, command bson.Raw, d time.Duration) error {
	one := &hold{server: server, killed: make(chan struct{}), ended: make(chan struct{})}
	one.lsid, _ = command.LookupErr("lsid", "id")
	h.mu.Lock()
	if h.all == nil {
		h.all = map[*hold]bool{}
	}
	h.all[one] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.all, one)
		close(one.ended)
	}()
	select {
	case <-time.After(d):
		return nil
	case <-one.killed:
		return fault.Errorf(fault.Interrupted, "operation was interrupted")
	case <-ctx.Done():
		return ErrClose
	}
}

// Kill ends the commands of sessions, or of all sessions without ids, on a server, or with nil on all servers.
func (h *Held) Kill(server any, ids []bson.RawValue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.all {
		among := len(ids) == 0 || slices.ContainsFunc(ids, one.lsid.Equal)
		if (server == nil || one.server == server) && !one.lsid.IsZero() && among {
			delete(h.all, one)
			close(one.killed)
		}
	}
}

// Settled waits until no command with a session is held. The server does not have these yet.
func (h *Held) Settled(ctx context.Context) {
	h.mu.Lock()
	var open []*hold
	for one := range h.all {
		if !one.lsid.IsZero() {
			open = append(open, one)
		}
	}
	h.mu.Unlock()
	for _, one := range open {
		select {
		case <-one.ended:
		case <-ctx.Done():
			return
		}
	}
}
