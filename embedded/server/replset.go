package server

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// ShardName is the one shard of a sharded cluster.
const ShardName = "s0"

// ShardHost is where the one shard would be, if clients could reach it.
func ShardHost(setName string) string { return setName + "/localhost:27310" }

// shardMembers is how many members write concerns find in the shard: as many as
// a replica set of ours has if nothing else is asked for.
const shardMembers = 3

// Intervals and limits of a replica set's configuration, in milliseconds.
const (
	heartbeatInterval = 2000
	electionTimeout   = 10000
)

// replicated refuses what only members of a replica set do.
func (x *exchange) replicated() (bson.D, error) {
	switch x.view.Role {
	case command.Standalone:
		return nil, refuse(codeNoReplicationEnabled, "not running with --replSet")
	case command.Mongos:
		return bson.D{{Key: "info", Value: "mongos"}}, refuse(0, "replSetGetStatus is not supported through mongos")
	}
	return nil, nil
}

func (x *exchange) replSetGetStatus() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	now := x.conn.server.now()
	at := bson.DateTime(int64(now.T) * 1000)
	opTime := bson.D{{Key: "ts", Value: now}, {Key: "t", Value: x.view.Term}}
	began := x.conn.server.started
	election := bson.NewDateTimeFromTime(began)
	majority := int32(len(x.view.Hosts)/2 + 1)
	reply := bson.D{
		{Key: "set", Value: x.view.SetName},
		{Key: "date", Value: bson.NewDateTimeFromTime(time.Now())},
		{Key: "myState", Value: memberState(x.view.Role == command.Primary)},
		{Key: "term", Value: x.view.Term},
		{Key: "syncSourceHost", Value: ""},
		{Key: "syncSourceId", Value: int32(-1)},
		{Key: "heartbeatIntervalMillis", Value: int64(heartbeatInterval)},
		{Key: "majorityVoteCount", Value: majority},
		{Key: "writeMajorityCount", Value: majority},
		{Key: "votingMembersCount", Value: int32(len(x.view.Hosts))},
		{Key: "writableVotingMembersCount", Value: int32(len(x.view.Hosts))},
		{Key: "optimes", Value: bson.D{
			{Key: "lastCommittedOpTime", Value: opTime},
			{Key: "lastCommittedWallTime", Value: at},
			{Key: "readConcernMajorityOpTime", Value: opTime},
			{Key: "appliedOpTime", Value: opTime},
			{Key: "durableOpTime", Value: opTime},
			{Key: "lastAppliedWallTime", Value: at},
			{Key: "lastDurableWallTime", Value: at},
		}},
		{Key: "lastStableRecoveryTimestamp", Value: now},
	}
	if x.view.Role == command.Primary {
		never := bson.D{{Key: "ts", Value: bson.Timestamp{}}, {Key: "t", Value: int64(-1)}}
		seen := bson.D{{Key: "ts", Value: bson.Timestamp{T: uint32(began.Unix()), I: 1}}, {Key: "t", Value: int64(-1)}}
		reply = append(reply, bson.E{Key: "electionCandidateMetrics", Value: bson.D{
			{Key: "lastElectionReason", Value: "electionTimeout"},
			{Key: "lastElectionDate", Value: election},
			{Key: "electionTerm", Value: x.view.Term},
			{Key: "lastCommittedOpTimeAtElection", Value: never},
			{Key: "lastSeenOpTimeAtElection", Value: seen},
			{Key: "numVotesNeeded", Value: majority},
			{Key: "priorityAtElection", Value: 1.0},
			{Key: "electionTimeoutMillis", Value: int64(electionTimeout)},
			{Key: "numCatchUpOps", Value: int64(0)},
			{Key: "newTermStartDate", Value: election},
			{Key: "wMajorityWriteAvailabilityDate", Value: election},
		}})
	}
	members := bson.A{}
	for i, host := range x.view.Hosts {
		members = append(members, x.memberStatus(i, host, opTime, at))
	}
	return append(reply, bson.E{Key: "members", Value: members}), nil
}

// memberState is a member's state by number.
func memberState(primary bool) int32 {
	if primary {
		return 1
	}
	return 2
}

