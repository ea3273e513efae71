package embedded

import (
	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
)

// newBackend is the data of a deployment, empty.
func newBackend(o Options) server.Backend {
	return data.New(data.Options{
		Sharded:     kinds[o.Topology] == server.Sharded,
		ReplicaSet:  o.Topology == ReplicaSet,
		ShardName:   server.ShardName,
		ShardHost:   server.ShardHost(o.SetName),
		NoScripting: o.NoScripting,
	})
}
