package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// Place is what a server brings along whose port is another's: a process of
// its own stands for it, and hands its connections over with Server.Serve.
type Place struct {
	// Parameters are those of this server alone, beside Config.Parameters. One that
	// the version does not have is only reported by getParameter.
	Parameters bson.D
	// AccessControl requires clients to authenticate as one of Config.Users.
	// Without a user yet, createUser is allowed.
	AccessControl bool
	// Arguments are the command line, for getCmdLineOpts.
	Arguments []string
	// PID is that of the process; 0 means this one.
	PID int
	// Log gets each line of the server's log, one at a time; nil for nobody. Commands
	// of the whole cluster wait until it returns.
	Log func(LogLine)
	// Shutdown is called when a client has sent shutdown; nil refuses the
	// command. The server's connections break when the place is left.
	Shutdown func()
}

// newServer makes a server that is not yet part of anything.
func (c *Cluster) newServer(m Member, p Place) (*Server, error) {
	s := &Server{
		cluster:    c,
		address:    m.Host,
		member:     m,
		place:      p,
		failPoints: failpoint.NewRegistry(rand.Float64),
		serviceID:  bson.NewObjectID(),
		processID:  bson.NewObjectID(),
		started:    time.Now(),
		change:     make(chan struct{}),
		conns:      map[*conn]struct{}{},
	}
	return s, s.configure()
}

// Configure makes the members of a replica set those of a configuration: the
// new ones are down until they Join, and those that are gone are returned, cut
// off from their clients. From then on a majority of votes is needed for a
// primary, and the priorities decide who becomes it.
func (c *Cluster) Configure(set SetConfig) (removed []*Server, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Kind != ReplicaSet || c.closed {
		return nil, errors.New("there is no replica set to configure")
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
		s, err := c.newServer(m, Place{})
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
	c.quorum, c.settings, c.configServer, c.configTerm = true, set.Settings, set.ConfigServer, c.term
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
		s.cut()
	}
	return removed, nil
}

// Join brings a server up whose port is another's, at the address that clients
// see: that of a configured member of a replica set that is down, or a new
// one elsewhere. Serve hands it connections. A member that comes again is
// another process: it knows no fail points and no parameters of before.
func (c *Cluster) Join(address string, p Place) (*Server, error) {
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

// Leave takes a server that joined away, as the end of its process does: its
// connections break, and if it was the primary, another is elected.
func (c *Cluster) Leave(s *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.cut()
	if c.Kind == Sharded {
		c.members = slices.DeleteFunc(c.members, func(other *Server) bool { return other == s })
		c.layout = newLayout(c.layout.version, c.members)
	}
	if c.primary == s && c.Kind == ReplicaSet {
		c.depose()
	}
	c.settle()
}

// cut takes the server down and breaks its connections. Called with cluster.mu
// held.
func (s *Server) cut() {
	s.isDown = true
	s.hangUp()
}

// settle elects and deposes by votes and priorities. Called with mu held.
func (c *Cluster) settle() {
	if !c.quorum {
		return
	}
	votes := 0
	for _, s := range c.members {
		if !s.isDown {
			votes += int(s.member.Votes)
		}
	}
	if votes < c.layout.majority() {
		c.stepDown()
		return
	}
	best := c.successor(nil)
	switch {
	case best == nil, best == c.primary:
	case c.primary == nil:
		c.elect(best)
	case best.member.Priority > c.primary.member.Priority:
		c.stepDown()
		c.elect(best)
	}
}

// freeze keeps a server from being elected for so long. Called with mu held.
func (c *Cluster) freeze(s *Server, d time.Duration) {
	s.frozen = time.Now().Add(d)
	c.work.Go(func() {
		if sleep(c.ctx, d) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settle()
		}
	})
}
