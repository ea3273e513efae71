// Package blackpipe is a scripted MongoDB server for tests of applications. It uses the wire protocol on a real socket,
// so that the test includes the driver. The test decides when the server replies, closes the connection, stalls, or
// sends half a message. The server stores no data.
//
// ListenT starts a server for a Go test. The test receives messages with Server.Next, or expects them with a Script.
// The server answers hello and endSessions automatically. All functions and methods may be called concurrently.
package blackpipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/net/relay"
	"github.com/unified-test-runner/utr/internal/wire"
)

// The topologies of a server.
const (
	Single       = "single"
	ReplicaSet   = "replicaset" // of one member
	Sharded      = "sharded"    // a mongos
	LoadBalanced = "load-balanced"
)

var topologies = []string{Single, ReplicaSet, Sharded, LoadBalanced}

// Options configure a server. The zero value is a standalone of MongoDB 8.0 on a free port of the loopback interface.
type Options struct {
	// Topology of the server; "" means Single. Drivers do not retry with Single.
	Topology string
	// MaxWireVersion in hello; 0 means 25, MongoDB 8.0.
	MaxWireVersion int32
	// Hello passes hello to the test, instead of answering it automatically.
	Hello bool
	// Listener accepts connections. Close closes it.
	Listener net.Listener
}

// Server is a listening server.
type Server struct {
	options  Options
	messages chan *Message
	running  sync.WaitGroup
	open     context.Context // ends when the server is closed
	shut     context.CancelFunc
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the server is closed")

// Listen starts a server. The caller must Close it.
func Listen(o Options) (*Server, error) {
	o.Topology, o.MaxWireVersion = cmp.Or(o.Topology, Single), cmp.Or(o.MaxWireVersion, 25)
	if !slices.Contains(topologies, o.Topology) {
		return nil, fmt.Errorf("topology %q is not one of %s", o.Topology, strings.Join(topologies, ", "))
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

// URI returns the connection string of the server.
func (s *Server) URI() string {
	options := map[string]string{Single: "?directConnection=true", ReplicaSet: "?replicaSet=" + setName,
		LoadBalanced: "?loadBalanced=true"}
	return "mongodb://" + s.options.Listener.Addr().String() + "/" + options[s.options.Topology]
}

const setName = "blackpipe"

// Close closes the listener and all connections, and waits for their goroutines. It may be called more than once.
func (s *Server) Close() error {
	s.shut()
	err := s.options.Listener.Close()
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) { // by an earlier call
		return nil
	}
	return err
}

// Next waits for the next message that the server does not answer automatically. Messages of several connections are
// returned in the order of arrival.
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

// serve reads messages until the connection ends or a message is not a command.
func (s *Server) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(s.open, func() { _ = c.Close() })()
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
			m.Command, m.Unacknowledged = of.Document(), of.Flags&wire.MoreToCome != 0
		}
		first, e := m.Command.IndexErr(0)
		if err != nil || e != nil {
			return
		}
		m.Name = first.Key()
		switch hello := strings.EqualFold(m.Name, "hello") || strings.EqualFold(m.Name, "ismaster"); {
		case hello && !s.options.Hello:
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

// Hello returns the server's reply to hello.
func (s *Server) Hello() bson.D {
	address := s.options.Listener.Addr().String()
	out := map[string]bson.D{
		ReplicaSet: {{Key: "setName", Value: setName}, {Key: "setVersion", Value: 1},
			{Key: "hosts", Value: bson.A{address}}, {Key: "me", Value: address}, {Key: "primary", Value: address}},
		Sharded:      {{Key: "msg", Value: "isdbgrid"}},
		LoadBalanced: {{Key: "msg", Value: "isdbgrid"}, {Key: "serviceId", Value: bson.ObjectID{1}}},
	}[s.options.Topology]
	return append(out, bson.D{
		{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
		{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000},
		{Key: "maxWriteBatchSize", Value: 100_000},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: s.options.MaxWireVersion},
		{Key: "readOnly", Value: false},
	}...)
}
