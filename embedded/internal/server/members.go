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

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/internal/net/relay"
)

// Process contains the startup options of a server. The zero value has no access control and no TLS.
type Process struct {
	// Parameters are the startup parameters, in the form that setParameter accepts.
	Parameters bson.D
	// AccessControl requires clients to authenticate as one of Config.Users. The localhost exception applies.
	AccessControl bool
	// TLS of connections; nil means no TLS.
	TLS *tls.Config
	// Arguments are the command line for getCmdLineOpts, and Settings its settings.
	Arguments []string
	Settings  bson.D
	// PID is the process id for serverStatus; 0 means the id of this process.
	PID int
	// Listener accepts clients on the server's address. The server closes it when it stops. Nil if the caller passes
	// connections to Server.Serve.
	Listener net.Listener
}

// Members returns the servers, in the order in which they were added.
func (c *Cluster) Members() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// Listen starts all servers of a deployment on addresses ("127.0.0.1:0"), and configures a replica set. members, unless
// empty, are the configurations of its members; their hosts are ignored.
func (c *Cluster) Listen(p Process, members []Member, addresses ...string) (err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners { // those without a server
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
		m := NewMember(i, "")
		if len(members) > 0 {
			m = members[i]
		}
		m.Host = named(address, l.Addr().String())
		set.Members = append(set.Members, m)
	}
	if c.Topology == ReplicaSet {
		if err := c.Configure(set); err != nil {
			return err
		}
	}
	for _, m := range set.Members {
		p.Listener = listeners[0]
		if _, err := c.Join(m.Host, p); err != nil {
			return err
		}
		listeners = listeners[1:]
	}
	return nil
}

// named returns the address of a listener with the host as it was given, if that is a name: clients know it by that
// name.
func named(given, actual string) string {
	host, _, _ := net.SplitHostPort(given)
	_, port, err := net.SplitHostPort(actual)
	if err != nil || host == "" || net.ParseIP(host) != nil {
		return actual
	}
	return net.JoinHostPort(host, port)
}

// Balance starts a round-robin load balancer in front of the first servers. The caller must close the listener.
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

func (c *Cluster) newServer(m Member, p Process) (*Server, error) {
	params, err := newParameters(c.Version, p)
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
		failPoints: failpoint.NewRegistry(rand.Float64, c.sequence),
		serviceID:  bson.NewObjectID(),
		processID:  bson.NewObjectID(),
		started:    time.Now(),
		change:     make(chan struct{}),
		conns:      map[*conn]struct{}{},
		profiling:  map[string]profiling{},
	}, nil
}

// Configure sets the configuration of a replica set, once. The members are down until they Join.
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
	set.id = bson.NewObjectID()
	c.set = &set
	return nil
}

// Join starts a server at the address that clients see. It replaces a server that is down, or adds a new one, except to
// a replica set with configured members. Fail points and parameters of the previous server are lost, as with a
// new process.
func (c *Cluster) Join(address string, p Process) (*Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, errors.New("the deployment is closed")
	}
	i, m := slices.IndexFunc(c.members, func(s *Server) bool { return s.address == address }), NewMember(len(c.members),
		address)
	switch {
	case i < 0 && c.Topology == ReplicaSet:
		return nil, fmt.Errorf("%s is not a member of %s", address, c.SetName)
	case i >= 0 && !c.members[i].isDown:
		return nil, fmt.Errorf("%s is already running", address)
	case i >= 0:
		m = c.members[i].member
	}
	s, err := c.newServer(m, p)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		c.members = append(c.members, s)
	} else {
		c.members[i] = s
	}
	switch c.Topology {
	case Standalone:
		c.primary, c.term = s, 1
	case ReplicaSet:
		s.version = 5 // as on a member of a set that has just become ready
	}
	c.updatePrimary()
	if p.Listener != nil {
		c.work.Go(func() { relay.Accept(p.Listener, func(nc net.Conn) { s.Serve(nc, false) }) })
	}
	return s, nil
}

// Kill stops a server like a crash: its connections break, its port refuses new ones, and a replica set elects another
// primary. The port of the server's Listener stays reserved until Restart or Close.
func (c *Cluster) Kill(s *Server) error {
	err := s.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.process.Listener != nil && s.release == nil && c.ctx.Err() == nil {
		s.release = ReservePort(s.address)
	}
	if c.primary == s {
		c.depose()
	}
	c.updatePrimary()
	return err
}

// Restart starts a killed server again, on the same port.
func (c *Cluster) Restart(s *Server) error {
	s.releasePort()
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

func (s *Server) releasePort() {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if s.release != nil {
		s.release()
		s.release = nil
	}
}
