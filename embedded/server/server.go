package server

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// Server is a mongod or a mongos. Its methods may be called concurrently.
type Server struct {
	cluster    *Cluster
	failPoints *failpoint.Registry
	params     *parameters
	ingress    *ingress
	serviceID  bson.ObjectID
	started    time.Time
	process    Process

	lastConn atomic.Int64
	// retired: each connection ends with the message that it is answering.
	retired atomic.Bool

	// Guarded by cluster.mu.
	address   string
	processID bson.ObjectID
	version   int64         // the counter of topologyVersion
	change    chan struct{} // closed when version grows
	isDown    bool
	release   func() // lets go of the port that a killed server held; nil for others
	member    Member
	frozen    time.Time // it is not elected before

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// ErrParameter is wrapped by the errors of parameters that a server does not
// take.
var ErrParameter = errors.New("server parameter")

// Address is where the server listens, as "127.0.0.1:port".
func (s *Server) Address() string { return s.address }

// Serve serves a connection in the background, and closes it in the end. It is
// balanced if it came through a load balancer, and refused if the server is down.
func (s *Server) Serve(nc net.Conn, balanced bool) {
	k := newConn(s, nc, balanced)
	s.cluster.mu.Lock()
	refused := s.isDown || s.cluster.closed
	if !refused {
		s.mu.Lock()
		s.conns[k] = struct{}{}
		s.mu.Unlock()
		s.cluster.work.Go(k.run)
	}
	s.cluster.mu.Unlock()
	if refused {
		k.close()
	}
}

func (s *Server) forget(k *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, k)
}

// stop closes the port and breaks the connections.
func (s *Server) stop() error {
	s.cluster.mu.Lock()
	was := s.isDown
	s.isDown = true
	s.cluster.mu.Unlock()
	defer s.hangUp()
	if was {
		return nil
	}
	s.logf("ends")
	if s.process.Listener == nil {
		return nil
	}
	return s.process.Listener.Close()
}

// hangUp breaks all connections at once: when the first client hears of it, no
// other is answered any more.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.conns {
		k.cancel()
	}
	for k := range s.conns {
		k.close()
	}
}

// Retire breaks the connections whose client waits for no answer, and the others
// as soon as it has been sent. Those who wait for a change of the topology hear of
// it.
func (s *Server) Retire() {
	s.retired.Store(true)
	s.mu.Lock()
	for k := range s.conns {
		if k.waiting.Load() == 0 {
			k.close()
		}
	}
	s.mu.Unlock()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.changed()
}

// changed makes topologyVersion grow and wakes who waits for that. Called with
// cluster.mu held.
func (s *Server) changed() {
	s.version++
	close(s.change)
	s.change = make(chan struct{})
}

// view is what a server knows of the deployment at one moment.
type view struct {
	command.Server
	setName   string // "" of a standalone
	primary   string // address, "" if there is none
	layout    *layout
	member    Member
	processID bson.ObjectID
	version   int64
	change    <-chan struct{}
}

// view takes it.
func (s *Server) view() view {
	c := s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	v := view{
		Server: command.Server{
			Address: s.address,
			Wire:    c.Profile.Wire,
			Version: c.Profile.Version,
		},
		processID: s.processID,
		version:   s.version,
		change:    s.change,
		layout:    c.layout,
		member:    s.member,
	}
	if c.primary != nil {
		v.primary = c.primary.address
	}
	switch {
	case c.Kind == Single:
		v.Role = command.Standalone
		return v
	case c.Kind == Uninitiated:
		v.Role = command.Uninitiated
		return v
	case c.Kind == Sharded:
		v.Role = command.Mongos
	case c.primary == s:
		v.Role = command.Primary
	default:
		v.Role = command.Secondary
	}
	v.setName = c.SetName
	v.Term = max(c.term, 1)
	v.ElectionID = electionID(v.Term)
	return v
}

// hasClock reports whether replies have times: those of a standalone do not.
func (v view) hasClock() bool { return v.Role != command.Standalone && v.Role != command.Uninitiated }

// isMember reports whether the server belongs to a replica set.
func (v view) isMember() bool { return v.Role == command.Primary || v.Role == command.Secondary }

// connections is how many there are.
func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
