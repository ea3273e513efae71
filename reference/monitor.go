package reference

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// poolTypes translates the names of the Go driver's pool events.
func poolTypes() map[string]result.EventType {
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

// poolMonitor writes CMAP events to the log, in the order that use gives them,
// and has hear called with them. The log messages of a failed check-out wait with
// its event.
func poolMonitor(log *eventLog, messages *messageLog, use *inUse, handshakes *handshakes, hear func(*event.PoolEvent)) *event.PoolMonitor {
	types := poolTypes()
	write := func(e *event.PoolEvent) {
		kind, known := types[e.Type]
		if !known {
			return
		}
		p := &result.PoolEvent{ConnectionID: e.ConnectionID, Reason: e.Reason}
		if e.ServiceID != nil {
			id := bson.ObjectID(*e.ServiceID)
			p.ServiceID = &id
		}
		if kind == result.PoolCleared {
			in := e.Interruption
			p.InterruptInUseConnections = &in
		}
		if e.Error != nil {
			p.Err = e.Error.Error()
		}
		log.add(result.Event{Type: kind, Address: e.Address, Pool: p})
	}
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		if e.Type == event.ConnectionCheckOutFailed {
			handshakes.closed(e.Address, e.Error)
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
func serverMonitor(log *eventLog, messages *messageLog, sockets *sockets, interval time.Duration) *event.ServerMonitor {
	add := func(t result.EventType, address string, e result.SDAMEvent) {
		log.add(result.Event{Type: t, Address: address, SDAM: &e})
	}
	heartbeat := func(t result.EventType, connection string, awaited bool, err error) {
		e := result.SDAMEvent{Awaited: &awaited}
		if err != nil {
			e.Err = err.Error()
		}
		address, _, found := strings.Cut(connection, "[")
		if !found { // the first heartbeat has no connection yet
			address = ""
		}
		add(t, address, e)
	}
	return &event.ServerMonitor{
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			if e.NewDescription.Kind != description.UnknownStr {
				sockets.discover(e.Address.String())
			}
			if e.PreviousDescription.Kind == e.NewDescription.Kind && sockets.cancelled(e.Address.String()) {
				return
			}
			add(result.ServerDescriptionChanged, e.Address.String(), result.SDAMEvent{
				Previous: &result.TopologyState{Type: e.PreviousDescription.Kind},
				New:      &result.TopologyState{Type: e.NewDescription.Kind},
			})
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			before, after := topologyState(e.PreviousDescription), topologyState(e.NewDescription)
			if sockets.cancelled("") && reflect.DeepEqual(before, after) {
				return
			}
			messages.with(topologyChanged, "", func() {
				add(result.TopologyDescriptionChanged, "", result.SDAMEvent{Previous: before, New: after})
			})
		},
		TopologyOpening: func(*event.TopologyOpeningEvent) { add(result.TopologyOpening, "", result.SDAMEvent{}) },
		TopologyClosed:  func(*event.TopologyClosedEvent) { add(result.TopologyClosed, "", result.SDAMEvent{}) },
		ServerHeartbeatStarted: func(e *event.ServerHeartbeatStartedEvent) {
			address, _, _ := strings.Cut(e.ConnectionID, "[")
			if !sockets.checks(address) {
				return
			}
			sockets.resting.rest(address, interval)
			heartbeat(result.ServerHeartbeatStarted, e.ConnectionID, e.Awaited, nil)
		},
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			address, _, _ := strings.Cut(e.ConnectionID, "[")
			sockets.recovered(address)
			messages.with(heartbeatSucceeded, address, func() {
				heartbeat(result.ServerHeartbeatSucceeded, e.ConnectionID, e.Awaited, nil)
			})
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) {
			if errors.As(e.Failure, new(repeated)) {
				return
			}
			address, _, _ := strings.Cut(e.ConnectionID, "[")
			messages.with(heartbeatFailed, address, func() {
				heartbeat(result.ServerHeartbeatFailed, e.ConnectionID, e.Awaited, e.Failure)
			})
		},
	}
}

func topologyState(d event.TopologyDescription) *result.TopologyState {
	s := &result.TopologyState{Type: d.Kind}
	for _, v := range d.Servers {
		s.Servers = append(s.Servers, result.ServerState{Address: v.Addr.String(), Type: v.Kind})
	}
	return s
}
