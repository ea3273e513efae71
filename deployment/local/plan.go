package local

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strconv"
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

// Place is what is known of a process only when it is started.
type Place struct {
	Port         int
	BalancerPort int    // of a Process that is Balanced
	Data         string // folder of a mongod
	ConfigDB     string // config servers of a mongos, as set/host:port
	KeyFile      string // with Shape.Auth
	Certificate  string // with Shape.TLS: certificate and key
	CA           string // with Shape.TLS: what is trusted
}

// address is where everything listens.
const address = "127.0.0.1"

// balancedFrom is the version whose mongos takes connections of a load
// balancer (SERVER-60679). Before 6.1 that is to be switched on (SERVER-64205).
var (
	balancedFrom   = Version{5, 0, 7}
	balancedAlways = Version{6, 1, 0}
)

// Argv gives the arguments of a process, without the program's name. Left out on purpose:
// --nojournal, which replica sets refuse and which 6.1 dropped, and which would
// make a standalone refuse a write concern with j; --logpath, since what a
// server says before it has opened its log would be elsewhere; short election
// time-outs, since a busy machine would elect all the time.
func Argv(p Process, v Version, at Place) (args []string) {
	add := func(given bool, more ...string) {
		if given {
			args = append(args, more...)
		}
	}
	set := func(given bool, parameter string) { add(given, "--setParameter", parameter) }
	isMongod := p.Role != RoleMongos
	isSharded := p.Role == RoleConfig || p.Role == RoleShard
	inSet := p.Role == RoleMember || isSharded
	isBalanced := p.Balanced && v.atLeast(balancedFrom)

	add(true, "--port", strconv.Itoa(at.Port))
	add(true, "--bind_ip", address) // nobody else has a business here
	// A killed server would leave its socket in the folder for temporary files.
	add(runtime.GOOS != "windows", "--nounixsocket")
	set(true, "enableTestCommands=1")                  // fail points
	set(true, "diagnosticDataCollectionEnabled=false") // nobody reads what is collected each second
	add(isMongod, "--dbpath", at.Data)
	add(isMongod, "--wiredTigerCacheSizeGB", "0.25") // the least; by default each takes half of the memory
	add(inSet, "--replSet", p.Set)                   // transactions and retryable writes require a replica set
	add(inSet, "--oplogSize", "128")                 // in MB; by default 5 % of the disk
	// A transaction gives up a lock after 5 ms by default, which is little where a
	// collection was made just now.
	set(p.Role == RoleMember || p.Role == RoleShard, "maxTransactionLockRequestTimeoutMillis=25")
	add(p.Role == RoleConfig, "--configsvr")
	add(p.Role == RoleShard, "--shardsvr")
	// A change stream waits for a write on every shard: by default 10 s if nothing is written.
	set(isSharded, "periodicNoopIntervalSecs=1")
	add(p.Role == RoleMongos, "--configdb", at.ConfigDB)
	set(isBalanced && !v.atLeast(balancedAlways), "featureFlagLoadBalancer=true")
	set(isBalanced, fmt.Sprint("loadBalancerPort=", at.BalancerPort)) // connections there begin with a PROXY header
	add(at.KeyFile != "", "--keyFile", at.KeyFile)                    // access control, and the members' password among themselves
	add(at.CA != "", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", at.Certificate, "--tlsCAFile", at.CA,
		"--tlsAllowConnectionsWithoutCertificates") // clients show none
	return args
}
