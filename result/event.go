package result

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// EventType is the name of an event in the format.
type EventType string

// The events of the format, in its order.
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

// Monitor is the source of events: a value of eventType in
// expectedEventsForClient.
type Monitor string

// The monitors.
const (
	MonitorCommand Monitor = "command"
	MonitorCMAP    Monitor = "cmap"
	MonitorSDAM    Monitor = "sdam"
)

var eventTypes = map[Monitor][]EventType{
	MonitorCommand: {CommandStarted, CommandSucceeded, CommandFailed},
	MonitorCMAP: {PoolCreated, PoolReady, PoolCleared, PoolClosed, ConnectionCreated, ConnectionReady, ConnectionClosed,
		ConnectionCheckOutStarted, ConnectionCheckOutFailed, ConnectionCheckedOut, ConnectionCheckedIn},
	MonitorSDAM: {ServerDescriptionChanged, ServerHeartbeatStarted, ServerHeartbeatSucceeded, ServerHeartbeatFailed,
		TopologyDescriptionChanged, TopologyOpening, TopologyClosed},
}

// EventTypes returns the event types of a monitor, nil if it is unknown.
func EventTypes(m Monitor) []EventType { return slices.Clone(eventTypes[m]) }

// Monitor returns the monitor of an event type, "" if the type is unknown.
func (t EventType) Monitor() Monitor {
	for monitor, types := range eventTypes {
		if slices.Contains(types, t) {
			return monitor
		}
	}
	return ""
}

// Event is an event of a client. Sequence numbers start at 1 for each client
// and count events of all types in order. Exactly one of Command, Pool and SDAM
// is set.
type Event struct {
	Sequence int64
	Time     time.Time
	Type     EventType
	Address  string // host:port of the server; "" for topology events

	Command *CommandEvent
	Pool    *PoolEvent
	SDAM    *SDAMEvent
}

// CommandEvent holds the fields of command events.
type CommandEvent struct {
	CommandName  string
	DatabaseName string
	RequestID    int64
	OperationID  int64
	ConnectionID string // as named by the driver

	ServerConnectionID *int64 // nil if the server does not send it
	ServiceID          *bson.ObjectID
	Command            bson.Raw // started; empty if redacted
	Reply              bson.Raw // succeeded; empty if redacted
	Failure            *Error   // failed
	Duration           time.Duration
	Redacted           bool // a sensitive command (Command Logging and Monitoring, "Security")
}

// PoolEvent holds the fields of CMAP events.
type PoolEvent struct {
	ConnectionID int64 // 0 for events of the pool itself
	Reason       string
	ServiceID    *bson.ObjectID
	Err          string

	InterruptInUseConnections *bool // nil if the event lacks the field
}

// SDAMEvent holds the fields of SDAM events.
type SDAMEvent struct {
	Awaited  *bool // heartbeats
	Previous *TopologyState
	New      *TopologyState
	Err      string
}

// TopologyState is a server or topology description as far as the format uses
// it.
type TopologyState struct {
	Type    string        `json:"type"`
	Servers []ServerState `json:"servers,omitempty"`
}

// ServerState describes a server of a topology description.
type ServerState struct {
	Address string `json:"address"`
	Type    string `json:"type"`
}
