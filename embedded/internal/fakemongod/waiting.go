package main

import (
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/wire"
)

// waiting are the commands of a member that waits for its configuration. For package server it is a standalone.
type waiting struct {
	backend
	initiate func(config bson.Raw) error
}

// Rows returns the commands. Those on data and users fail.
func (w waiting) Rows() []commands.Row {
	rows := w.backend.Rows()
	for i, r := range rows {
		switch {
		case r.Write:
			rows[i].Parse = refuse(fault.NotWritablePrimary, "not primary")
		case !r.OnSecondary:
			rows[i].Parse = refuse(fault.NotPrimaryOrSecondary, "node is not in primary or recovering state")
		}
	}
	for _, name := range []string{"createUser", "updateUser", "dropUser", "createRole", "dropRole"} {
		rows = append(rows, commands.Row{Name: name, LocalhostException: true,
			Parse: refuse(fault.NotWritablePrimary, "not primary")})
	}
	for _, name := range []string{"replSetGetStatus", "replSetGetConfig", "replSetStepDown", "replSetFreeze"} {
		rows = append(rows, commands.Row{Name: name, AdminOnly: true, LocalhostException: true,
			Parse: refuse(fault.NotYetInitialized, "no replset config has been received")})
	}
	hello := commands.Row{Name: "hello", BeforeAuth: true, Since: "4.4", API: "1", Parse: respond(w.hello)}
	isMaster := commands.Row{Name: "isMaster", Aliases: []string{"ismaster"}, BeforeAuth: true, Parse: respond(w.hello)}
	return append(rows, hello, isMaster, row("replSetInitiate", w.replSetInitiate))
}

func refuse(code int32, text string) func(*commands.Request) (func() (commands.Response, error), error) {
	return respond(func(*commands.Request) (bson.D, error) { return nil, fault.Errorf(code, "%s", text) })
}

func (w waiting) hello(req *commands.Request) (bson.D, error) {
	writable := "ismaster"
	if req.Row.Name == "hello" {
		writable = "isWritablePrimary"
	}
	return value.Doc(writable, false, "secondary", false, "info", "Does not have a valid replica set config",
		"isreplicaset", true, "maxBsonObjectSize", int32(wire.MaxDocument), "maxMessageSizeBytes", int32(wire.MaxMessage),
		"maxWriteBatchSize", int32(100000), "localTime", bson.NewDateTimeFromTime(time.Now()),
		"logicalSessionTimeoutMinutes", int32(30), "minWireVersion", int32(0), "maxWireVersion", int32(req.Server.Wire),
		"readOnly", false), nil
}

func (w waiting) replSetInitiate(req *commands.Request) (bson.D, error) {
	config, _ := req.Body.Index(0).Value().DocumentOK()
	return nil, w.initiate(config)
}

// lobby has the clients of a waiting member. When the member has joined a host, they are disconnected: idle ones at
// once, the others after their replies.
type lobby struct {
	mu     sync.Mutex
	guests []*guest
	closed bool
}

type guest struct {
	net.Conn
	of   *lobby
	busy bool // has sent a message without a reply; guarded by of.mu
}

func (l *lobby) enter(nc net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &guest{Conn: nc, of: l}
	if l.guests = append(l.guests, g); l.closed {
		_ = nc.Close()
	}
	return g
}

func (l *lobby) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, g := range l.guests {
		if !g.busy {
			_ = g.Conn.Close()
		}
	}
}

func (g *guest) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.busy = g.busy || n > 0
	return n, err
}

func (g *guest) Write(p []byte) (int, error) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	n, err := g.Conn.Write(p)
	if g.busy = false; g.of.closed {
		_ = g.Conn.Close()
	}
	return n, err
}
