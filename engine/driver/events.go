package driver

import (
	"context"
	"sync/atomic"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/event"
)

// trace records the last command event of an operation, which names its server.
// It is a context value: only the context links a command event to its operation.
type trace struct {
	hidden bool // the command events of the operation are not logged
	last   atomic.Pointer[result.CommandEvent]
}

type traceKey struct{}

// commandMonitor adds command events to the log.
func commandMonitor(log *enginekit.EventLog) *event.CommandMonitor {
	add := func(ctx context.Context, t result.EventType, e result.CommandEvent) {
		if tr, ok := ctx.Value(traceKey{}).(*trace); ok { // background commands have none
			tr.last.Store(&e)
			if tr.hidden {
				return
			}
		}
		log.Add(result.Event{Type: t, Address: enginekit.AddressOf(e.ConnectionID), Command: &e})
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
