// Package deployment gives the runner something to run tests on: a cluster
// named by a connection string, or embedded deployments made on demand.
package deployment

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Topology is a topology as runOnRequirements names it.
type Topology string

// The topologies. ShardedReplicaSet is met by any sharded cluster whose
// shards are replica sets.
const (
	Single            Topology = "single"
	ReplicaSet        Topology = "replicaset"
	Sharded           Topology = "sharded"
	LoadBalanced      Topology = "load-balanced"
	ShardedReplicaSet Topology = "sharded-replicaset"
)

// Description is what requirements are judged by. It can be known before the
// deployment runs.
type Description struct {
	// Name is short and stable: "replicaset 8.0", "sharded 4.2 auth".
	Name     string
	Topology Topology
	// Version holds major, minor, patch of versionArray.
	Version [3]int
	// ReplicaSetShards tells that all shards are replica sets.
	ReplicaSetShards bool
	Auth             bool
	AuthMechanisms   []string
	Serverless       bool
	// NoScripting tells that the servers execute no JavaScript.
	NoScripting bool
	// Parameters are the server parameters (getParameter: '*').
	Parameters bson.Raw
	Hosts      []string
}

// Servers gives topology and full version of each description, in order, without
// repetitions.
func Servers(all []Description) (servers []string) {
	for _, d := range all {
		servers = append(servers, fmt.Sprintf("%s %d.%d.%d", d.Topology, d.Version[0], d.Version[1], d.Version[2]))
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// Deployment is a running deployment. Methods may be called concurrently.
type Deployment interface {
	Description() Description
	// URI is the connection string with all seeds. It may hold secrets:
	// never print it.
	URI() string
	// SingleURI names just one mongos of a sharded cluster, or the load
	// balancer in front of a single one. Elsewhere it equals URI.
	SingleURI() string
	// DirectURI connects to one host alone, by its address as the driver
	// names it.
	DirectURI(address string) string
	// Owned tells that we started it, so that dropping things is no matter.
	Owned() bool
}

// Source hands out deployments to workers.
type Source interface {
	// Offers lists what it can give, in order of preference. Stable.
	Offers() []Description
	// Acquire gives offer number i to the caller alone, until Release. It
	// starts one if none is idle, and waits if it cannot have more.
	Acquire(ctx context.Context, i int) (Deployment, error)
	// Release gives it back. A broken one is not handed out again.
	Release(d Deployment, broken bool)
	// Close stops everything that the source started.
	Close() error
}
