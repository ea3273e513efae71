package enginetest_test

import (
	"context"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/reference"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func deployment(t *testing.T, o embedded.Options) string {
	t.Helper()
	d, err := embedded.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.URI()
}

// TestEngines holds the engines of this project to the table.
func TestEngines(t *testing.T) {
	for _, row := range []struct {
		name string
		open func() (engine.Engine, error)
	}{
		{"reference", func() (engine.Engine, error) { return reference.New(reference.Options{}) }},
		{"driver", func() (engine.Engine, error) { return driver.New(driver.Options{}), nil }},
	} {
		for name, o := range map[string]embedded.Options{
			"replica set":   {Topology: embedded.ReplicaSet},
			"load balanced": {Topology: embedded.LoadBalanced, Mongoses: 1}, // fail points are set on any
		} {
			t.Run(row.name+" on a "+name, func(t *testing.T) {
				e, err := row.open()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = e.Close() }()
				enginetest.Test(t, e, deployment(t, o))
			})
		}
	}
}
