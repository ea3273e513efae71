// Package deployment provides what tests run on: a running cluster, clusters of local binaries or of an orchestration
// service, or embedded deployments.
package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded"
)

// Topology is a topology in runOnRequirements.
type Topology = embedded.Topology

// Any sharded cluster whose shards are replica sets satisfies ShardedReplicaSet.
const (
	Single                     = embedded.Standalone
	ReplicaSet                 = embedded.ReplicaSet
	Sharded                    = embedded.Sharded
	LoadBalanced               = embedded.LoadBalanced
	ShardedReplicaSet Topology = "sharded-replicaset"
)

// Description is what requirements are compared with. It can be known before the deployment is started.
type Description struct {
	Name             string // short and stable, such as "replicaset 8.0" or "sharded 4.2 auth"
	Topology         Topology
	Version          [3]int // major, minor, and patch of versionArray
	ReplicaSetShards bool   // whether all shards are replica sets
	Auth             bool
	AuthMechanisms   []string
	Lacks            []Feature
	Parameters       bson.Raw // the server parameters (getParameter: '*')
	Hosts            []string // as clients reach them
	Servers          []string // for messages: the same, or the servers behind the proxy for fail points
	FailPoints       []string // names of those that tests can set; nil if the servers decide
	LackingFields    []string // fields of the data of fail points that tests cannot set
	Shared           bool     // several deployments are the same servers, each behind a proxy of its own
}

// Feature is a feature that servers have by default and that some tests need. An option may disable it, and servers of
// other vendors may lack it, whatever version they report.
type Feature string

const (
	JavaScript   Feature = "server-side JavaScript"
	Sessions     Feature = "sessions"
	Transactions Feature = "transactions"
)

// named sets the name.
func (d Description) named() Description {
	d.Name = fmt.Sprintf("%s %d.%d", d.Topology, d.Version[0], d.Version[1])
	if d.Auth {
		d.Name += " auth"
	}
	return d
}

// preferred are the topologies that can be started, in order of preference: a replica set satisfies most requirements.
func preferred() []Topology { return []Topology{ReplicaSet, Sharded, LoadBalanced, Single} }

// offers returns the requested topologies, or all, without and with access control unless auth selects one. If can
// rejects a topology, offers fails when must is set and skips it otherwise.
func (d Description) offers(requested []Topology, must bool, auth *bool,
	can func(Topology) error) (offers []Description, err error) {
	if len(requested) == 0 {
		requested = preferred()
	}
	for _, topology := range requested {
		if !slices.Contains(preferred(), topology) {
			return nil, fmt.Errorf("topology %q cannot be started", topology)
		}
		if err := can(topology); err != nil && must {
			return nil, err
		} else if err != nil {
			continue
		}
		for _, controlled := range []bool{false, true} {
			if auth != nil && *auth != controlled {
				continue
			}
			offer := d
			offer.Topology, offer.Auth, offer.Hosts = topology, controlled, nil
			offer.ReplicaSetShards = topology == Sharded || topology == LoadBalanced
			offers = append(offers, offer.named())
		}
	}
	return offers, nil
}

// Servers returns the distinct topologies with full versions, sorted.
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
	// URI is the connection string with all seeds. It may contain secrets: never print it.
	URI() string
	// SingleURI is the connection string of one mongos of a sharded cluster, or of the load balancer for one mongos.
	// Otherwise it equals URI.
	SingleURI() string
	// DirectURI is the connection string of one host, by its address as the driver reports it.
	DirectURI(address string) string
	// Sessions returns the ids (lsid.id) of the sessions of all commands since the last call, if the description has
	// Shared.
	Sessions() []bson.RawValue
	// Owned reports whether this run started the deployment, so that dropping collections is safe.
	Owned() bool
	// Dead returns how a server ended unexpectedly, or nil while all run. For servers that are not our processes, it
	// returns nil.
	Dead() error
	// Log returns the lines that the servers logged from one time to another, both included, oldest first. It returns
	// nothing if the logs cannot be read. It may be called while the servers run, and may omit old lines.
	Log(from, to time.Time) []LogLine
}

// orIgnore returns f, or a function that does nothing.
func orIgnore(f func(string)) func(string) {
	if f != nil {
		return f
	}
	return func(string) {}
}

// LogLine is one line of a server's log. It contains no passwords and no authentication payloads. Server is host:port,
// as drivers report it.
type LogLine = embedded.LogLine

// Source lends deployments to workers.
type Source interface {
	// Offers lists the available deployments in order of preference. The list does not change.
	Offers() []Description
	// Acquire returns a deployment of offer i for exclusive use until Release. If none is idle, it starts one, or waits
	// if it cannot.
	Acquire(ctx context.Context, i int) (Deployment, error)
	// Release returns a deployment. A broken one is not lent again as it is.
	Release(d Deployment, broken bool)
	// Repairs reports whether the source handles broken deployments, even existing ones: it repairs them, continues with
	// others, or fails immediately when none is left.
	Repairs() bool
	// KeepLogs makes Close keep the logs of servers that the source started and report their folders, after a failure.
	KeepLogs()
	// Close stops and removes everything that the source started.
	Close() error
}
