package driver

import (
	"context"
	"sync"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// trace records the server that an operation used last, from its command events.
// It is a context value: only the context links a command event to its operation.
type trace struct {
	hidden bool // the command events of the operation are not logged

	mu      sync.Mutex
	server  string
	service *bson.ObjectID
}

type traceKey struct{}

func (t *trace) sent(server string, service *bson.ObjectID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.server, t.service = server, service
}

func (t *trace) last() (string, *bson.ObjectID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server, t.service
}

// commandMonitor adds command events to the log.
func commandMonitor(log *enginekit.EventLog) *event.CommandMonitor {
	add := func(ctx context.Context, t result.EventType, e result.CommandEvent) {
		address := enginekit.AddressOf(e.ConnectionID)
		if tr, ok := ctx.Value(traceKey{}).(*trace); ok { // background commands have none
			tr.sent(address, e.ServiceID)
			if tr.hidden {
				return
			}
		}
		log.Add(result.Event{Type: t, Address: address, Command: &e})
	}
	finished := func(e event.CommandFinishedEvent) result.CommandEvent {
		return result.CommandEvent{CommandName: e.CommandName, DatabaseName: e.DatabaseName, RequestID: e.RequestID,
			ConnectionID: e.ConnectionID, ServerConnectionID: e.ServerConnectionID, ServiceID: e.ServiceID, Duration: e.Duration}
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			add(ctx, result.CommandStarted, result.CommandEvent{CommandName: e.CommandName, DatabaseName: e.DatabaseName,
				RequestID: e.RequestID, ConnectionID: e.ConnectionID, ServerConnectionID: e.ServerConnectionID,
				ServiceID: e.ServiceID, Command: e.Command})
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			out := finished(e.CommandFinishedEvent)
			out.Reply = e.Reply
			add(ctx, result.CommandSucceeded, out)
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			out := finished(e.CommandFinishedEvent)
			out.Failure = errorOf(e.Failure)
			add(ctx, result.CommandFailed, out)
		},
	}
}
