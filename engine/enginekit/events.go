package enginekit

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/unified-test-runner/utr/result"
)

// AddressOf returns the address in the driver's id of a connection, "host:port[-7]". Before the connection exists,
// the id has another form, and the address is "".
func AddressOf(connection string) string {
	address, _, found := strings.Cut(connection, "[-")
	if !found {
		return ""
	}
	return address
}

// poolEvents maps the driver's names of CMAP events.
func poolEvents() map[string]result.EventType {
	return map[string]result.EventType{
		event.ConnectionPoolCreated:     result.PoolCreated,
		event.ConnectionPoolReady:       result.PoolReady,
		event.ConnectionPoolCleared:     result.PoolCleared,
		event.ConnectionPoolClosed:      result.PoolClosed,
		event.ConnectionCreated:         result.ConnectionCreated,
		event.ConnectionReady:           result.ConnectionReady,
		event.ConnectionClosed:          result.ConnectionClosed,
		event.ConnectionCheckOutStarted: result.ConnectionCheckOutStarted,
		event.ConnectionCheckOutFailed:  result.ConnectionCheckOutFailed,
		event.ConnectionCheckedOut:      result.ConnectionCheckedOut,
		event.ConnectionCheckedIn:       result.ConnectionCheckedIn,
	}
}

// PoolWriter returns a function that adds CMAP events to a log. It ignores events that are not in the format.
func PoolWriter(log *EventLog) func(*event.PoolEvent) {
	types := poolEvents()
	return func(e *event.PoolEvent) {
		kind, known := types[e.Type]
		if !known {
			return
		}
		out := result.Event{Type: kind, Address: e.Address, ConnectionID: e.ConnectionID, Reason: e.Reason,
			ServiceID: e.ServiceID}
		if kind == result.PoolCleared {
			interrupts := e.Interruption
			out.InterruptInUseConnections = &interrupts
		}
		if e.Error != nil {
			out.Err = e.Error.Error()
		}
		log.Add(out)
	}
}

// ServerMonitor adds the SDAM events of the format to a log.
func ServerMonitor(log *EventLog) *event.ServerMonitor {
	heartbeat := func(t result.EventType, connection string, awaited bool, err error) {
		e := result.Event{Type: t, Address: AddressOf(connection), Awaited: &awaited}
		if err != nil {
			e.Err = err.Error()
		}
		log.Add(e)
	}
	return &event.ServerMonitor{
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			log.Add(result.Event{Type: result.ServerDescriptionChanged, Address: e.Address.String(),
				Previous: &result.TopologyState{Type: e.PreviousDescription.Kind},
				New:      &result.TopologyState{Type: e.NewDescription.Kind},
			})
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			log.Add(result.Event{Type: result.TopologyDescriptionChanged, Previous: Topology(e.PreviousDescription),
				New: Topology(e.NewDescription)})
		},
		TopologyOpening: func(*event.TopologyOpeningEvent) { log.Add(result.Event{Type: result.TopologyOpening}) },
		TopologyClosed:  func(*event.TopologyClosedEvent) { log.Add(result.Event{Type: result.TopologyClosed}) },
		ServerHeartbeatStarted: func(e *event.ServerHeartbeatStartedEvent) {
			heartbeat(result.ServerHeartbeatStarted, e.ConnectionID, e.Awaited, nil)
		},
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			heartbeat(result.ServerHeartbeatSucceeded, e.ConnectionID, e.Awaited, nil)
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) {
			heartbeat(result.ServerHeartbeatFailed, e.ConnectionID, e.Awaited, e.Failure)
		},
	}
}

// Topology converts the driver's description of a topology.
func Topology(d event.TopologyDescription) *result.TopologyState {
	s := &result.TopologyState{Type: d.Kind, Servers: []result.ServerState{}}
	for _, v := range d.Servers {
		s.Servers = append(s.Servers, result.ServerState{Address: v.Addr.String(), Type: v.Kind})
	}
	return s
}
