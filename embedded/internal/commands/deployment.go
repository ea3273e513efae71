// Package commands implements the commands of an embedded deployment that work on its store, each in the same way: a
// row of the table describes it, and its arguments are parsed and planned before it runs.
//
// A deployment has one Deployment, shared by all of its members or mongoses. The server gets the table from Rows and
// dispatches requests to it.
package commands

import (
	"cmp"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/store"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Options describe the deployment. Without Sharded and ReplicaSet it is a standalone.
type Options struct {
	// Sharded deployments have config.shards. Sharded and ReplicaSet deployments have an oplog, transactions,
	// retryable writes and change streams.
	Sharded    bool
	ReplicaSet bool
	// ShardName and ShardHost identify the only shard of a sharded deployment, such as "s0" and "set/host:port".
	// The defaults are "s0" and "s0/localhost:27310".
	ShardName, ShardHost string
	NoScripting          bool // disables server-side JavaScript
}

// Deployment is the store of a deployment and the cursors that are open on its servers. All methods may be called
// concurrently.
type Deployment struct {
	*store.Store
	opts    Options
	cursors cursors
}

// New returns the data of a new deployment.
func New(opts Options) *Deployment {
	opts.ShardName = cmp.Or(opts.ShardName, "s0")
	opts.ShardHost = cmp.Or(opts.ShardHost, opts.ShardName+"/localhost:27310")
	d := &Deployment{Store: store.New(opts.ReplicaSet || opts.Sharded), opts: opts,
		cursors: cursors{open: map[int64]*cursor{}, recent: map[recentKey]time.Time{}}}
	d.Seed("admin", "system.version")
	d.Seed("config", "system.sessions")
	switch {
	case opts.Sharded:
		d.Seed("config", "shards",
			value.Doc("_id", opts.ShardName, "host", opts.ShardHost, "state", int32(1), "topologyTime", d.Now()))
	case opts.ReplicaSet:
		d.Seed("config", "transactions")
		fallthrough
	default:
		d.Seed("local", "startup_log")
	}
	return d
}

// Scripting reports whether server-side JavaScript is enabled.
func (d *Deployment) Scripting() bool { return !d.opts.NoScripting }

// KillSessions closes the cursors and aborts the transactions of sessions, or of all sessions if lsids is empty.
// Records of retryable writes remain.
func (d *Deployment) KillSessions(lsids []bson.Raw) {
	keys := map[string]bool{}
	for _, l := range lsids {
		keys[store.SessionKey(l)] = true
	}
	chosen := func(key string) bool { return len(lsids) == 0 || keys[key] }
	d.cursors.killSessions(chosen)
	d.Store.KillSessions(chosen)
}
