package deployment_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
)

// A source lends deployments to the workers of a run: here it starts a sharded cluster.
func ExampleOpenEmbedded() {
	source, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.Sharded}, Version: "8.0"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = source.Close() }()
	ctx := context.Background()
	d, err := source.Acquire(ctx, 0)
	if err != nil {
		panic(err)
	}
	defer source.Release(d, false)
	reply, err := deployment.Ask(ctx, d.URI(), bson.D{{Key: "ping", Value: 1}})
	fmt.Println(d.Description().Topology, d.Owned(), reply.Lookup("ok"), err)
	// Output:
	// sharded true {"$numberDouble":"1.0"} <nil>
}
