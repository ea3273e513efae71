package process

import (
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/internal/exchange"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// event is result.Event in a message. Which fields it has depends on its type.
type event struct {
	Sequence int64            `json:"sequence"`
	Type     result.EventType `json:"type"`
	// Time is in milliseconds since 1970, 0 if the adapter does not say.
	Time    float64 `json:"time,omitempty" value:"-"`
	Address string  `json:"address,omitempty"`

	CommandName        string   `json:"commandName,omitempty" value:"Command.CommandName"`
	DatabaseName       string   `json:"databaseName,omitempty" value:"Command.DatabaseName"`
	RequestID          int64    `json:"requestId,omitempty" value:"Command.RequestID"`
	OperationID        int64    `json:"operationId,omitempty" value:"Command.OperationID"`
	DriverConnectionID string   `json:"driverConnectionId,omitempty" value:"Command.ConnectionID"`
	ServerConnectionID *int64   `json:"serverConnectionId,omitempty" value:"Command.ServerConnectionID"`
	Command            document `json:"command,omitempty" value:"Command.Command"`
	Reply              document `json:"reply,omitempty" value:"Command.Reply"`
	Failure            *failure `json:"failure,omitempty" value:"Command.Failure"`
	DurationMS         float64  `json:"durationMS,omitempty" value:"-"`
	Redacted           bool     `json:"redacted,omitempty" value:"Command.Redacted"`

	ConnectionID              int64  `json:"connectionId,omitempty" value:"Pool.ConnectionID"`
	Reason                    string `json:"reason,omitempty" value:"Pool.Reason"`
	InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty" value:"Pool.InterruptInUseConnections"`

	ServiceID *bson.ObjectID `json:"serviceId,omitempty" value:"Command.ServiceID|Pool.ServiceID"`

	Awaited             *bool                 `json:"awaited,omitempty" value:"SDAM.Awaited"`
	PreviousDescription *result.TopologyState `json:"previousDescription,omitempty" value:"SDAM.Previous"`
	NewDescription      *result.TopologyState `json:"newDescription,omitempty" value:"SDAM.New"`

	Error string `json:"error,omitempty" value:"Pool.Err|SDAM.Err"`
}

func milliseconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

func instant(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }

// Written sees to times.
func (e *event) Written(from any) {
	happened := from.(*result.Event)
	if !happened.Time.IsZero() {
		e.Time = milliseconds(happened.Time)
	}
	if c := happened.Command; c != nil {
		e.DurationMS = float64(c.Duration) / float64(time.Millisecond)
	}
}

func (e event) event() (out result.Event, err error) {
	switch e.Type.Monitor() {
	case result.MonitorCommand:
		if _, err := e.Failure.error(); err != nil {
			return out, fmt.Errorf("event %d: failure: %w", e.Sequence, err)
		}
		out.Command = &result.CommandEvent{Duration: time.Duration(e.DurationMS * float64(time.Millisecond))}
	case result.MonitorCMAP:
		out.Pool = &result.PoolEvent{}
	case result.MonitorSDAM:
		out.SDAM = &result.SDAMEvent{}
	default:
		return out, fmt.Errorf("event %d: unknown type %q", e.Sequence, e.Type)
	}
	if e.Time != 0 {
		out.Time = instant(e.Time)
	}
	exchange.Read(&e, &out)
	return out, nil
}

// logMessage is result.LogMessage in a message.
type logMessage struct {
	Sequence        int64    `json:"sequence"`
	Time            float64  `json:"time,omitempty" value:"-"`
	Level           string   `json:"level"`
	Component       string   `json:"component"`
	Data            document `json:"data"`
	FailureRedacted *bool    `json:"failureRedacted,omitempty"`
}

// Written and Reading see to the time.
func (m *logMessage) Written(from any) { m.Time = milliseconds(from.(*result.LogMessage).Time) }
func (m *logMessage) Reading(into any) { into.(*result.LogMessage).Time = instant(m.Time) }
