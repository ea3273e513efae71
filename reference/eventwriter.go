package reference

import (
	"time"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
)

// eventWriter writes the two events, and log messages, of one attempt.
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

// tell writes an event, and the message about it (Command Logging and Monitoring,
// "Log Messages").
func (w eventWriter) tell(t result.EventType, e result.CommandEvent, message string, redacted *bool, more func() bson.D) {
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
	}, place(w.address)...)
	if e.ServerConnectionID != nil {
		data = append(data, bson.E{Key: "serverConnectionId", Value: *e.ServerConnectionID})
	}
	if w.service != nil {
		data = append(data, bson.E{Key: "serviceId", Value: w.service.Hex()})
	}
	w.c.messages.add(componentCommand, "debug", append(data, more()...), redacted)
}

// shown is a document as events have it: that of a sensitive command is left out.
func (w eventWriter) shown(doc bson.Raw) bson.Raw {
	if w.secret {
		return nil
	}
	return doc
}

// json writes a document into a message; that of a sensitive command is empty.
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
	w.tell(result.CommandStarted, result.CommandEvent{Command: w.shown(body)}, "Command started", nil,
		func() bson.D { return bson.D{w.json("command", body)} })
}

func (w eventWriter) succeeded(doc bson.Raw) {
	lasted := time.Since(w.begun)
	w.tell(result.CommandSucceeded, result.CommandEvent{Duration: lasted, Reply: w.shown(doc)}, "Command succeeded", nil,
		func() bson.D { return bson.D{milliseconds(lasted), w.json("reply", doc)} })
}

func (w eventWriter) failed(err *result.Error) {
	lasted := time.Since(w.begun)
	shown := *err
	shown.Response = w.shown(shown.Response)
	// What the server says of a sensitive command is as sensitive; what the
	// engine itself says is not ("Security").
	redacted, failure := w.secret && !err.Client, err.Error()
	if redacted {
		failure = ""
	}
	w.tell(result.CommandFailed, result.CommandEvent{Duration: lasted, Failure: &shown}, "Command failed", &redacted,
		func() bson.D { return bson.D{milliseconds(lasted), {Key: "failure", Value: failure}} })
}
