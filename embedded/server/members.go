package server

import (
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

// Process is the process that plays a server, and hands its connections over with
// Server.Serve. The zero value is this process.
type Process struct {
	// Parameters are those of this server alone, beside Config.Parameters. One that
	// the version does not have is only reported by getParameter.
	Parameters bson.D
	// AccessControl requires clients to authenticate as one of Config.Users.
	// Without a user yet, createUser is allowed.
	AccessControl bool
	// Arguments are the command line, for getCmdLineOpts.
	Arguments []string
	// PID is its number; 0 means that of this process.
	PID int
	// Log gets each line of the server's log, one at a time; it may be nil. Commands
	// of the whole cluster wait until it returns.
	Log func(LogLine)
	// Shutdown is called when a client has sent shutdown; nil refuses the
	// command.
	Shutdown func()
	listener net.Listener // nil if another process has the port
}

// Members are the servers, in the order of their addition.
func (c *Cluster) Members() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// How many changes the members of a new replica set have counted when it is ready.
const (
	versionOfPrimary   = 6
	versionOfSecondary = 4
)

// Listen starts servers on addresses ("127.0.0.1:0"): all of a deployment. Those of a
// replica set are configured as its members.
func (c *Cluster) Listen(addresses ...string) (err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners { // that no server has taken over
			err = errors.Join(err, l.Close())
		}
	}()
	set := SetConfig{Name: c.SetName, Version: 1}
	for i, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		listeners = append(listeners, l)
		set.Members = append(set.Members, defaultMember(i, l.Addr().String()))
	}
	if c.Kind == ReplicaSet {
		if _, err := c.Configure(set); err != nil {
			return err
		}
	}
	for len(listeners) > 0 {
		if err := c.listen(listeners[0]); err != nil {
			return err
		}
		listeners = listeners[1:]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Kind == ReplicaSet {
		for _, s := range c.members {
			s.version = versionOfSecondary
		}
		c.primary.version = versionOfPrimary
	}
	return nil
}

// listen starts a server on a port.
func (c *Cluster) listen(l net.Listener) error {
	s, err := c.Join(l.Addr().String(), Process{listener: l})
	if err != nil {
		return err
	}
	c.work.Go(func() { relay.Accept(l, func(nc net.Conn) { s.Serve(nc, false) }) })
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
	s := &Server{
		cluster:    c,
		address:    m.Host,
		member:     m,
		process:    p,
		failPoints: failpoint.NewRegistry(rand.Float64),
		serviceID:  bson.NewObjectID(),
		processID:  bson.NewObjectID(),
		started:    time.Now(),
		change:     make(chan struct{}),
		conns:      map[*conn]struct{}{},
	}
	return s, s.configure()
}

// Configure gives a replica set the members of a configuration. New members are
// down until they Join. Members that are not in it are disconnected from their
// clients, and returned. A majority of votes is needed for a primary, and the
// priorities decide who becomes it.
func (c *Cluster) Configure(set SetConfig) (removed []*Server, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Kind != ReplicaSet || c.closed {
		return nil, errors.New("the deployment is not a replica set, or is closed")
	}
	old := c.members
	var next []*Server
	for _, m := range set.Members {
		i := slices.IndexFunc(old, func(s *Server) bool { return s.address == m.Host })
		if i >= 0 {
			old[i].member = m
			next = append(next, old[i])
			continue
		}
		s, err := c.newServer(m, Process{})
		if err != nil {
			return nil, err
		}
		s.isDown = true
		next = append(next, s)
	}
	for _, s := range old {
		if !slices.Contains(next, s) {
			removed = append(removed, s)
		}
	}
	c.set = set
	c.members = next
	c.layout = newLayout(set.Version, next)
	if slices.Contains(removed, c.primary) {
		c.depose()
	}
	for _, s := range c.members {
		s.changed()
	}
	c.settle()
	for _, s := range removed {
		s.isDown = true
		s.hangUp()
	}
	return removed, nil
}

// Join brings a server up, at the address that clients see: that of a server that is
// down, or a new one; of a replica set, only that of a configured member. Serve hands
// it connections. A server that comes again is another process: it knows no fail
// points and no parameters of before.
func (c *Cluster) Join(address string, p Process) (*Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the deployment is closed")
	}
	at := slices.IndexFunc(c.members, func(s *Server) bool { return s.address == address })
	m := defaultMember(len(c.members), address)
	switch {
	case at >= 0 && !c.members[at].isDown:
		return nil, fmt.Errorf("%s is there already", address)
	case at >= 0:
		m = c.members[at].member
	case c.Kind == ReplicaSet:
		return nil, fmt.Errorf("%s is not a member of %s", address, c.SetName)
	}
	s, err := c.newServer(m, p)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		c.members = append(c.members, s)
	} else {
		c.members[at] = s
	}
	if c.Kind == Single {
		c.primary, c.term = s, 1
	}
	if c.Kind == ReplicaSet {
		s.version = versionOfSecondary
	}
	c.layout = newLayout(c.layout.version, c.members)
	c.settle()
	return s, nil
}

// Kill ends a server as a crash would: its connections break, its port refuses new
// ones, and if it was the primary of a replica set, another one is elected.
func (c *Cluster) Kill(s *Server) error {
	err := s.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary == s {
		c.depose()
	}
	c.settle()
	return err
}

// Restart brings a killed server back, on the same port, as another process.
func (c *Cluster) Restart(s *Server) error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := c.listen(l); err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}
