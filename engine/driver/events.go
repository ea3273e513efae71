package driver

import (
	"context"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// trace is what an operation learns from its command events: which server it
// spoke to last. It travels in the context, since that is all by which the
// driver tells what operation a command belongs to.
type trace struct {
	hidden bool // no command event of the operation is logged

	mu      sync.Mutex
	server  string
	service *bson.ObjectID
}

type traceKey struct{}

func (t *trace) attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// traceOf gives the trace of a command; background commands have none.
func traceOf(ctx context.Context) *trace {
	t, _ := ctx.Value(traceKey{}).(*trace)
	return t
}

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

// addressOf takes the address out of the driver's name of a connection,
// "host:port[-7]". Before there is a connection the name is no such thing.
func addressOf(connection string) string {
	address, _, found := strings.Cut(connection, "[-")
	if !found {
		return ""
	}
	return address
}

// commandMonitor writes command events to the log.
func commandMonitor(log *eventLog) *event.CommandMonitor {
	add := func(ctx context.Context, t result.EventType, e result.CommandEvent) {
		address := addressOf(e.ConnectionID)
		if tr := traceOf(ctx); tr != nil {
			tr.sent(address, e.ServiceID)
			if tr.hidden {
				return
			}
		}
		log.add(result.Event{Type: t, Address: address, Command: &e})
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

// poolMonitor writes CMAP events to the log.
func poolMonitor(log *eventLog) *event.PoolMonitor {
	types := map[string]result.EventType{
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
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		kind, known := types[e.Type]
		if !known {
			return
		}
		p := &result.PoolEvent{ConnectionID: e.ConnectionID, Reason: e.Reason, ServiceID: e.ServiceID}
		if kind == result.PoolCleared {
			interrupts := e.Interruption
			p.InterruptInUseConnections = &interrupts
		}
		if e.Error != nil {
			p.Err = e.Error.Error()
		}
		log.add(result.Event{Type: kind, Address: e.Address, Pool: p})
	}}
}

// serverMonitor writes SDAM events to the log.
func serverMonitor(log *eventLog) *event.ServerMonitor {
	add := func(t result.EventType, address string, e result.SDAMEvent) {
		log.add(result.Event{Type: t, Address: address, SDAM: &e})
	}
	heartbeat := func(t result.EventType, connection string, awaited bool, err error) {
		e := result.SDAMEvent{Awaited: &awaited}
		if err != nil {
			e.Err = err.Error()
		}
		add(t, addressOf(connection), e)
	}
	return &event.ServerMonitor{
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			add(result.ServerDescriptionChanged, e.Address.String(), result.SDAMEvent{
				Previous: &result.TopologyState{Type: e.PreviousDescription.Kind},
				New:      &result.TopologyState{Type: e.NewDescription.Kind},
			})
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			add(result.TopologyDescriptionChanged, "", result.SDAMEvent{
				Previous: topologyState(e.PreviousDescription), New: topologyState(e.NewDescription)})
		},
		TopologyOpening: func(*event.TopologyOpeningEvent) { add(result.TopologyOpening, "", result.SDAMEvent{}) },
		TopologyClosed:  func(*event.TopologyClosedEvent) { add(result.TopologyClosed, "", result.SDAMEvent{}) },
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

func topologyState(d event.TopologyDescription) *result.TopologyState {
	s := &result.TopologyState{Type: d.Kind}
	for _, v := range d.Servers {
		s.Servers = append(s.Servers, result.ServerState{Address: v.Addr.String(), Type: v.Kind})
	}
	return s
}
