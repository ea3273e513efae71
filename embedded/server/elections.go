package server

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Primary is the member that takes writes, nil if the deployment has none.
func (c *Cluster) Primary() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// StepDown makes the primary a secondary and another member primary. It fails
// if no member can follow, and changes nothing then.
func (c *Cluster) StepDown() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary == nil {
		return errors.New("the replica set has no primary")
	}
	next := c.successor(c.primary)
	if next == nil {
		return errors.New("no other member could become primary")
	}
	c.stepDown()
	c.elect(next)
	return nil
}

// The functions below are called with mu held.

// elect makes a member primary, with a new term, and wakes those who wait for a change.
func (c *Cluster) elect(next *Server) {
	c.term++
	c.primary = next
	next.logf("becomes primary in term %d", c.term)
	for _, s := range c.members {
		s.changed()
	}
}

// stepDown leaves the replica set without a primary. As on the server, the old
// primary reports first that it is neither, then that it is a secondary.
func (c *Cluster) stepDown() {
	old := c.primary
	if old == nil {
		return
	}
	c.depose()
	old.logf("steps down")
	old.version++ // the step in between, which is over before anyone can see it
	old.changed()
}

// depose leaves the deployment without a primary. In a replica set, what the primary has
// begun is undone.
func (c *Cluster) depose() {
	c.primary = nil
	if c.Kind == ReplicaSet {
		c.Backend.EndTerm(c.term)
	}
}

// successor is the member that should become primary: of the electable members that
// are up, other than old, the one of the highest priority, and of several the next
// after old. It is nil if no member is eligible.
func (c *Cluster) successor(old *Server) *Server {
	at := slices.Index(c.members, old)
	var best *Server
	for i := range c.members {
		s := c.members[(at+1+i)%len(c.members)]
		if s == old || s.isDown || !s.member.electable() || time.Now().Before(s.frozen) {
			continue
		}
		if best == nil || s.member.Priority > best.member.Priority {
			best = s
		}
	}
	return best
}

// settle elects and deposes the primary of a replica set by votes and priorities. The
// only mongod of a standalone is always primary.
func (c *Cluster) settle() {
	if c.Kind != ReplicaSet {
		return
	}
	votes := 0
	for _, s := range c.members {
		if !s.isDown {
			votes += int(s.member.Votes)
		}
	}
	if votes <= c.layout.votes/2 {
		c.stepDown()
		return
	}
	best := c.successor(c.primary)
	switch {
	case best == nil:
	case c.primary == nil:
		c.elect(best)
	case best.member.Priority > c.primary.member.Priority:
		c.stepDown()
		c.elect(best)
	}
}

// freeze prevents the election of a server for a time.
func (c *Cluster) freeze(s *Server, d time.Duration) {
	s.frozen = time.Now().Add(d)
	c.work.Go(func() {
		if sleep(c.ctx, d, nil) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settle()
		}
	})
}

// electionID is that of a term, as replica sets of protocol version 1 make it.
func electionID(term int64) bson.ObjectID {
	id := bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}
