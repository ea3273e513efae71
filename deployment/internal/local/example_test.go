package local_test

import (
	"fmt"

	"github.com/unified-test-runner/utr/deployment/internal/local"
	"github.com/unified-test-runner/utr/embedded"
)

// A plan has the processes of a cluster; Start starts them.
func ExampleRelease_Plan() {
	release := local.Release{Mongod: "mongod", Mongos: "mongos", Version: local.Version{8, 0, 12}}
	plan, err := release.Plan(local.Shape{Topology: embedded.Sharded, Mongoses: 1})
	if err != nil {
		panic(err)
	}
	for _, set := range plan.Sets {
		fmt.Println("replica set", set.Name)
	}
	for i, p := range append(plan.Mongods, plan.Mongoses...) {
		fmt.Println(p.Name, local.Argv(p, release.Version, local.Place{Port: 27017 + i})[:2])
	}
	// Output:
	// replica set csrs
	// replica set shard0
	// csrs-0 [--port 27017]
	// shard0-0 [--port 27018]
	// mongos-0 [--port 27019]
}
