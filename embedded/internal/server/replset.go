package server

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// ShardName is the name of the only shard of a sharded cluster.
const ShardName = "s0"

// ShardHost returns the host of the shard in config.shards. Clients cannot reach it.
func ShardHost(setName string) string { return setName + "/localhost:27310" }

const shardMembers = 3 // for write concerns

// onMember returns a command that runs on a member of a replica set, with cluster.mu held.
func onMember(run func(*exchange, *Cluster, *Server) (bson.D, error)) func(*exchange) (bson.D, error) {
	return func(x *exchange) (bson.D, error) {
		switch x.view.Role {
		case commands.Standalone:
			return nil, fault.Errorf(fault.NoReplicationEnabled, "not running with --replSet")
		case commands.Mongos:
			return value.Doc("info", "mongos"), fault.Errorf(0, "replSetGetStatus is not supported through mongos")
		}
		s := x.server
		s.cluster.mu.Lock()
		defer s.cluster.mu.Unlock()
		return run(x, s.cluster, s)
	}
}

func (x *exchange) replSetGetStatus(c *Cluster, self *Server) (bson.D, error) {
	mine, _ := self.memberState()
	members := bson.A{}
	for _, s := range c.members {
		state, name := s.memberState()
		health := 1.0
		if s.isDown {
			health = 0
		}
		members = append(members, value.AddIf(value.Doc("_id", s.member.ID, "name", s.address, "health", health,
			"state", state, "stateStr", name, "configVersion", c.set.Version), s == self, "self", true))
	}
	return value.Doc("set", x.server.cluster.SetName, "date", bson.NewDateTimeFromTime(time.Now()), "myState", mine,
		"term", x.view.Term, "members", members), nil
}

// memberState returns a member's state as number and name. Called with cluster.mu held.
func (s *Server) memberState() (int32, string) {
	switch {
	case s.isDown:
		return 8, "(not reachable/healthy)"
	case s.cluster.primary == s:
		return 1, "PRIMARY"
	case s.member.ArbiterOnly:
		return 7, "ARBITER"
	}
	return 2, "SECONDARY"
}

func (x *exchange) replSetGetConfig(c *Cluster, _ *Server) (bson.D, error) {
	return value.Doc("config", c.set.document(x, c.term)), nil
}

// replSetStepDown steps the primary down and elects another member immediately. The old primary is not eligible for the
// given seconds. Without another eligible member force is required.
func (x *exchange) replSetStepDown(c *Cluster, s *Server) (bson.D, error) {
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	if seconds == 0 {
		seconds = 60
	}
	force := value.Truthy(value.FromRaw(x.request.Body.Lookup("force")))
	catchUp, has := x.request.Body.Lookup("secondaryCatchUpPeriodSecs").AsInt64OK()
	if !has && !force {
		catchUp = 10
	}
	switch {
	case seconds < 0:
		return nil, fault.Errorf(fault.BadValue, "stepdown period must be a positive integer")
	case catchUp < 0:
		return nil, fault.Errorf(fault.BadValue, "secondaryCatchUpPeriodSecs period must be a positive or absent")
	case seconds < catchUp:
		return nil, fault.Errorf(fault.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	if c.primary != s {
		if x.view.Has.NewTerms { // whatever the client has sent
			return nil, fault.Errorf(fault.NotWritablePrimary, "not primary so can't step down")
		}
		return nil, x.notPrimary(fault.NotWritablePrimary, "not primary so can't step down")
	}
	next := c.successor(s)
	if next == nil && !force {
		return nil, fault.Errorf(fault.ExceededTimeLimit, "No electable secondaries caught up as of %s. "+
			"Please use the replSetStepDown command with the argument {force: true} to force node to step down.",
			time.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
	}
	c.freeze(s, time.Duration(seconds)*time.Second)
	c.handOver(next)
	return nil, nil
}

// replSetFreeze makes a member ineligible for a number of seconds.
func (x *exchange) replSetFreeze(c *Cluster, s *Server) (bson.D, error) {
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	if x.view.Role == commands.Primary && seconds != 0 {
		return nil, fault.Errorf(fault.NotSecondary,
			"cannot freeze node when primary or running for election. state: Primary")
	}
	info := "unfreezing"
	if s.frozen = (time.Time{}); seconds > 0 {
		c.freeze(s, time.Duration(seconds)*time.Second)
		info = fmt.Sprintf("you really want to freeze for only %d second(s)?", seconds)
	}
	c.updatePrimary()
	return value.AddIf(nil, seconds <= 1, "info", info), nil
}

// replSetInitiate refuses: the replica set of a deployment is complete.
func (x *exchange) replSetInitiate() (bson.D, error) {
	if x.view.Role == commands.Standalone {
		return nil, fault.Errorf(fault.NoReplicationEnabled, "This node was not started with the replSet option")
	}
	return nil, fault.Errorf(fault.AlreadyInitialized, "already initialized")
}

// The shards of a cluster are the documents of config.shards. Clients may read and change them, as on the server.

func (x *exchange) listShards() (bson.D, error) {
	reply, err := x.server.internally("config", value.Doc("find", "shards", "sort", value.Doc("_id", 1),
		"singleBatch", true))
	if err != nil {
		return nil, err
	}
	return value.Doc("shards", value.Encode(reply).Lookup("cursor", "firstBatch")), nil
}
