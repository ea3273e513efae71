package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Server is a mongod or a mongos. Its methods may be called concurrently.
type Server struct {
	cluster    *Cluster
	address    string
	member     Member
	failPoints *failpoint.Registry
	params     *parameters
	ingress    *ingress
	serviceID  bson.ObjectID
	processID  bson.ObjectID
	started    time.Time
	process    Process

	lastConn      atomic.Int64
	lastOperation atomic.Int32
	stopped       atomic.Bool // no connection replies

	// Guarded by cluster.mu.
	version int64         // the counter of topologyVersion
	change  chan struct{} // closed when version grows
	passed  *view         // a state that it passed through while stepping down; nil before
	isDown  bool
	release func()    // frees the port of a killed server; nil if it is not reserved
	frozen  time.Time // not eligible before

	mu        sync.Mutex
	conns     map[*conn]struct{}
	profiling map[string]profiling // by database
}

// ErrParameter is wrapped by errors about unknown or invalid parameters.
var ErrParameter = errors.New("server parameter")

// Address returns the address of the server, such as "127.0.0.1:port".
func (s *Server) Address() string { return s.address }

// Serve serves a connection in the background and finally closes it. balanced is set if the client connected through a
// load balancer. If the server is down, Serve only closes the connection.
func (s *Server) Serve(nc net.Conn, balanced bool) {
	k := &conn{server: s, raw: nc, socket: nc, balanced: balanced, id: s.lastConn.Add(1)}
	k.ctx, k.cancel = context.WithCancel(s.cluster.ctx)
	k.client, k.clientLeft = context.WithCancel(k.ctx)
	if s.process.TLS != nil {
		k.socket = tls.Server(nc, s.process.TLS)
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if s.isDown || s.cluster.ctx.Err() != nil {
		k.close()
		return
	}
	s.mu.Lock()
	s.conns[k] = struct{}{}
	s.mu.Unlock()
	s.cluster.work.Go(k.run)
}

func (s *Server) forget(k *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, k)
}

// stop closes the listener and all connections.
func (s *Server) stop() (err error) {
	s.cluster.mu.Lock()
	was := s.isDown
	s.isDown = true
	s.cluster.mu.Unlock()
	if !was {
		s.logf("stopped")
		if s.process.Listener != nil {
			err = s.process.Listener.Close()
		}
	}
	s.stopped.Store(true) // before any connection is closed: then no other client gets a reply
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.conns { // a connection that is canceled closes itself
		k.cancel()
	}
	for k := range s.conns {
		k.close()
	}
	return err
}

// changed increments topologyVersion and wakes all waiters. Called with cluster.mu held.
func (s *Server) changed() {
	s.version++
	close(s.change)
	s.change = make(chan struct{})
}

// view is a snapshot of a server's state.
type view struct {
	commands.Identity
	primary   string // address; "" without a primary
	set       *SetConfig
	processID bson.ObjectID
	version   int64
	change    <-chan struct{}
	stepping  bool // down: no longer primary and not yet secondary
}

func (s *Server) view() view {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.state()
}

// viewAfter returns the first state after a version that the client has seen: the current one, unless the server passed
// through another.
func (s *Server) viewAfter(version int64) view {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if s.passed != nil && s.passed.version == version+1 {
		return *s.passed
	}
	return s.state()
}

// state returns the current view. Called with cluster.mu held.
func (s *Server) state() view {
	c := s.cluster
	v := view{
		Identity:  commands.Identity{Address: s.address, Version: c.Version},
		processID: s.processID,
		version:   s.version,
		change:    s.change,
		set:       c.set,
	}
	if c.primary != nil {
		v.primary = c.primary.address
	}
	switch {
	case c.Topology.HasMongos():
		v.Role = commands.Mongos
	case c.Topology == ReplicaSet && c.primary == s:
		v.Role = commands.Primary
	case c.Topology == ReplicaSet:
		v.Role = commands.Secondary
	}
	if v.isMember() {
		v.DataBearing = c.set.dataBearing()
	}
	if v.Role != commands.Standalone {
		v.Term = max(c.term, 1)
		v.ElectionID = electionID(v.Term)
	}
	return v
}

func (v view) isMongos() bool { return v.Role == commands.Mongos }

// isMember reports whether the server belongs to a replica set.
func (v view) isMember() bool { return v.Role == commands.Primary || v.Role == commands.Secondary }

func (s *Server) now() bson.Timestamp { return s.cluster.Backend.OperationTime() }

func (v view) topologyVersion() bson.D {
	return value.Doc("processId", v.processID, "counter", v.version)
}
