package reference

import (
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// write writes an event and its log message (Command Logging and Monitoring, "Log Messages"). more returns additional
// fields of the message.
func (a *attempt) write(t result.EventType, e result.CommandEvent, message string, redacted *bool, more func() bson.D) {
	if a.cmd.hidden {
		return
	}
	e.CommandName, e.DatabaseName, e.RequestID, e.OperationID = a.cmd.name(), a.cmd.db, a.id, a.operation
	e.ConnectionID, e.ServerConnectionID, e.ServiceID = a.conn.ID(), a.conn.ServerConnectionID(), a.trace.service
	e.Redacted = a.secret
	a.log.Add(result.Event{Type: t, Address: a.srv.address, Command: &e})

	if !a.messages.observes(componentCommand, "debug") {
		return
	}
	data := document("message", message, "commandName", e.CommandName, "databaseName", e.DatabaseName,
		"requestId", a.id, "operationId", a.operation, "driverConnectionId", a.conn.DriverConnectionID())
	data = append(data, serverFields(a.srv.address)...)
	if e.ServerConnectionID != nil {
		data = append(data, bson.E{Key: "serverConnectionId", Value: *e.ServerConnectionID})
	}
	if e.ServiceID != nil {
		data = append(data, bson.E{Key: "serviceId", Value: e.ServiceID.Hex()})
	}
	a.messages.add(componentCommand, "debug", append(data, more()...), redacted)
}

// redact returns the document for an event, nil for a sensitive command.
func (a *attempt) redact(doc bson.Raw) bson.Raw {
	if a.secret {
		return nil
	}
	return doc
}

// json formats the document for a log message, an empty one for a sensitive command.
func (a *attempt) json(doc bson.Raw) string {
	if a.secret {
		return "{}"
	}
	text, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		return doc.String()
	}
	return string(text)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (a *attempt) started(body bson.Raw) {
	a.write(result.CommandStarted, result.CommandEvent{Command: a.redact(body)}, "Command started", nil,
		func() bson.D { return document("command", a.json(body)) })
}

func (a *attempt) succeeded(doc bson.Raw) {
	duration := time.Since(a.begun)
	e := result.CommandEvent{Duration: duration, Reply: a.redact(doc)}
	a.write(result.CommandSucceeded, e, "Command succeeded", nil,
		func() bson.D { return document("durationMS", milliseconds(duration), "reply", a.json(doc)) })
}

func (a *attempt) failed(err *result.Error) {
	duration := time.Since(a.begun)
	shown := *err
	shown.Response = a.redact(shown.Response)
	// Server errors of sensitive commands are redacted; client-side errors are not ("Security").
	redacted, failure := a.secret && !err.Client, err.Error()
	if redacted {
		failure = ""
	}
	a.write(result.CommandFailed, result.CommandEvent{Duration: duration, Failure: &shown}, "Command failed", &redacted,
		func() bson.D { return document("durationMS", milliseconds(duration), "failure", failure) })
}
