package enginetest_test

import (
	"context"
	"fmt"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/enginetest"
)

// An engine checks itself against the behaviors that the runner relies on. Here only the first two: they are quick.
func ExampleBehaviors() {
	ctx := context.Background()
	deployment, err := embedded.Start(ctx, embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		panic(err)
	}
	defer func() { _ = deployment.Close() }()
	for _, b := range enginetest.Behaviors()[:2] {
		fmt.Println(b.Name, b.Check(ctx, driver.New(), deployment.URI()))
	}
	// Output:
	// describes itself <nil>
	// finds what it inserted, and logs the commands <nil>
}
