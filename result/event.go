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

// Monitor is the source of events: a value of eventType in expectedEventsForClient.
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

// Event is an event of a client. Sequence numbers start at 1 for each client and count events of all types in order.
// The type determines which fields are set.
type Event struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time,omitzero"`
	Type     EventType `json:"type"`
	Address  string    `json:"address,omitempty"` // host:port of the server; "" for topology events

	// Command events. ServiceID is also set for pool events.
	CommandName        string         `json:"command,omitempty"`
	DatabaseName       string         `json:"database,omitempty"`
	RequestID          int64          `json:"requestId,omitempty"`
	OperationID        int64          `json:"operationId,omitempty"`
	DriverConnectionID string         `json:"connection,omitempty"`         // as named by the driver
	ServerConnectionID *int64         `json:"serverConnectionId,omitempty"` // nil if the server does not send it
	ServiceID          *bson.ObjectID `json:"serviceId,omitempty"`
	// a sensitive command (Command Logging and Monitoring, "Security")
	Redacted bool     `json:"redacted,omitempty"`
	Duration Duration `json:"durationMS,omitzero"`
	// started: the command; succeeded: the reply; empty if redacted
	Body    Document `json:"body,omitempty"`
	Failure *Error   `json:"failure,omitempty"` // failed

	// Pool events, and Err also of heartbeats.
	ConnectionID              int64  `json:"connectionId,omitempty"` // 0 for events of the pool itself
	Reason                    string `json:"reason,omitempty"`
	InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty"` // nil if the event lacks the field
	Err                       string `json:"error,omitempty"`

	// SDAM events.
	Awaited  *bool          `json:"awaited,omitempty"` // heartbeats
	Previous *TopologyState `json:"previousDescription,omitempty"`
	New      *TopologyState `json:"newDescription,omitempty"`
}

// TopologyState is a server or topology description as far as the format uses it.
type TopologyState struct {
	Type    string        `json:"type"`
	Servers []ServerState `json:"servers,omitempty"`
}

// ServerState describes a server of a topology description.
type ServerState struct {
	Address string `json:"address"`
	Type    string `json:"type"`
}
