package enginetest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func deployment(t *testing.T, o embedded.Options) string {
	t.Helper()
	d, err := embedded.Start(context.Background(), o)
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d.URI()
}

// The engines of this project have all behaviors.
func TestEngines(t *testing.T) {
	reference, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	for name, e := range map[string]engine.Engine{"reference": reference, "driver": driver.New()} {
		defer func() { _ = e.Close() }()
		for on, o := range map[string]embedded.Options{
			"replica set":   {Topology: embedded.ReplicaSet},
			"load balanced": {Topology: embedded.LoadBalanced, Mongoses: 1}, // fail points are set on an arbitrary mongos
		} {
			t.Run(name+" on a "+on, func(t *testing.T) { suitetest.Behaviors(t, e, deployment(t, o)) })
		}
	}
}
