package proxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/value"
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

// settled waits until no command with a session is held. The server does not have these yet.
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

// kills are the commands that end the commands of sessions. They return the ids in their list, nil for all sessions.
var kills = map[string]func(list bson.RawValue) []bson.RawValue{
	"killSessions":             idsAt("id"),
	"killAllSessionsByPattern": idsAt("lsid", "id"),
	"killAllSessions":          func(bson.RawValue) []bson.RawValue { return nil },
}

func idsAt(path ...string) func(bson.RawValue) []bson.RawValue {
	return func(list bson.RawValue) (ids []bson.RawValue) {
		for _, v := range value.Elements(list) {
			doc, _ := v.DocumentOK()
			if id, err := doc.LookupErr(path...); err == nil {
				ids = append(ids, id)
			}
		}
		return ids
	}
}
