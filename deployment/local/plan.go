package local

import (
	"cmp"
	"errors"
	"fmt"
)

// Topology is the shape of a cluster.
type Topology uint8

// The topologies.
const (
	Standalone Topology = iota
	ReplicaSet
	Sharded
	LoadBalanced
)

var topologyNames = []string{"standalone", "replica set", "sharded cluster", "load balanced cluster"}

// String names the topology for people.
func (t Topology) String() string {
	if int(t) >= len(topologyNames) {
		return fmt.Sprintf("topology %d", t)
	}
	return topologyNames[t]
}

// Shape says what a cluster is made of. 0 means the default.
type Shape struct {
	Topology     Topology
	Members      int // of a replica set: 3
	Shards       int // of a sharded cluster: 1
	ShardMembers int // of the replica set that each shard is: 1
	Mongoses     int // 2
	// Auth switches access control on. The connection strings hold a user with
	// the role root.
	Auth bool
	// TLS makes all connections use it. The connection strings name the
	// certificate to be trusted.
	TLS bool
}

// complete puts the defaults in.
func (s Shape) complete() Shape {
	s.Members, s.Shards, s.ShardMembers, s.Mongoses = cmp.Or(s.Members, 3), cmp.Or(s.Shards, 1), cmp.Or(s.ShardMembers, 1), cmp.Or(s.Mongoses, 2)
	return s
}

// maxMembers is how many members of a replica set can be. Of these, seven can
// vote.
const (
	maxMembers = 50
	maxVoters  = 7
)

// Role is what a process is in its cluster. Roles are bits, so that an option
// can be for several.
type Role uint8

// The roles.
const (
	RoleStandalone Role = 1 << iota
	RoleMember          // of a replica set that is no shard
	RoleConfig          // of the config servers
	RoleShard           // member of a shard
	RoleMongos

	mongods = RoleStandalone | RoleMember | RoleConfig | RoleShard
	anyRole = mongods | RoleMongos
)

// Process is one process to be started.
type Process struct {
	Name string // of its files, such as rs0-1
	Role Role
	Set  string // replica set, "" if it is in none
	// Balanced: it also listens for a load balancer.
	Balanced bool
}

// Set is a replica set to be initiated.
type Set struct {
	Name   string
	Config bool // it is that of the config servers
	Shard  bool // it is to be added as a shard
}

// The names of replica sets.
const (
	memberSet = "rs0"
	configSet = "csrs"
)

// Plan is what makes a cluster.
type Plan struct {
	// Waves are started one after the other, the processes of one together.
	// Sets whose members have started are initiated before the next wave, and
	// shards are added after the first mongos: the others learn them as they
	// start, while a running mongos would hear of them only later.
	Waves [][]Process
	Sets  []Set
}

// NewPlan plans a cluster of a version.
func NewPlan(s Shape, v Version) (Plan, error) {
	s = s.complete()
	switch {
	case s.Members < 1 || s.Members > maxMembers || s.ShardMembers < 1 || s.ShardMembers > maxMembers:
		return Plan{}, fmt.Errorf("a replica set has 1 to %d members", maxMembers)
	case s.Shards < 1 || s.Mongoses < 1:
		return Plan{}, errors.New("a sharded cluster has at least one shard and one mongos")
	case s.Topology == LoadBalanced && !v.atLeast(balancedFrom):
		return Plan{}, fmt.Errorf("version %s has no load balancing, which came with %s", v, balancedFrom)
	}
	var p Plan
	switch s.Topology {
	case Standalone:
		p.Waves = [][]Process{{{Name: "mongod", Role: RoleStandalone}}}
	case ReplicaSet:
		p.Waves = [][]Process{members(memberSet, RoleMember, s.Members)}
		p.Sets = []Set{{Name: memberSet}}
	case Sharded, LoadBalanced:
		p.Sets = []Set{{Name: configSet, Config: true}}
		first := members(configSet, RoleConfig, 1)
		for i := range s.Shards {
			name := fmt.Sprintf("shard%d", i)
			p.Sets = append(p.Sets, Set{Name: name, Shard: true})
			first = append(first, members(name, RoleShard, s.ShardMembers)...)
		}
		routers := make([]Process, s.Mongoses)
		for i := range routers {
			routers[i] = Process{Name: fmt.Sprintf("mongos-%d", i), Role: RoleMongos, Balanced: s.Topology == LoadBalanced}
		}
		p.Waves = [][]Process{first, routers[:1]}
		if len(routers) > 1 {
			p.Waves = append(p.Waves, routers[1:])
		}
	default:
		return Plan{}, fmt.Errorf("there is no topology %d", s.Topology)
	}
	return p, nil
}

func members(set string, role Role, n int) []Process {
	out := make([]Process, n)
	for i := range out {
		out[i] = Process{Name: fmt.Sprintf("%s-%d", set, i), Role: role, Set: set}
	}
	return out
}
