package reference

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/event"
)

// inUse knows the connections that are checked out, for the sake of those that
// their pool interrupts (Connection Monitoring and Pooling, "Clearing a
// Connection Pool"). The topology says that such a connection is closed before
// it is checked in, and takes it for one of the present generation if it was the
// last of its pool. Its methods may be called concurrently.
type inUse struct {
	mu  sync.Mutex
	out map[pooled]*event.PoolEvent // its closing, when it was interrupted
}

// pooled names a connection of a client.
type pooled struct {
	address string
	id      int64
}

func newInUse() *inUse { return &inUse{out: map[pooled]*event.PoolEvent{}} }

// order gives what is to be told now that an event has come.
func (u *inUse) order(e *event.PoolEvent) []*event.PoolEvent {
	k := pooled{e.Address, e.ConnectionID}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch e.Type {
	case event.ConnectionCheckedOut:
		u.out[k] = nil
	case event.ConnectionCheckedIn:
		closed := u.out[k]
		delete(u.out, k)
		if closed != nil {
			return []*event.PoolEvent{e, closed}
		}
	case event.ConnectionClosed:
		if _, out := u.out[k]; out && e.Reason == event.ReasonStale {
			u.out[k] = e
			return nil
		}
	}
	return []*event.PoolEvent{e}
}

// interrupted reports whether a connection that is checked out was interrupted.
func (u *inUse) interrupted(address string, id int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.out[pooled{address, id}] != nil
}
