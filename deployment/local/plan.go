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
	Topology Topology
	Members  int // of a replica set: 3
	Shards   int // of a sharded cluster, each a replica set of one member: 1
	Mongoses int // 2
	// Auth switches access control on. The connection strings hold a user with
	// the role root.
	Auth bool
	// TLS makes all connections use it. The connection strings name the
	// certificate to be trusted.
	TLS bool
}

// maxMembers is how many members of a replica set can be. Of these, seven can
// vote.
const (
	maxMembers = 50
	maxVoters  = 7
)

// Role is what a process is in its cluster.
type Role uint8

// The roles.
const (
	RoleStandalone Role = iota
	RoleMember          // of a replica set that is no shard
	RoleConfig          // of the config servers
	RoleShard           // member of a shard
	RoleMongos
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
	Name string
	Role Role // of its members
}

// The names of replica sets.
const (
	memberSet = "rs0"
	configSet = "csrs"
)

// Plan is what makes a cluster.
type Plan struct {
	Mongods, Mongoses []Process
	Sets              []Set // of the mongods
}

// NewPlan plans a cluster of a version.
func NewPlan(s Shape, v Version) (p Plan, err error) {
	s.Members, s.Shards, s.Mongoses = cmp.Or(s.Members, 3), cmp.Or(s.Shards, 1), cmp.Or(s.Mongoses, 2)
	switch {
	case s.Members < 1 || s.Members > maxMembers:
		return p, fmt.Errorf("a replica set has 1 to %d members", maxMembers)
	case s.Shards < 1 || s.Mongoses < 1:
		return p, errors.New("a sharded cluster has at least one shard and one mongos")
	case s.Topology == LoadBalanced && !v.atLeast(balancedFrom):
		return p, fmt.Errorf("version %s has no load balancing, which came with %s", v, balancedFrom)
	}
	switch s.Topology {
	case Standalone:
		p.Mongods = []Process{{Name: "mongod", Role: RoleStandalone}}
	case ReplicaSet:
		p.add(memberSet, RoleMember, s.Members)
	case Sharded, LoadBalanced:
		p.add(configSet, RoleConfig, 1)
		for i := range s.Shards {
			p.add(fmt.Sprintf("shard%d", i), RoleShard, 1)
		}
		for i := range s.Mongoses {
			p.Mongoses = append(p.Mongoses, Process{Name: fmt.Sprintf("mongos-%d", i), Role: RoleMongos, Balanced: s.Topology == LoadBalanced})
		}
	default:
		return p, fmt.Errorf("there is no topology %d", s.Topology)
	}
	return p, nil
}

// add plans a replica set.
func (p *Plan) add(set string, role Role, members int) {
	p.Sets = append(p.Sets, Set{set, role})
	for i := range members {
		p.Mongods = append(p.Mongods, Process{Name: fmt.Sprintf("%s-%d", set, i), Role: role, Set: set})
	}
}
