package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
	"github.com/unified-test-runner/utr/internal/relay"
)

// Process is how one server was started: the command line of a mongod or mongos, as
// far as it matters here. The zero value has no access control and no TLS.
type Process struct {
	// Parameters are server parameters to begin with, as setParameter takes them.
	// AnyParameter accepts those that the version does not have: getParameter
	// reports them.
	Parameters   bson.D
	AnyParameter bool
	// AccessControl requires clients to authenticate as one of Config.Users.
	// Without a user yet, createUser is allowed.
	AccessControl bool
	// TLS is what connections use, nil for none.
	TLS *tls.Config
	// Latency is how much later than others the server answers.
	Latency time.Duration
	// Arguments are the command line, for getCmdLineOpts.
	Arguments []string
	// PID is the number of the process; 0 means that of this one.
	PID int
	// Shutdown is called when a client has sent shutdown; nil refuses the
	// command.
	Shutdown func()
	// Listener is where clients come from, on the server's address; the end of the server closes it. Nil if
	// somebody else hands their connections over with Server.Serve.
	Listener net.Listener
}

// Members are the servers, in the order of their addition.
func (c *Cluster) Members() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// Listen starts servers of a kind on addresses ("127.0.0.1:0"): all of a deployment.
// Those of a replica set are configured as its members; shape, unless it is nil, changes the
// configuration of a member, and how it is started.
func (c *Cluster) Listen(p Process, shape func(*Member, *Process), addresses ...string) (err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners { // that no server has taken over
			err = errors.Join(err, l.Close())
		}
	}()
	set, processes := SetConfig{Name: c.SetName, Version: 1}, []Process{}
	for i, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		listeners = append(listeners, l)
		m, p := NewMember(i, l.Addr().String()), p
		if shape != nil {
			shape(&m, &p)
		}
		p.Listener = l
		set.Members, processes = append(set.Members, m), append(processes, p)
	}
	if c.Kind == ReplicaSet {
		if err := c.Configure(set); err != nil {
			return err
		}
	}
	for _, p := range processes {
		if _, err := c.Join(p.Listener.Addr().String(), p); err != nil {
			return err
		}
		listeners = listeners[1:]
	}
	return nil
}

// Balance starts a load balancer in front of the first servers, which hands each new
// connection to the next of them.
func (c *Cluster) Balance(address string, servers int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	next := 0
	c.work.Go(func() {
		relay.Accept(listener, func(nc net.Conn) {
			c.Members()[next%servers].Serve(nc, true)
			next++
		})
	})
	return listener, nil
}

// newServer makes a server that is not yet part of anything.
func (c *Cluster) newServer(m Member, p Process) (*Server, error) {
	params, err := newParameters(c.Profile, p)
	if err != nil {
		return nil, err
	}
	return &Server{
		cluster:    c,
		address:    m.Host,
		member:     m,
		process:    p,
		params:     params,
		ingress:    newIngress(params),
		failPoints: failpoint.NewRegistry(rand.Float64),
		serviceID:  bson.NewObjectID(),
		processID:  bson.NewObjectID(),
		started:    time.Now(),
		change:     make(chan struct{}),
		conns:      map[*conn]struct{}{},
	}, nil
}

// Configure gives a replica set its members, once. They are down until they Join. A
// majority of votes is needed for a primary, and the priorities decide who becomes it.
func (c *Cluster) Configure(set SetConfig) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range set.Members {
		s, err := c.newServer(m, Process{})
		if err != nil {
			return err
		}
		s.isDown = true
		c.members = append(c.members, s)
	}
	c.set, c.layout = set, newLayout(set)
	return nil
}

// settled is how many changes a member has counted when its set is ready.
const settled = 5

// Join brings a server up, at the address that clients see: that of a server that is
// down, or a new one; of a replica set, only that of a configured member. A server that comes again is another process: it knows no fail
// points and no parameters of before.
func (c *Cluster) Join(address string, p Process) (*Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the deployment is closed")
	}
	old, m := c.at(address), NewMember(len(c.members), address)
	switch {
	case old != nil && !old.isDown:
		return nil, fmt.Errorf("%s is there already", address)
	case old != nil:
		m = old.member
	case c.Kind == ReplicaSet:
		return nil, fmt.Errorf("%s is not a member of %s", address, c.SetName)
	}
	s, err := c.newServer(m, p)
	if err != nil {
		return nil, err
	}
	if old == nil {
		c.members = append(c.members, s)
	} else {
		c.members[slices.Index(c.members, old)] = s
	}
	switch c.Kind {
	case Single:
		c.primary, c.term = s, 1
	case ReplicaSet:
		s.version = settled
	}
	c.settle()
	if p.Listener != nil {
		c.work.Go(func() { relay.Accept(p.Listener, func(nc net.Conn) { s.Serve(nc, false) }) })
	}
	return s, nil
}

// at is the server with an address, or nil. Called with mu held.
func (c *Cluster) at(address string) *Server {
	for _, s := range c.members {
		if s.address == address {
			return s
		}
	}
	return nil
}

// Kill ends a server as a crash would: its connections break, its port refuses new
// ones, and if it was the primary of a replica set, another one is elected. A port of
// ours goes to no other process before the server is restarted or the cluster closed.
func (c *Cluster) Kill(s *Server) error {
	err := s.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.process.Listener != nil && s.release == nil && !c.closed {
		s.release = hold(s.address)
	}
	if c.primary == s {
		c.depose()
	}
	c.settle()
	return err
}

// Restart brings a killed server back, on the same port, as another process.
func (c *Cluster) Restart(s *Server) error {
	s.letGo()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p := s.process
	p.Listener = l
	if _, err := c.Join(s.address, p); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// letGo frees the port of a server that was killed.
func (s *Server) letGo() {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if s.release != nil {
		s.release()
		s.release = nil
	}
}
