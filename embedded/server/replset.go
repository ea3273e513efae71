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
		return nil, command.Errorf(command.CodeNoReplicationEnabled, "not running with --replSet")
	case command.Mongos:
		return bson.D{{Key: "info", Value: "mongos"}}, command.Errorf(0, "replSetGetStatus is not supported through mongos")
	case command.Uninitiated:
		return nil, command.Errorf(command.CodeNotYetInitialized, "no replset config has been received")
	}
	return nil, nil
}

// memberStatus is what a member of the set is now.
type memberStatus struct {
	Member
	up, primary bool
	began       time.Time
}

// state is a member's state by number and name.
func (p memberStatus) state() (int32, string) {
	switch {
	case !p.up:
		return 8, "(not reachable/healthy)"
	case p.primary:
		return 1, "PRIMARY"
	case p.ArbiterOnly:
		return 7, "ARBITER"
	}
	return 2, "SECONDARY"
}

// memberStatuses are those of all members, in the order of the configuration.
func (c *Cluster) memberStatuses() []memberStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]memberStatus, 0, len(c.members))
	for _, s := range c.members {
		out = append(out, memberStatus{Member: s.member, up: !s.isDown, primary: s == c.primary, began: s.started})
	}
	return out
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
	set := x.view.layout
	majority := int32(set.majority())
	statuses := x.conn.server.cluster.memberStatuses()
	self := slices.IndexFunc(statuses, func(p memberStatus) bool { return p.Host == x.view.Address })
	myState := memberState(x.view.Role == command.Primary)
	if self >= 0 {
		myState, _ = statuses[self].state()
	}
	reply := bson.D{
		{Key: "set", Value: x.view.setName},
		{Key: "date", Value: bson.NewDateTimeFromTime(time.Now())},
		{Key: "myState", Value: myState},
		{Key: "term", Value: x.view.Term},
		{Key: "syncSourceHost", Value: ""},
		{Key: "syncSourceId", Value: int32(-1)},
		{Key: "heartbeatIntervalMillis", Value: int64(heartbeatInterval)},
		{Key: "majorityVoteCount", Value: majority},
		{Key: "writeMajorityCount", Value: min(majority, int32(set.writers))},
		{Key: "votingMembersCount", Value: int32(set.voters)},
		{Key: "writableVotingMembersCount", Value: int32(set.writers)},
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
	for _, m := range statuses {
		members = append(members, x.describeMember(m, statuses, opTime, at))
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

// describeMember is what replSetGetStatus says of one member.
func (x *exchange) describeMember(p memberStatus, statuses []memberStatus, opTime bson.D, at bson.DateTime) bson.D {
	self := p.Host == x.view.Address
	source, sourceID := "", int32(-1)
	if i := slices.IndexFunc(statuses, func(other memberStatus) bool { return other.primary }); i >= 0 && p.up && !p.primary && !self {
		source, sourceID = statuses[i].Host, statuses[i].ID
	}
	state, name := p.state()
	health, uptime, message := 1.0, int32(time.Since(p.began).Seconds()), ""
	if !p.up {
		health, uptime, message = 0, 0, "Error connecting to "+p.Host+" :: caused by :: Connection refused"
		opTime, at = bson.D{{Key: "ts", Value: bson.Timestamp{}}, {Key: "t", Value: int64(-1)}}, 0
	}
	m := bson.D{
		{Key: "_id", Value: p.ID},
		{Key: "name", Value: p.Host},
		{Key: "health", Value: health},
		{Key: "state", Value: state},
		{Key: "stateStr", Value: name},
		{Key: "uptime", Value: uptime},
	}
	add := func(e ...bson.E) { m = append(m, e...) }
	if !p.ArbiterOnly {
		add(bson.E{Key: "optime", Value: opTime})
		if !self {
			add(bson.E{Key: "optimeDurable", Value: opTime})
		}
		add(bson.E{Key: "optimeDate", Value: at})
		if !self {
			add(bson.E{Key: "optimeDurableDate", Value: at})
		}
	}
	if !self {
		now := bson.NewDateTimeFromTime(time.Now())
		add(bson.E{Key: "lastHeartbeat", Value: now},
			bson.E{Key: "lastHeartbeatRecv", Value: now}, bson.E{Key: "pingMs", Value: int64(0)},
			bson.E{Key: "lastHeartbeatMessage", Value: message})
	}
	add(bson.E{Key: "syncSourceHost", Value: source}, bson.E{Key: "syncSourceId", Value: sourceID},
		bson.E{Key: "infoMessage", Value: ""})
	if p.primary {
		add(bson.E{Key: "electionTime", Value: bson.Timestamp{T: uint32(p.began.Unix()), I: 1}},
			bson.E{Key: "electionDate", Value: bson.NewDateTimeFromTime(p.began)})
	}
	add(bson.E{Key: "configVersion", Value: x.view.layout.version}, bson.E{Key: "configTerm", Value: int32(1)})
	if self {
		add(bson.E{Key: "self", Value: true}, bson.E{Key: "lastHeartbeatMessage", Value: ""})
	}
	return m
}

func (x *exchange) replSetGetConfig() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	return bson.D{{Key: "config", Value: x.conn.server.cluster.configuration()}}, nil
}

// settingsByDefault are those of a configuration that has none.
func settingsByDefault() bson.D {
	return bson.D{
		{Key: "chainingAllowed", Value: true},
		{Key: "heartbeatIntervalMillis", Value: int32(heartbeatInterval)},
		{Key: "electionTimeoutMillis", Value: int32(electionTimeout)},
		{Key: "getLastErrorModes", Value: bson.D{}},
	}
}

// configuration is the set's, as replSetGetConfig returns it.
func (c *Cluster) configuration() bson.D {
	c.mu.Lock()
	defer c.mu.Unlock()
	members := bson.A{}
	for _, s := range c.members {
		members = append(members, s.member.document(c.Profile))
	}
	settings := settingsByDefault()
	for _, e := range c.set.Settings {
		if i := slices.IndexFunc(settings, func(d bson.E) bool { return d.Key == e.Key }); i >= 0 {
			settings[i] = e
		} else {
			settings = append(settings, e)
		}
	}
	out := bson.D{
		{Key: "_id", Value: c.SetName},
		{Key: "version", Value: c.layout.version},
		{Key: "term", Value: int32(max(c.term, 1))},
	}
	if c.set.ConfigServer {
		out = append(out, bson.E{Key: "configsvr", Value: true})
	}
	return append(out, bson.D{
		{Key: "protocolVersion", Value: int64(1)},
		{Key: "writeConcernMajorityJournalDefault", Value: true},
		{Key: "members", Value: members},
		{Key: "settings", Value: settings},
	}...)
}

// replSetStepDown makes way for another member, which is elected at once. For the seconds
// that it names, the old primary is not elected. Without another member it steps down only
// by force.
func (x *exchange) replSetStepDown() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	c, s := x.conn.server.cluster, x.conn.server
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	force, _ := x.request.Body.Lookup("force").BooleanOK()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary != s {
		return nil, x.notPrimary(command.CodeNotWritablePrimary, "not primary so can't step down")
	}
	next := c.successor(s)
	if next == nil && !force {
		return nil, command.Errorf(command.CodeExceededTimeLimit, "No electable secondaries caught up as of %s. "+
			"Please use the replSetStepDown command with the argument {force: true} to force node to step down.",
			time.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
	}
	c.freeze(s, time.Duration(max(seconds, 1))*time.Second)
	c.stepDown()
	if next != nil {
		c.elect(next)
	}
	return nil, nil
}

// replSetFreeze keeps a member from being elected.
func (x *exchange) replSetFreeze() (bson.D, error) {
	if fields, err := x.replicated(); err != nil {
		return fields, err
	}
	seconds, _ := x.request.Body.Index(0).Value().AsInt64OK()
	if x.view.Role == command.Primary && seconds != 0 {
		return nil, command.Errorf(command.CodeNotSecondary, "cannot freeze node when primary or running for election. state: Primary")
	}
	c, s := x.conn.server.cluster, x.conn.server
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.frozen = (time.Time{}); seconds > 0 {
		c.freeze(s, time.Duration(seconds)*time.Second)
	}
	c.settle()
	return nil, nil
}