// memberStatus is what replSetGetStatus tells of one member.
func (x *exchange) memberStatus(i int, host string, opTime bson.D, at bson.DateTime) bson.D {
	self, primary := host == x.view.Address, host == x.view.primary
	source, sourceID := "", int32(-1)
	if !primary && !self {
		source = x.view.primary
		sourceID = int32(slices.Index(x.view.Hosts, x.view.primary))
	}
	began := x.conn.server.started
	m := bson.D{
		{Key: "_id", Value: int32(i)},
		{Key: "name", Value: host},
		{Key: "health", Value: 1.0},
		{Key: "state", Value: memberState(primary)},
		{Key: "stateStr", Value: map[bool]string{true: "PRIMARY", false: "SECONDARY"}[primary]},
		{Key: "uptime", Value: int32(time.Since(began).Seconds())},
		{Key: "optime", Value: opTime},
	}
	add := func(e ...bson.E) { m = append(m, e...) }
	if !self {
		add(bson.E{Key: "optimeDurable", Value: opTime})
	}
	add(bson.E{Key: "optimeDate", Value: at})
	if !self {
		add(bson.E{Key: "optimeDurableDate", Value: at}, bson.E{Key: "lastHeartbeat", Value: at},
			bson.E{Key: "lastHeartbeatRecv", Value: at}, bson.E{Key: "pingMs", Value: int64(0)},
			bson.E{Key: "lastHeartbeatMessage", Value: ""})
	}
	add(bson.E{Key: "syncSourceHost", Value: source}, bson.E{Key: "syncSourceId", Value: sourceID},
		bson.E{Key: "infoMessage", Value: ""})
	if primary {
		add(bson.E{Key: "electionTime", Value: bson.Timestamp{T: uint32(began.Unix()), I: 1}},
			bson.E{Key: "electionDate", Value: bson.NewDateTimeFromTime(began)})
	}
	add(bson.E{Key: "configVersion", Value: int32(1)}, bson.E{Key: "configTerm", Value: int32(1)})
	if self {
		add(bson.E{Key: "self", Value: true}, bson.E{Key: "lastHeartbeatMessage", Value: ""})
	}
	return m
}

func (x *exchange) replSetGetConfig() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	members := bson.A{}
	for i, host := range x.view.Hosts {
		members = append(members, bson.D{
			{Key: "_id", Value: int32(i)},
			{Key: "host", Value: host},
			{Key: "arbiterOnly", Value: false},
			{Key: "buildIndexes", Value: true},
			{Key: "hidden", Value: false},
			{Key: "priority", Value: 1.0},
			{Key: "tags", Value: bson.D{}},
			{Key: "slaveDelay", Value: int64(0)},
			{Key: "votes", Value: int32(1)},
		})
	}
	return bson.D{{Key: "config", Value: bson.D{
		{Key: "_id", Value: x.view.SetName},
		{Key: "version", Value: int32(1)},
		{Key: "term", Value: int32(x.view.Term)},
		{Key: "protocolVersion", Value: int64(1)},
		{Key: "writeConcernMajorityJournalDefault", Value: true},
		{Key: "members", Value: members},
		{Key: "settings", Value: bson.D{
			{Key: "chainingAllowed", Value: true},
			{Key: "heartbeatIntervalMillis", Value: int32(heartbeatInterval)},
			{Key: "electionTimeoutMillis", Value: int32(electionTimeout)},
			{Key: "getLastErrorModes", Value: bson.D{}},
		}},
	}}}, nil
}

// replSetStepDown makes way for another member, which is elected at once; the
// seconds that it names are of no matter then. Alone in its set, a member
// steps down only by force, and is elected again when they are over.
func (x *exchange) replSetStepDown() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	if x.view.Role != command.Primary {
		return nil, x.notPrimary(codeNotWritablePrimary, "not primary so can't step down")
	}
	c, s := x.conn.server.cluster, x.conn.server
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	force, _ := x.request.Body.Lookup("force").BooleanOK()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary != s {
		return nil, x.notPrimary(codeNotWritablePrimary, "not primary so can't step down")
	}
	alone := c.successor(s) == nil
	if alone && !force {
		return nil, refuse(codeExceededTimeLimit, "No electable secondaries caught up as of %s. "+
			"Please use the replSetStepDown command with the argument {force: true} to force node to step down.",
			time.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
	}
	if err := c.stepDownTo(alone); err != nil {
		return nil, refuse(codeIllegalOperation, "%s", err.Error())
	}
	if alone {
		c.work.Go(func() {
			if sleep(c.ctx, time.Duration(seconds)*time.Second) {
				_ = c.Elect(s) // someone else may have been elected since
			}
		})
	}
	return nil, nil
}

// replSetFreeze keeps a member from being elected; ours are never in a hurry.
func (x *exchange) replSetFreeze() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	if x.view.Role == command.Primary && seconds != 0 {
		return nil, refuse(codeNotSecondary, "cannot freeze node when primary or running for election. state: Primary")
	}
	return nil, nil
}

func (x *exchange) isdbgrid() (bson.D, error) {
	return bson.D{{Key: "isdbgrid", Value: int32(1)}, {Key: "hostname", Value: x.view.Address}}, nil
}

// flushRouterConfig has nothing to forget: our mongoses route to one shard.
func (x *exchange) flushRouterConfig() (bson.D, error) {
	return bson.D{{Key: "flushed", Value: true}}, nil
}

// listShards has one shard, a replica set behind the mongoses that no client
// can reach.
func (x *exchange) listShards() (bson.D, error) {
	return bson.D{{Key: "shards", Value: bson.A{bson.D{
		{Key: "_id", Value: ShardName},
		{Key: "host", Value: ShardHost(x.view.SetName)},
		{Key: "state", Value: int32(1)},
		{Key: "topologyTime", Value: bson.Timestamp{T: 1, I: 1}},
	}}}}, nil
}
