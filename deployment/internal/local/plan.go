package local

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/embedded"
)

// Shape is the composition of a cluster. 0 means the default.
type Shape struct {
	Topology embedded.Topology
	Members  int // of a replica set: 3
	Shards   int // of a sharded cluster, replica sets of one member: 1
	Mongoses int // 2
	// Auth enables access control. The connection strings contain a user with the role root.
	Auth bool
	// TLS requires TLS for all connections. The connection strings name the trusted certificate.
	TLS bool
}

// Limits of a replica set.
const (
	maxMembers = 50
	maxVoters  = 7
)

// Role is the role of a process in its cluster.
type Role uint8

const (
	RoleStandalone Role = iota
	RoleMember          // of a replica set that is not a shard
	RoleConfig          // config server
	RoleShard           // member of a shard
	RoleMongos
)

// Process is a process to start.
type Process struct {
	Name     string // also of its files, such as rs0-1
	Role     Role
	Set      string // replica set, or ""
	Balanced bool   // whether it also listens for a load balancer
}

// Set is a replica set to initiate.
type Set struct {
	Name string
	Role Role // of its members
}

// Replica set names.
const (
	memberSet = "rs0"
	configSet = "csrs"
)

// Plan lists the parts of a cluster.
type Plan struct {
	Mongods, Mongoses []Process
	Sets              []Set // of the mongods
}

// Plan plans a cluster of the release.
func (r Release) Plan(s Shape) (p Plan, err error) {
	s.Topology = cmp.Or(s.Topology, embedded.Standalone)
	s.Members, s.Shards, s.Mongoses = cmp.Or(s.Members, 3), cmp.Or(s.Shards, 1), cmp.Or(s.Mongoses, 2)
	switch {
	case s.Members < 1 || s.Members > maxMembers:
		return p, fmt.Errorf("a replica set has 1 to %d members", maxMembers)
	case s.Shards < 1 || s.Mongoses < 1:
		return p, errors.New("a sharded cluster has at least one shard and one mongos")
	case s.Topology == embedded.LoadBalanced && !r.Version.atLeast(balancedFrom):
		return p, fmt.Errorf("version %s does not support load balancers: they require %s", r.Version, balancedFrom)
	case r.Mongos == "" && (s.Topology == embedded.Sharded || s.Topology == embedded.LoadBalanced):
		return p, fmt.Errorf("a %s requires %s: it does not exist", s.Topology.Name(), mongosFor(r.Mongod))
	}
	switch s.Topology {
	case embedded.Standalone:
		p.Mongods = []Process{{Name: "mongod", Role: RoleStandalone}}
	case embedded.ReplicaSet:
		p.add(memberSet, RoleMember, s.Members)
	case embedded.Sharded, embedded.LoadBalanced:
		p.add(configSet, RoleConfig, 1)
		for i := range s.Shards {
			p.add(fmt.Sprintf("shard%d", i), RoleShard, 1)
		}
		for i := range s.Mongoses {
			p.Mongoses = append(p.Mongoses,
				Process{Name: fmt.Sprintf("mongos-%d", i), Role: RoleMongos, Balanced: s.Topology == embedded.LoadBalanced})
		}
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
