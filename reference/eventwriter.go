package reference

import (
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// eventWriter writes the command events and log messages of one attempt.
type eventWriter struct {
	c         *client
	conn      *mnet.Connection
	cmd       *command
	address   string
	id        int64
	operation int64
	secret    bool
	service   *bson.ObjectID
	begun     time.Time
}

// write writes an event and its log message (Command Logging and Monitoring, "Log Messages").
func (w eventWriter) write(t result.EventType, e result.CommandEvent, message string, redacted *bool, more func() bson.D) {
	if w.cmd.hidden {
		return
	}
	e.CommandName, e.DatabaseName, e.RequestID, e.OperationID = w.cmd.name, w.cmd.db, w.id, w.operation
	e.ConnectionID, e.ServerConnectionID, e.ServiceID = w.conn.ID(), w.conn.ServerConnectionID(), w.service
	e.Redacted = w.secret
	w.c.log.Add(result.Event{Type: t, Address: w.address, Command: &e})

	if !w.c.messages.observes(componentCommand, "debug") {
		return
	}
	data := append(bson.D{
		{Key: "message", Value: message},
		{Key: "commandName", Value: w.cmd.name},
		{Key: "databaseName", Value: w.cmd.db},
		{Key: "requestId", Value: w.id},
		{Key: "operationId", Value: w.operation},
		{Key: "driverConnectionId", Value: w.conn.DriverConnectionID()},
	}, serverFields(w.address)...)
	if e.ServerConnectionID != nil {
		data = append(data, bson.E{Key: "serverConnectionId", Value: *e.ServerConnectionID})
	}
	if w.service != nil {
		data = append(data, bson.E{Key: "serviceId", Value: w.service.Hex()})
	}
	w.c.messages.add(componentCommand, "debug", append(data, more()...), redacted)
}

// redact returns the document for an event, nil for a sensitive command.
func (w eventWriter) redact(doc bson.Raw) bson.Raw {
	if w.secret {
		return nil
	}
	return doc
}

// json formats the document for a log message, an empty one for a sensitive command.
func (w eventWriter) json(key string, doc bson.Raw) bson.E {
	text := []byte("{}")
	if !w.secret {
		var err error
		if text, err = bson.MarshalExtJSON(doc, false, false); err != nil {
			text = []byte(doc.String())
		}
	}
	return bson.E{Key: key, Value: string(text)}
}

func milliseconds(d time.Duration) bson.E {
	return bson.E{Key: "durationMS", Value: float64(d) / float64(time.Millisecond)}
}

func (w eventWriter) started(body bson.Raw) {
	w.write(result.CommandStarted, result.CommandEvent{Command: w.redact(body)}, "Command started", nil,
		func() bson.D { return bson.D{w.json("command", body)} })
}

func (w eventWriter) succeeded(doc bson.Raw) {
	duration := time.Since(w.begun)
	w.write(result.CommandSucceeded, result.CommandEvent{Duration: duration, Reply: w.redact(doc)}, "Command succeeded", nil,
		func() bson.D { return bson.D{milliseconds(duration), w.json("reply", doc)} })
}

func (w eventWriter) failed(err *result.Error) {
	duration := time.Since(w.begun)
	shown := *err
	shown.Response = w.redact(shown.Response)
	// Server errors of sensitive commands are redacted; client-side errors are not ("Security").
	redacted, failure := w.secret && !err.Client, err.Error()
	if redacted {
		failure = ""
	}
	w.write(result.CommandFailed, result.CommandEvent{Duration: duration, Failure: &shown}, "Command failed", &redacted,
		func() bson.D { return bson.D{milliseconds(duration), {Key: "failure", Value: failure}} })
}
