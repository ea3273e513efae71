package server

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
)

// Primary returns the primary, nil if the deployment has none.
func (c *Cluster) Primary() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// StepDown steps the primary down and elects another member. It fails without an effect if no other member is eligible.
func (c *Cluster) StepDown() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary == nil {
		return errors.New("the replica set has no primary")
	}
	next := c.successor(c.primary)
	if next == nil {
		return errors.New("no other member can become primary")
	}
	c.handOver(next)
	return nil
}

// The functions below are called with mu held.

// handOver steps the primary down and elects next in a new term; either may be nil. It wakes waiters for a topology
// change. The old primary is first neither primary nor secondary, and still names itself as the primary.
func (c *Cluster) handOver(next *Server) {
	if old := c.primary; old != nil {
		passed := old.state()
		old.version++
		passed.Role, passed.stepping, passed.version = commands.Secondary, true, old.version
		old.passed = &passed
		c.depose()
		old.logf("steps down")
		old.changed()
	}
	if next == nil {
		return
	}
	c.term++
	c.primary = next
	next.logf("becomes primary in term %d", c.term)
	for _, s := range c.members {
		s.changed()
	}
}

// depose removes the primary, and in a replica set aborts its operations.
func (c *Cluster) depose() {
	c.primary = nil
	if c.Topology == ReplicaSet {
		c.Backend.EndTerm(c.term)
	}
}

// successor returns the eligible member, other than old, with the highest priority; among equals the next one after
// old. It returns nil if no member is eligible.
func (c *Cluster) successor(old *Server) *Server {
	at := slices.Index(c.members, old)
	var best *Server
	for i := range c.members {
		s := c.members[(at+1+i)%len(c.members)]
		eligible := s != old && !s.isDown && s.member.electable() && !time.Now().Before(s.frozen)
		if eligible && (best == nil || s.member.Priority > best.member.Priority) {
			best = s
		}
	}
	return best
}

// updatePrimary elects or deposes the primary of a replica set by votes and priorities. The mongod of a standalone is
// always primary.
func (c *Cluster) updatePrimary() {
	if c.Topology != ReplicaSet {
		return
	}
	var votes, all int32
	for _, s := range c.members {
		all += s.member.Votes
		if !s.isDown {
			votes += s.member.Votes
		}
	}
	if votes <= all/2 {
		c.handOver(nil)
		return
	}
	best := c.successor(c.primary)
	if best != nil && (c.primary == nil || best.member.Priority > c.primary.member.Priority) {
		c.handOver(best)
	}
}

func (c *Cluster) freeze(s *Server, d time.Duration) {
	s.frozen = time.Now().Add(d)
	c.work.Go(func() {
		if sleep(c.ctx, d, nil) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.updatePrimary()
		}
	})
}

func electionID(term int64) bson.ObjectID {
	id := bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}
