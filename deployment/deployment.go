// Package deployment gives the runner something to run tests on: a cluster
// named by a connection string, or embedded deployments made on demand.
package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment/local"
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
	// ReplicaSetShards reports whether all shards are replica sets.
	ReplicaSetShards bool
	Auth             bool
	AuthMechanisms   []string
	Serverless       bool
	// NoScripting reports whether the servers execute no JavaScript.
	NoScripting bool
	// Parameters are the server parameters (getParameter: '*').
	Parameters bson.Raw
	Hosts      []string
}

// named gives the description its name.
func (d Description) named() Description {
	d.Name = fmt.Sprintf("%s %d.%d", d.Topology, d.Version[0], d.Version[1])
	if d.Auth {
		d.Name += " auth"
	}
	return d
}

// preferred are the topologies that we start, in the order in which a run prefers
// them: a replica set meets most requirements.
func preferred() []Topology { return []Topology{ReplicaSet, Sharded, LoadBalanced, Single} }

// offers gives what can be started of the topologies that are asked for, or of all if
// none is: without and with access control, unless auth says which. A topology that
// cannot be had is left out, or is an error if it must be there.
func (d Description) offers(asked []Topology, must bool, auth *bool, can func(Topology) error) (offers []Description, err error) {
	if len(asked) == 0 {
		asked = preferred()
	}
	for _, d.Topology = range asked {
		if !slices.Contains(preferred(), d.Topology) {
			return nil, fmt.Errorf("topology %q cannot be started", d.Topology)
		}
		if err := can(d.Topology); err != nil && must {
			return nil, err
		} else if err != nil {
			continue
		}
		d.Hosts, d.ReplicaSetShards = nil, d.Topology == Sharded || d.Topology == LoadBalanced
		for _, d.Auth = range []bool{false, true} {
			if auth == nil || *auth == d.Auth {
				offers = append(offers, d.named())
			}
		}
	}
	return offers, nil
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
	// Owned reports whether we started it, so that dropping collections harms nobody.
	Owned() bool
	// Dead returns how a server ended that should be running. It is nil while all
	// servers run, and for servers that are not processes of ours.
	Dead() error
	// Log returns the lines that the servers logged from one time to another, both
	// included, oldest first. It returns nothing if the logs cannot be read. It may be
	// called while the servers run, and may omit old lines.
	Log(from, to time.Time) []LogLine
}

// LogLine is one line of the log that a server keeps of itself. It holds no
// secret: no password, no payload of an authentication. Server is host:port, as
// drivers name it.
type LogLine = local.Line

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
