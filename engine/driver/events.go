package driver

import (
	"context"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/result"
)

// trace records the last command event of an operation, because it names the server.
// It is a context value: only the context links a command event to its operation.
type trace struct {
	hidden bool // the command events of the operation are not logged
	last   atomic.Pointer[result.Event]
}

type traceKey struct{}

// commandMonitor adds command events to the log.
func commandMonitor(log *enginekit.EventLog) *event.CommandMonitor {
	add := func(ctx context.Context, e result.Event) {
		e.Address = enginekit.AddressOf(e.DriverConnectionID)
		if tr, ok := ctx.Value(traceKey{}).(*trace); ok { // background commands have none
			tr.last.Store(&e)
			if tr.hidden {
				return
			}
		}
		log.Add(e)
	}
	finished := func(t result.EventType, e event.CommandFinishedEvent) result.Event {
		return result.Event{Type: t, CommandName: e.CommandName, DatabaseName: e.DatabaseName, RequestID: e.RequestID,
			DriverConnectionID: e.ConnectionID, ServerConnectionID: e.ServerConnectionID, ServiceID: e.ServiceID,
			Duration: result.Duration(e.Duration)}
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			add(ctx, result.Event{Type: result.CommandStarted, CommandName: e.CommandName, DatabaseName: e.DatabaseName,
				RequestID: e.RequestID, DriverConnectionID: e.ConnectionID, ServerConnectionID: e.ServerConnectionID,
				ServiceID: e.ServiceID, Body: result.Document(e.Command)})
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			out := finished(result.CommandSucceeded, e.CommandFinishedEvent)
			out.Body = result.Document(e.Reply)
			add(ctx, out)
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			out := finished(result.CommandFailed, e.CommandFinishedEvent)
			out.Failure = errorOf(e.Failure)
			add(ctx, out)
		},
	}
}
