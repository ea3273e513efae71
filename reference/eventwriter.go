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

func (w eventWriter) write(t result.EventType, fill func(*result.CommandEvent)) {
	if w.cmd.hidden {
		return
	}
	e := &result.CommandEvent{
		CommandName: w.cmd.name, DatabaseName: w.cmd.db, RequestID: w.id, OperationID: w.operation,
		ConnectionID: w.conn.ID(), ServerConnectionID: w.conn.ServerConnectionID(), ServiceID: w.service,
		Redacted: w.secret,
	}
	fill(e)
	w.c.log.Add(result.Event{Type: t, Address: w.address, Command: e})
}

func (w eventWriter) started(body bson.Raw) {
	w.write(result.CommandStarted, func(e *result.CommandEvent) {
		if !w.secret {
			e.Command = body
		}
	})
	w.say("Command started", nil, func() bson.D { return bson.D{w.json("command", body)} })
}

func (w eventWriter) succeeded(doc bson.Raw) {
	lasted := time.Since(w.begun)
	w.write(result.CommandSucceeded, func(e *result.CommandEvent) {
		e.Duration = lasted
		if !w.secret {
			e.Reply = doc
		}
	})
	w.say("Command succeeded", nil, func() bson.D { return bson.D{w.lasted(lasted), w.json("reply", doc)} })
}

func (w eventWriter) failed(err *result.Error, doc bson.Raw) {
	lasted := time.Since(w.begun)
	w.write(result.CommandFailed, func(e *result.CommandEvent) {
		e.Duration = lasted
		shown := *err
		if w.secret {
			shown.Response = nil
		}
		e.Failure = &shown
	})
	// What the server says of a sensitive command is as sensitive; what the
	// engine itself says is not ("Security").
	redacted, failure := w.secret && !err.Client, err.Error()
	if redacted {
		failure = ""
	}
	w.say("Command failed", &redacted, func() bson.D {
		return bson.D{w.lasted(lasted), {Key: "failure", Value: failure}}
	})
}
