// Package blackpipe is a MongoDB server for tests of applications. It speaks the wire
// protocol on a real socket, so that the driver is tested too, and at the precise moment
// that a test says it replies, hangs up, stalls, or sends half a message. It stores nothing.
//
// A test takes messages one by one (Server.Next) or writes them down (Script). The server
// answers hello and endSessions by itself. All functions and methods may be called
// concurrently.
package blackpipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/wire"
	"github.com/unified-test-runner/utr/internal/relay"
)

// The topologies that a server can present itself as.
const (
	Single       = "single"
	ReplicaSet   = "replicaset" // the primary, alone
	Sharded      = "sharded"    // a mongos
	LoadBalanced = "load-balanced"
)

var topologies = []string{Single, ReplicaSet, Sharded, LoadBalanced}

// Options are how a server presents itself. The zero value is a standalone of MongoDB 8.0
// on a free port of the loopback interface.
type Options struct {
	// Topology is one of the topologies; "" is Single. With Single, drivers do not retry.
	Topology string
	// MaxWireVersion is the one that hello reports; 0 is 25, which is MongoDB 8.0.
	MaxWireVersion int32
	// Hello reports whether hello is left to the test.
	Hello bool
	// Listener accepts the connections, and is closed with the server.
	Listener net.Listener
}

// Server is a listening server.
type Server struct {
	options  Options
	messages chan *Message
	running  sync.WaitGroup
	open     context.Context // until the server is closed
	shut     context.CancelFunc
}

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("the server is closed")

// Listen starts a server. Close ends it.
func Listen(o Options) (*Server, error) {
	if o.Topology == "" {
		o.Topology = Single
	}
	if !slices.Contains(topologies, o.Topology) {
		return nil, fmt.Errorf("topology %q is not one of %s", o.Topology, strings.Join(topologies, ", "))
	}
	if o.MaxWireVersion == 0 {
		o.MaxWireVersion = 25
	}
	if o.Listener == nil {
		var err error
		if o.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	s := &Server{options: o, messages: make(chan *Message)}
	s.open, s.shut = context.WithCancel(context.Background())
	s.running.Go(func() { relay.Accept(o.Listener, func(c net.Conn) { s.running.Go(func() { s.serve(c) }) }) })
	return s, nil
}

// URI is the connection string of the server.
func (s *Server) URI() string {
	options := map[string]string{Single: "?directConnection=true", ReplicaSet: "?replicaSet=" + setName, LoadBalanced: "?loadBalanced=true"}
	return "mongodb://" + s.options.Listener.Addr().String() + "/" + options[s.options.Topology]
}

const setName = "blackpipe"

// Close closes the listener and all connections, and waits until they are gone.
func (s *Server) Close() error {
	s.shut()
	err := s.options.Listener.Close()
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) { // by an earlier call
		return nil
	}
	return err
}

// Next waits for the next message that the server does not answer by itself. Messages of
// several connections come in the order in which they arrived.
func (s *Server) Next(ctx context.Context) (*Message, error) {
	select {
	case m := <-s.messages:
		return m, nil
	case <-s.open.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// serve reads messages until the connection ends, or sends what is not a command.
func (s *Server) serve(c net.Conn) {
	stop := context.AfterFunc(s.open, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close()
	}()
	for {
		h, body, err := wire.ReadMessage(c)
		if err != nil {
			return
		}
		m := &Message{conn: c, id: h.RequestID, opcode: h.OpCode}
		if h.OpCode == wire.OpQuery {
			_, m.Command, err = wire.ParseQuery(body)
		} else {
			var of wire.Msg
			of, err = wire.ParseMsg(h, body)
			m.Command, m.Unacknowledged = of.Single(), of.Flags&wire.MoreToCome != 0
		}
		if first, e := m.Command.IndexErr(0); err != nil || e != nil {
			return
		} else {
			m.Name = first.Key()
		}
		switch greets := slices.Contains([]string{"hello", "ismaster"}, strings.ToLower(m.Name)); {
		case greets && !s.options.Hello:
			_ = m.Reply(s.Hello())
		case m.Name == "endSessions":
			_ = m.Reply(nil)
		default:
			select {
			case s.messages <- m:
			case <-s.open.Done():
				return
			}
		}
	}
}

// Hello is the server's own reply to hello.
func (s *Server) Hello() bson.D {
	address := s.options.Listener.Addr().String()
	out := map[string]bson.D{
		ReplicaSet:   {{Key: "setName", Value: setName}, {Key: "setVersion", Value: 1}, {Key: "hosts", Value: bson.A{address}}, {Key: "me", Value: address}, {Key: "primary", Value: address}},
		Sharded:      {{Key: "msg", Value: "isdbgrid"}},
		LoadBalanced: {{Key: "msg", Value: "isdbgrid"}, {Key: "serviceId", Value: bson.ObjectID{1}}},
	}[s.options.Topology]
	return append(out, bson.D{
		{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
		{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: s.options.MaxWireVersion}, {Key: "readOnly", Value: false},
	}...)
}
