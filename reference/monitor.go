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
// and has hear called with them. The log messages of a failed check-out wait with
// its event.
func poolMonitor(log *enginekit.EventLog, messages *messageLog, use *inUse, sockets *sockets, hear func(*event.PoolEvent)) *event.PoolMonitor {
	write := enginekit.PoolWriter(log)
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == event.ConnectionCheckOutFailed {
			sockets.handled(e.Address, e.Error)
			messages.checkOutFailed(e.Address)
		}
		for _, told := range use.order(e) {
			write(told)
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
		if !sockets.cancelled("") || !reflect.DeepEqual(enginekit.Topology(e.PreviousDescription), enginekit.Topology(e.NewDescription)) {
			messages.with(topologyChanged, "", func() { write.TopologyDescriptionChanged(e) })
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
		address := enginekit.AddressOf(e.ConnectionID)
		sockets.recovered(address)
		messages.with(heartbeatSucceeded, address, func() { write.ServerHeartbeatSucceeded(e) })
	}
	told.ServerHeartbeatFailed = func(e *event.ServerHeartbeatFailedEvent) {
		if !errors.As(e.Failure, new(repeated)) {
			address := enginekit.AddressOf(e.ConnectionID)
			messages.with(heartbeatFailed, address, func() {
				write.ServerHeartbeatFailed(e)
				sockets.missed(address)
			})
		}
	}
	return &told
}
