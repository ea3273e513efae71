// Package driver implements an engine with the official Go driver
// (go.mongodb.org/mongo-driver/v2). It converts entities and operations of the
// format to calls of the driver's public API, and their results to outcomes and
// events.
//
// The package does not change the behaviour of the driver: it never retries,
// times out or corrects anything itself. An argument, option or operation that
// the driver does not have is never ignored: it is rejected with a *result.Error
// that names it as Unsupported, so that the test is skipped.
package driver

import (
	"runtime/debug"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// New returns the engine. The functions in change are called last, concurrently, and
// modify the options of each client before it connects.
func New(change ...func(*options.ClientOptions)) engine.Engine {
	d := &driver{table: enginekit.NewTable(rows()), change: change}
	d.NewTest = func() engine.Test {
		return &test{driver: d, Test: enginekit.Test{Unsupported: unsupported, Make: d.make, CloseEntity: closeEntity}}
	}
	d.Description = engine.Description{
		Name:          "driver",
		Version:       version(),
		SchemaVersion: enginekit.SchemaVersion,
		Operations:    d.table.Names(),
		Features:      []string{"client backpressure", "csot", "retryable reads", "retryable writes", "sessions", "transactions"},
	}
	return d
}

// driver is the engine.
type driver struct {
	enginekit.Engine
	table  enginekit.Table[row]
	change []func(*options.ClientOptions)
}

// version returns the version of the driver in this binary, without the leading v.
// In tests, whose binaries do not record it, it is "unknown".
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "go.mongodb.org/mongo-driver/v2" {
				return m.Version[1:]
			}
		}
	}
	return "unknown"
}
