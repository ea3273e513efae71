package process

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/result"
)

// eventFields has the fields of result.Event, with the names of the protocol. What has another form in the protocol is
// in event.
type eventFields struct {
	Sequence int64            `json:"sequence"`
	Time     time.Time        `json:"-"`
	Type     result.EventType `json:"type"`
	Address  string           `json:"address,omitempty"`

	CommandName        string          `json:"commandName,omitempty"`
	DatabaseName       string          `json:"databaseName,omitempty"`
	RequestID          int64           `json:"requestId,omitempty"`
	OperationID        int64           `json:"operationId,omitempty"`
	DriverConnectionID string          `json:"driverConnectionId,omitempty"`
	ServerConnectionID *int64          `json:"serverConnectionId,omitempty"`
	ServiceID          *bson.ObjectID  `json:"serviceId,omitempty"`
	Redacted           bool            `json:"redacted,omitempty"`
	Duration           result.Duration `json:"-"`
	Body               result.Document `json:"-"`
	Failure            *result.Error   `json:"-"`

	ConnectionID              int64  `json:"connectionId,omitempty"`
	Reason                    string `json:"reason,omitempty"`
	InterruptInUseConnections *bool  `json:"interruptInUseConnections,omitempty"`
	Err                       string `json:"error,omitempty"`

	Awaited  *bool                 `json:"awaited,omitempty"`
	Previous *result.TopologyState `json:"previousDescription,omitempty"`
	New      *result.TopologyState `json:"newDescription,omitempty"`
}

// event is the JSON form of result.Event. Its type determines which fields it has.
type event struct {
	eventFields
	Time       float64  `json:"time,omitempty"` // in milliseconds since 1970, 0 if the adapter does not report it
	Command    document `json:"command,omitempty"`
	Reply      document `json:"reply,omitempty"`
	Failure    *failure `json:"failure,omitempty"`
	DurationMS float64  `json:"durationMS,omitempty"`
}

func eventOf(e result.Event) event {
	out := event{eventFields: eventFields(e), Failure: failureOf(e.Failure),
		DurationMS: float64(e.Duration) / float64(time.Millisecond)}
	*out.body() = document(e.Body)
	if !e.Time.IsZero() {
		out.Time = float64(e.Time.UnixMicro()) / 1000
	}
	return out
}

func (e *event) body() *document {
	if e.Type == result.CommandStarted {
		return &e.Command
	}
	return &e.Reply
}

func (e event) event() (result.Event, error) {
	out := result.Event(e.eventFields)
	out.Body, out.Failure = result.Document(*e.body()), e.Failure.error()
	out.Duration = result.Duration(e.DurationMS * float64(time.Millisecond))
	if e.Time != 0 {
		out.Time = time.UnixMicro(int64(e.Time * 1000))
	}
	if e.Type.Monitor() == "" {
		return out, fmt.Errorf("event %d: unknown type %q%s", e.Sequence, e.Type, suggest.Hint(string(e.Type), eventTypes()))
	}
	return out, nil
}

func eventTypes() (names []string) {
	for _, m := range []result.Monitor{result.MonitorCommand, result.MonitorCMAP, result.MonitorSDAM} {
		for _, t := range result.EventTypes(m) {
			names = append(names, string(t))
		}
	}
	return names
}

// logMessage is the JSON form of result.LogMessage.
type logMessage struct {
	Sequence        int64    `json:"sequence"`
	Time            float64  `json:"time,omitempty"`
	Level           string   `json:"level"`
	Component       string   `json:"component"`
	Data            document `json:"data"`
	FailureRedacted *bool    `json:"failureRedacted,omitempty"`
}

func logMessageOf(m result.LogMessage) logMessage {
	return logMessage{m.Sequence, float64(m.Time.UnixMicro()) / 1000, m.Level, m.Component, document(m.Data),
		m.FailureRedacted}
}

func (m logMessage) message() result.LogMessage {
	return result.LogMessage{Sequence: m.Sequence, Time: time.UnixMicro(int64(m.Time * 1000)), Level: m.Level,
		Component: m.Component, Data: bson.Raw(m.Data), FailureRedacted: m.FailureRedacted}
}

// span is the JSON form of result.Span.
type span struct {
	ID         string   `json:"id"`
	Parent     string   `json:"parent,omitempty"`
	Name       string   `json:"name"`
	Attributes document `json:"attributes"`
}

func spanOf(s result.Span) span { return span{s.ID, s.Parent, s.Name, document(s.Attributes)} }

func (s span) span() result.Span {
	return result.Span{ID: s.ID, Parent: s.Parent, Name: s.Name, Attributes: bson.Raw(s.Attributes)}
}

// failure is the JSON form of result.Error, an error of the driver under test.
type failure struct {
	Message            string            `json:"message"`
	Client             bool              `json:"client,omitempty"` // not from a server response
	Timeout            bool              `json:"timeout,omitempty"`
	Kind               string            `json:"kind,omitempty"`
	Code               int32             `json:"code,omitempty"`
	CodeName           string            `json:"codeName,omitempty"`
	Labels             []string          `json:"labels,omitempty"`
	Response           document          `json:"response,omitempty"`
	WriteErrors        map[uint]document `json:"writeErrors,omitempty"` // by index
	WriteConcernErrors []document        `json:"writeConcernErrors,omitempty"`
	Partial            value             `json:"partial,omitzero"`
	Server             string            `json:"server,omitempty"`
	Unsupported        string            `json:"unsupported,omitempty"`
}

func failureOf(e *result.Error) *failure {
	if e == nil {
		return nil
	}
	f := &failure{Message: e.Message, Client: e.Client, Timeout: e.Timeout, Kind: e.Kind, Code: e.Code,
		CodeName: e.CodeName, Labels: e.Labels,
		Response: document(e.Response), Partial: value(e.Partial.RawValue), Server: e.Server, Unsupported: e.Unsupported,
		WriteErrors:        map[uint]document{},
		WriteConcernErrors: mapped(e.WriteConcernErrors, func(d result.Document) document { return document(d) })}
	for i, d := range e.WriteErrors {
		f.WriteErrors[uint(i)] = document(d)
	}
	return f
}

// UnmarshalJSON rejects unknown members, and an error without a message.
func (f *failure) UnmarshalJSON(data []byte) error {
	type plain failure
	if err := decode(data, (*plain)(f)); err != nil {
		return err
	}
	if f.Message == "" && f.Unsupported == "" {
		return errors.New("an error without a message")
	}
	return nil
}

func (f *failure) error() *result.Error {
	if f == nil {
		return nil
	}
	e := &result.Error{Message: f.Message, Client: f.Client, Timeout: f.Timeout, Kind: f.Kind, Code: f.Code,
		CodeName: f.CodeName, Labels: f.Labels,
		Response: result.Document(f.Response), Partial: result.Value{RawValue: bson.RawValue(f.Partial)}, Server: f.Server,
		Unsupported:        f.Unsupported,
		WriteErrors:        map[int]result.Document{},
		WriteConcernErrors: mapped(f.WriteConcernErrors, func(d document) result.Document { return result.Document(d) })}
	for i, d := range f.WriteErrors {
		e.WriteErrors[int(i)] = result.Document(d)
	}
	return e
}
