package embedded

import (
	"github.com/unified-test-runner/utr/embedded/data"
	"github.com/unified-test-runner/utr/embedded/server"
)

// newBackend is the data of a deployment, shared by its servers.
func newBackend(o Options) server.Backend {
	return data.New(data.Options{
		ReplicaSet:         o.Topology == ReplicaSet,
		Sharded:            o.Topology == Sharded || o.Topology == LoadBalanced,
		TransactionalWrite: server.TransactionalWrite,
	})
}
