package driver

import (
	"runtime/debug"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Options configure the engine. The zero value is what runs use.
type Options struct {
	// Heartbeat is the heartbeatFrequencyMS of clients that do not set it; 0
	// means 500 ms, the least that the driver takes. Its own 10 s is how long a
	// server that an error has made Unknown may stay so: the driver does not
	// interrupt an awaitable hello to look at once.
	Heartbeat time.Duration
	// Client changes the options of each client before it connects, after
	// everything else. Nil changes nothing. It is called concurrently.
	Client func(*options.ClientOptions)
	// Now is the clock of events; nil is time.Now.
	Now func() time.Time
}

// New makes the engine.
func New(o Options) engine.Engine {
	if o.Heartbeat == 0 {
		o.Heartbeat = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &driver{options: o, table: enginekit.NewTable(rows())}
	d.NewTest = func() engine.Test { return newTest(d) }
	d.Description = engine.Description{
		Name:          "driver",
		Version:       Version(),
		SchemaVersion: enginekit.SchemaVersion,
		Operations:    d.table.Names(),
		Features:      []string{"client backpressure", "csot", "retryable reads", "retryable writes", "sessions", "transactions"},
	}
	return d
}

// driver is the engine: what its tests share.
type driver struct {
	enginekit.Engine
	options Options
	table   enginekit.Table[row]
}

// modulePath is the driver's.
const modulePath = "go.mongodb.org/mongo-driver/v2"

// Version is that of the driver that this binary is built with, without the
// leading v; "unknown" if the binary does not tell (as in tests).
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == modulePath {
				return m.Version[1:]
			}
		}
	}
	return "unknown"
}
