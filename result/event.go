package result

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// EventType is the name that the format gives to an event.
type EventType string

// The events of the format, in the order in which it lists them.
const (
	CommandStarted   EventType = "commandStartedEvent"
	CommandSucceeded EventType = "commandSucceededEvent"
	CommandFailed    EventType = "commandFailedEvent"

	PoolCreated               EventType = "poolCreatedEvent"
	PoolReady                 EventType = "poolReadyEvent"
	PoolCleared               EventType = "poolClearedEvent"
	PoolClosed                EventType = "poolClosedEvent"
	ConnectionCreated         EventType = "connectionCreatedEvent"
	ConnectionReady           EventType = "connectionReadyEvent"
	ConnectionClosed          EventType = "connectionClosedEvent"
	ConnectionCheckOutStarted EventType = "connectionCheckOutStartedEvent"
	ConnectionCheckOutFailed  EventType = "connectionCheckOutFailedEvent"
	ConnectionCheckedOut      EventType = "connectionCheckedOutEvent"
	ConnectionCheckedIn       EventType = "connectionCheckedInEvent"

	ServerDescriptionChanged   EventType = "serverDescriptionChangedEvent"
	ServerHeartbeatStarted     EventType = "serverHeartbeatStartedEvent"
	ServerHeartbeatSucceeded   EventType = "serverHeartbeatSucceededEvent"
	ServerHeartbeatFailed      EventType = "serverHeartbeatFailedEvent"
	TopologyDescriptionChanged EventType = "topologyDescriptionChangedEvent"
	TopologyOpening            EventType = "topologyOpeningEvent"
	TopologyClosed             EventType = "topologyClosedEvent"
)

// Monitor is the source of an event: the values of eventType in
// expectedEventsForClient.
type Monitor string

// The monitors.
const (
	MonitorCommand Monitor = "command"
	MonitorCMAP    Monitor = "cmap"
	MonitorSDAM    Monitor = "sdam"
)

// eventTypes lists every type of event that the format knows.
var eventTypes = map[Monitor][]EventType{
	MonitorCommand: {CommandStarted, CommandSucceeded, CommandFailed},
	MonitorCMAP: {PoolCreated, PoolReady, PoolCleared, PoolClosed, ConnectionCreated, ConnectionReady, ConnectionClosed,
		ConnectionCheckOutStarted, ConnectionCheckOutFailed, ConnectionCheckedOut, ConnectionCheckedIn},
	MonitorSDAM: {ServerDescriptionChanged, ServerHeartbeatStarted, ServerHeartbeatSucceeded, ServerHeartbeatFailed,
		TopologyDescriptionChanged, TopologyOpening, TopologyClosed},
}

// EventTypes lists the types of events of a monitor, none for an unknown one.
func EventTypes(m Monitor) []EventType { return slices.Clone(eventTypes[m]) }

// Monitor gives the source of events of a type, "" for a type that the format
// does not know.
func (t EventType) Monitor() Monitor {
	for monitor, types := range eventTypes {
		if slices.Contains(types, t) {
			return monitor
		}
	}
	return ""
}

// Event is one event of one client. Sequence numbers count from 1 per client
// over all types, in the order in which the events happened. Exactly one of
// Command, Pool and SDAM is set.
type Event struct {
	Sequence int64
	Time     time.Time
	Type     EventType
	Address  string // host:port of the server, "" for topology events

	Command *CommandEvent
	Pool    *PoolEvent
	SDAM    *SDAMEvent
}

// CommandEvent are the fields of the three command events.
type CommandEvent struct {
	CommandName  string
	DatabaseName string
	RequestID    int64
	OperationID  int64
	ConnectionID string // the driver's own name of the connection
	// ServerConnectionID is nil if the server does not send it.
	ServerConnectionID *int64
	ServiceID          *bson.ObjectID
	Command            bson.Raw // started; empty if redacted
	Reply              bson.Raw // succeeded; empty if redacted
	Failure            *Error   // failed
	Duration           time.Duration
	// Redacted is true for sensitive commands (Command Logging and
	// Monitoring, "Security").
	Redacted bool
}

// PoolEvent are the fields of the CMAP events.
type PoolEvent struct {
	ConnectionID int64 // 0 for events of the pool itself
	Reason       string
	ServiceID    *bson.ObjectID
	// InterruptInUseConnections is nil if the event does not have the field.
	InterruptInUseConnections *bool
	Err                       string
}

// SDAMEvent are the fields of the SDAM events.
type SDAMEvent struct {
	Awaited  *bool // heartbeats
	Previous *TopologyState
	New      *TopologyState
	Err      string
}

// TopologyState is a server or topology description as the format sees it:
// its type, and for topologies the servers with their types.
type TopologyState struct {
	Type    string        `json:"type"`
	Servers []ServerState `json:"servers,omitempty"`
}

// ServerState is one server of a topology description.
type ServerState struct {
	Address string `json:"address"`
	Type    string `json:"type"`
}
