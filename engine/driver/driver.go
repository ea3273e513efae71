// Package driver is the official Go driver (go.mongodb.org/mongo-driver/v2) as
// an engine: entities and operations of the format are turned into calls of
// its public API, and what it gives back into outcomes and events.
//
// The adapter adds nothing to the driver's behaviour and takes nothing away:
// it never retries, times out or repairs by itself. An argument, an option or
// an operation that the driver does not have is refused with a
// *result.Error that names it as Unsupported, so that the test is skipped;
// nothing is dropped silently.
package driver

import (
	"runtime/debug"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// New makes the engine. The functions change the options of each client before it
// connects, after everything else. They are called concurrently.
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

// driver is the engine: what its tests share.
type driver struct {
	enginekit.Engine
	table  enginekit.Table[row]
	change []func(*options.ClientOptions)
}

// modulePath is the driver's.
const modulePath = "go.mongodb.org/mongo-driver/v2"

// version is that of the driver that this binary is built with, without the
// leading v; "unknown" if the binary does not tell (as in tests).
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == modulePath {
				return m.Version[1:]
			}
		}
	}
	return "unknown"
}
