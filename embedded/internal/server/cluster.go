// Package server implements the protocol of the embedded deployment: connections, handshake, authentication, fail
// points, sessions, the state of a replica set, and the checks before each command. This package contains the commands
// of the protocol; a Backend provides those that work on data.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// Backend contains the data of a deployment. All its servers share one. Its methods are called concurrently.
type Backend interface {
	// Rows returns the commands of the backend.
	Rows() []commands.Row
	// OperationTime returns the time of the latest operation.
	OperationTime() bson.Timestamp
	// ClusterTime advances the cluster time to seen, if that is later, and returns it.
	ClusterTime(seen bson.Timestamp) bson.Timestamp
	// KillSessions aborts the operations of sessions, given by lsid documents; nil means all sessions.
	KillSessions(lsids []bson.Raw)
	// Scripting reports whether it executes JavaScript.
	Scripting() bool
	// EndTerm aborts the open transactions and running writes of the primary of a term.
	EndTerm(term int64)
}

// Topology is the shape of a deployment, as runOnRequirements name it. "" means Standalone.
type Topology string

// The topologies.
const (
	Standalone   Topology = "single"
	ReplicaSet   Topology = "replicaset"
	Sharded      Topology = "sharded"
	LoadBalanced Topology = "load-balanced"
)

// Name returns the name of a topology in messages, "" if it is unknown.
func (t Topology) Name() string {
	return map[Topology]string{"": "standalone", Standalone: "standalone", ReplicaSet: "replica set",
		Sharded: "sharded cluster", LoadBalanced: "load balanced cluster"}[t]
}

// HasMongos reports whether the servers are mongoses.
func (t Topology) HasMongos() bool { return t == Sharded || t == LoadBalanced }

// Config describes a deployment's servers.
type Config struct {
	Topology Topology
	Version  *version.Version
	SetName  string  // of the replica set, or of the only shard
	Users    *Users  // nil: no users yet
	Backend  Backend // required
}

// Cluster contains the servers of a deployment, and the state of its replica set. Its methods may be called
// concurrently.
type Cluster struct {
	Config
	commands map[string]*command
	sequence *failpoint.Registry
	held     failpoint.Held
	log      serverLog
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu      sync.Mutex
	members []*Server // in the order in which they were added
	primary *Server   // may be nil
	term    int64
	set     *SetConfig // of a replica set; immutable
}

// NewCluster creates a deployment without servers. The caller must Close it.
func NewCluster(config Config) *Cluster {
	config.Topology = cmp.Or(config.Topology, Standalone)
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{Config: config, ctx: ctx, cancel: cancel, commands: allCommands(config.Backend.Rows()),
		set:      &SetConfig{},
		sequence: failpoint.NewRegistry(rand.Float64, nil, failpoint.FailCommandSequence)}
	if c.Users == nil {
		c.Users = new(Users)
	}
	return c
}

const closeTimeout = 30 * time.Second // for connections and commands to end

// Close stops all servers, connections and commands, and waits for them. It returns an error if some did not end.
func (c *Cluster) Close() error {
	c.mu.Lock()
	c.cancel()
	members := slices.Clone(c.members)
	c.mu.Unlock()
	var errs []error
	for _, s := range members {
		errs = append(errs, s.stop())
		s.releasePort()
	}
	ended := make(chan struct{})
	go func() {
		c.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
		errs = append(errs, fmt.Errorf("connections of the embedded deployment did not end within %v", closeTimeout))
	}
	return errors.Join(errs...)
}
