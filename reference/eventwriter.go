package reference

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
)

// write writes an event and its log message (Command Logging and Monitoring, "Log Messages"). more returns additional
// fields of the message.
func (a *attempt) write(e result.Event, message string, redacted *bool, more func() bson.D) {
	if a.cmd.hidden {
		return
	}
	e.CommandName, e.DatabaseName, e.RequestID, e.OperationID = a.cmd.name(), a.cmd.db, a.id, a.operation
	e.DriverConnectionID, e.ServerConnectionID, e.ServiceID = a.conn.ID(), a.conn.ServerConnectionID(), a.trace.service
	e.Address, e.Redacted = a.srv.address, a.secret
	a.log.Add(e)

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
func (a *attempt) redact(doc bson.Raw) result.Document {
	if a.secret {
		return nil
	}
	return result.Document(doc)
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
	a.startSpan(body)
	a.write(result.Event{Type: result.CommandStarted, Body: a.redact(body)}, "Command started", nil,
		func() bson.D { return document("command", a.json(body)) })
}

func (a *attempt) succeeded(doc bson.Raw) {
	a.endSpan(doc, nil)
	duration := time.Since(a.begun)
	e := result.Event{Type: result.CommandSucceeded, Duration: result.Duration(duration), Body: a.redact(doc)}
	a.write(e, "Command succeeded", nil,
		func() bson.D { return document("durationMS", milliseconds(duration), "reply", a.json(doc)) })
}

func (a *attempt) failed(err *result.Error) {
	a.endSpan(nil, err)
	duration := time.Since(a.begun)
	shown := *err
	shown.Response = a.redact(bson.Raw(shown.Response))
	// Server errors of sensitive commands are redacted; client-side errors are not ("Security").
	redacted, failure := a.secret && !err.Client, err.Error()
	if redacted {
		failure = ""
	}
	e := result.Event{Type: result.CommandFailed, Duration: result.Duration(duration), Failure: &shown}
	a.write(e, "Command failed", &redacted,
		func() bson.D { return document("durationMS", milliseconds(duration), "failure", failure) })
}
