package reference

import (
	"errors"
	"net"
	"reflect"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// poolMonitor writes CMAP events to the log, in their order, with the messages about
// them.
func (c *client) poolMonitor() *event.PoolMonitor {
	write := enginekit.PoolWriter(c.log)
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == event.ConnectionCheckOutFailed {
			c.sockets.handled(e.Address, e.Error)
		}
		for _, told := range c.sockets.order(e) {
			write(told)
			c.messages.pool(told)
		}
		// A retry may follow what is done now.
		switch {
		case e.Type == event.ConnectionClosed && e.Error != nil:
			// After a connection that could not be made, the topology is done with
			// its error: if the server is Unknown now, the monitor's stream ends,
			// and whoever waits for the handshake goes on.
			c.sockets.Release(e.Address, net.ErrClosed, c.unknown(e.Address))
		case e.Type == event.ConnectionPoolClosed:
			c.sockets.PoolClosed(e.Address)
		}
		c.sockets.event(e)
	}}
}

// serverMonitor writes SDAM events to the log. What a monitor says because its
// check was cancelled is left out: the server was marked Unknown before, and
// another error makes no news. The monitor rests before its next check.
func (c *client) serverMonitor() *event.ServerMonitor {
	write, sockets, messages := enginekit.ServerMonitor(c.log), c.sockets, c.messages
	told := *write
	told.ServerDescriptionChanged = func(e *event.ServerDescriptionChangedEvent) {
		if e.NewDescription.Kind != description.UnknownStr {
			sockets.note(e.Address.String(), func(w *watched) { w.known = true })
		}
		if e.PreviousDescription.Kind != e.NewDescription.Kind || !sockets.cancelled(e.Address.String()) {
			write.ServerDescriptionChanged(e)
		}
	}
	told.TopologyDescriptionChanged = func(e *event.TopologyDescriptionChangedEvent) {
		messages.owe()
		sockets.Update(func() {}) // for awaitMembers
		if !sockets.cancelled("") || !reflect.DeepEqual(enginekit.Topology(e.PreviousDescription), enginekit.Topology(e.NewDescription)) {
			write.TopologyDescriptionChanged(e)
		}
	}
	told.ServerHeartbeatStarted = func(e *event.ServerHeartbeatStartedEvent) {
		address := enginekit.AddressOf(e.ConnectionID)
		if sockets.checks(address) {
			sockets.rest(address, c.settings.heartbeat)
			write.ServerHeartbeatStarted(e)
		}
	}
	told.ServerHeartbeatSucceeded = func(e *event.ServerHeartbeatSucceededEvent) {
		messages.owe()
		sockets.note(enginekit.AddressOf(e.ConnectionID), func(w *watched) { w.cancelled = false })
		write.ServerHeartbeatSucceeded(e)
	}
	told.ServerHeartbeatFailed = func(e *event.ServerHeartbeatFailedEvent) {
		messages.owe()
		if !errors.As(e.Failure, new(repeated)) {
			write.ServerHeartbeatFailed(e)
			sockets.note(enginekit.AddressOf(e.ConnectionID), func(w *watched) { w.noticed = true })
		}
	}
	return &told
}
