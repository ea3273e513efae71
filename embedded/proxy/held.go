package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// held are the commands that fail points block.
type held struct {
	mu  sync.Mutex
	all map[*hold]bool
}

// hold is a blocked command.
type hold struct {
	front  *front
	lsid   bson.RawValue // the id of the session; zero without one
	killed chan struct{}
	ended  chan struct{}
}

// end is how a block ended.
type end uint8

const (
	over   end = iota // its time
	killed            // by a command that kills sessions
	left              // the client has disconnected
)

// wait blocks a command until its time is over, a command kills its session, or ctx ends.
func (h *held) wait(ctx context.Context, f *front, r *request, d time.Duration) end {
	one := &hold{front: f, killed: make(chan struct{}), ended: make(chan struct{})}
	one.lsid, _ = r.body.LookupErr("lsid", "id")
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return over
	case <-one.killed:
		return killed
	case <-ctx.Done():
		return left
	}
}

// kill ends the commands of sessions, or of all sessions if ids is nil, that a server executes, or any server if the
// command went to a mongos.
func (h *held) kill(f *front, ids []bson.RawValue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.all {
		among := ids == nil || slices.ContainsFunc(ids, one.lsid.Equal)
		if (one.front == f || f.current().mongos) && !one.lsid.IsZero() && among {
			delete(h.all, one)
			close(one.killed)
		}
	}
}

// settled waits until no command is held of which the server does not know.
func (h *held) settled(ctx context.Context) {
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

// kills returns the ids of the sessions whose commands a command ends, nil for all sessions, and whether it ends any.
func kills(r *request) (ids []bson.RawValue, any bool) {
	if !strings.HasPrefix(r.name, "kill") {
		return nil, false
	}
	list, _ := r.body.Index(0).Value().ArrayOK()
	entries, _ := list.Values()
	within, known := map[string][]string{"killSessions": {"id"}, "killAllSessionsByPattern": {"lsid", "id"}, "killAllSessions": nil}[r.name]
	for _, e := range entries {
		doc, _ := e.DocumentOK()
		if id, err := doc.LookupErr(within...); err == nil && len(within) > 0 {
			ids = append(ids, id)
		}
	}
	return ids, known
}
