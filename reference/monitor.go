package reference

import (
	"errors"
	"reflect"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// poolMonitor writes CMAP events to the log, in the order that use gives them,
// with the messages about them, and has hear called with them.
func poolMonitor(log *enginekit.EventLog, messages *messageLog, use *inUse, sockets *sockets, hear func(*event.PoolEvent)) *event.PoolMonitor {
	write := enginekit.PoolWriter(log)
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == event.ConnectionCheckOutFailed {
			sockets.handled(e.Address, e.Error)
		}
		for _, told := range use.order(e) {
			write(told)
			messages.pool(told)
		}
		hear(e) // when it is written, for a retry follows
	}}
}

// serverMonitor writes SDAM events to the log. What a monitor says because its
// check was cancelled is left out: the server was marked Unknown before, and
// another error makes no news. The monitor rests before its next check, for an
// interval at most.
func serverMonitor(log *enginekit.EventLog, messages *messageLog, sockets *sockets, interval time.Duration) *event.ServerMonitor {
	write := enginekit.ServerMonitor(log)
	told := *write
	told.ServerDescriptionChanged = func(e *event.ServerDescriptionChangedEvent) {
		if e.NewDescription.Kind != description.UnknownStr {
			sockets.discover(e.Address.String())
		}
		if e.PreviousDescription.Kind != e.NewDescription.Kind || !sockets.cancelled(e.Address.String()) {
			write.ServerDescriptionChanged(e)
		}
	}
	told.TopologyDescriptionChanged = func(e *event.TopologyDescriptionChangedEvent) {
		messages.owe()
		if !sockets.cancelled("") || !reflect.DeepEqual(enginekit.Topology(e.PreviousDescription), enginekit.Topology(e.NewDescription)) {
			write.TopologyDescriptionChanged(e)
		}
	}
	told.ServerHeartbeatStarted = func(e *event.ServerHeartbeatStartedEvent) {
		address := enginekit.AddressOf(e.ConnectionID)
		if sockets.checks(address) {
			sockets.rest(address, interval)
			write.ServerHeartbeatStarted(e)
		}
	}
	told.ServerHeartbeatSucceeded = func(e *event.ServerHeartbeatSucceededEvent) {
		messages.owe()
		sockets.recovered(enginekit.AddressOf(e.ConnectionID))
		write.ServerHeartbeatSucceeded(e)
	}
	told.ServerHeartbeatFailed = func(e *event.ServerHeartbeatFailedEvent) {
		messages.owe()
		if !errors.As(e.Failure, new(repeated)) {
			write.ServerHeartbeatFailed(e)
			sockets.missed(enginekit.AddressOf(e.ConnectionID))
		}
	}
	return &told
}
