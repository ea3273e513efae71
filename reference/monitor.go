package reference

import (
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	"github.com/unified-test-runner/utr/engine/enginekit"
)

// poolMonitor writes CMAP events and their messages to the logs, in the specified order.
func (c *client) poolMonitor() *event.PoolMonitor {
	write := enginekit.PoolWriter(c.log)
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == event.ConnectionCheckOutFailed {
			c.sockets.awaitClosed(e.Address, e.Error)
		}
		for _, next := range c.sockets.reorder(e) {
			write(next)
			c.messages.pool(next)
		}
		switch {
		case e.Type == event.ConnectionClosed && e.Error != nil:
			// The topology has processed the handshake error. If the server is Unknown, the monitor's stream ends.
			c.sockets.Release(e.Address, c.unknown(e.Address))
		case e.Type == event.ConnectionPoolClosed:
			c.sockets.PoolClosed(e.Address)
		}
		c.sockets.poolEvent(e) // last, because it wakes check-outs
	}}
}

// serverMonitor writes SDAM events to the log, except the events of a canceled check: the server is already Unknown.
func (c *client) serverMonitor() *event.ServerMonitor {
	write, sockets, messages := enginekit.ServerMonitor(c.log), c.sockets, c.messages
	monitor := *write
	monitor.ServerDescriptionChanged = func(e *event.ServerDescriptionChangedEvent) {
		if e.NewDescription.Kind != description.UnknownStr {
			sockets.change(e.Address.String(), func(w *serverState) { w.known = true })
		}
		if e.PreviousDescription.Kind != e.NewDescription.Kind || !sockets.canceled(e.Address.String()) {
			write.ServerDescriptionChanged(e)
		}
	}
	monitor.TopologyDescriptionChanged = func(e *event.TopologyDescriptionChangedEvent) {
		messages.expect()
		sockets.Update(func() {}) // wakes awaitMembers
		if !sockets.canceled("") || !reflect.DeepEqual(enginekit.Topology(e.PreviousDescription),
			enginekit.Topology(e.NewDescription)) {
			write.TopologyDescriptionChanged(e)
		}
	}
	monitor.ServerHeartbeatStarted = func(e *event.ServerHeartbeatStartedEvent) {
		address := enginekit.AddressOf(e.ConnectionID)
		if sockets.beginCheck(address) {
			sockets.pause(address, c.settings.HeartbeatInterval)
			write.ServerHeartbeatStarted(e)
		}
	}
	monitor.ServerHeartbeatSucceeded = func(e *event.ServerHeartbeatSucceededEvent) {
		messages.expect()
		sockets.change(enginekit.AddressOf(e.ConnectionID), func(w *serverState) { w.canceled = false })
		write.ServerHeartbeatSucceeded(e)
	}
	monitor.ServerHeartbeatFailed = func(e *event.ServerHeartbeatFailedEvent) {
		messages.expect()
		if !errors.As(e.Failure, new(repeated)) {
			write.ServerHeartbeatFailed(e)
			sockets.change(enginekit.AddressOf(e.ConnectionID), func(w *serverState) { w.reported = true })
		}
	}
	return &monitor
}
