// Package reference is the reference engine: a driver whose decisions are the
// retry specifications in executable form.
//
// It picks servers itself (reference/selection), builds and sends each attempt
// itself, and asks reference/retry what to do next. Monitoring, connection
// pools and handshakes come from the Go driver's public experimental packages,
// so that its CMAP and SDAM events are those of a real driver.
package reference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
)

// Options configure the engine. The zero value is the current state of the
// specifications with a real clock.
type Options struct {
	// Policy names the retry policy (retry.Policies); "" is the current one.
	Policy string
	// Heartbeat is the heartbeatFrequencyMS of clients that do not set it.
	// The specification's 10 s is far too long for tests: a mongos that a
	// state change error made unknown would stay so until its next heartbeat.
	// 0 means 25 ms; it also is what an awaitable hello waits for.
	Heartbeat time.Duration
	// Now is the clock, nil is time.Now. Deadlines on sockets are real time
	// in any case.
	Now func() time.Time
	// Sleep waits for a backoff; nil waits in real time. It returns early
	// with the context's error.
	Sleep func(context.Context, time.Duration) error
	// Backoff says whether delays are slept.
	Backoff Backoff
	// Random gives a number in [0, 1), or 1; nil is a seedless source. It is the
	// jitter, and picks among servers. It is called concurrently.
	Random func() float64

	// dial makes connections; nil is a net.Dialer. Tests connect in memory.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Backoff says what becomes of the delays that the rules decide.
type Backoff string

// The ways to back off.
const (
	BackoffReal Backoff = "real" // sleep; "" is the same
	// BackoffNone decides and reports delays and does not sleep. The clock goes
	// on as it does, so what a delay would have left of timeoutMS is still there.
	BackoffNone Backoff = "none"
)

// backOff waits for a delay that the rules decided. If the context ends
// meanwhile, what follows will tell.
func (o Options) backOff(ctx context.Context, d time.Duration) {
	if o.Backoff != BackoffNone && d > 0 {
		_ = o.Sleep(ctx, d)
	}
}

func (o Options) withDefaults() Options {
	if o.Heartbeat == 0 {
		o.Heartbeat = 25 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.dial == nil {
		o.dial = new(net.Dialer).DialContext
	}
	return o
}

// sleep waits in real time.
func sleep(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err()
}

// New makes a reference engine. The error is an unknown policy, or an unknown
// way to back off.
func New(o Options) (engine.Engine, error) {
	policy, err := retry.Named(o.Policy)
	if err != nil {
		return nil, err
	}
	switch o.Backoff {
	case "", BackoffReal, BackoffNone:
	default:
		return nil, fmt.Errorf("backoff %q is neither %s nor %s", o.Backoff, BackoffReal, BackoffNone)
	}
	d := &driver{options: o.withDefaults(), policy: policy, table: enginekit.NewTable(rows())}
	d.NewTest = func() engine.Test {
		return &test{driver: d, Test: enginekit.Test{ClientFields: []string{"observeLogMessages"}, Unsupported: unsupported,
			Make: d.make, CloseEntity: closeEntity}}
	}
	d.Description = engine.Description{
		Name:          "reference",
		Version:       policy.Name,
		SchemaVersion: enginekit.SchemaVersion,
		Operations:    d.table.Names(),
		Features:      []string{"client backpressure", "csot", engine.FeatureLogging, "retryable reads", "retryable writes", "sessions", "transactions"},
	}
	return d, nil
}

// driver is the engine: what its tests share.
type driver struct {
	enginekit.Engine
	options        Options
	policy         *retry.Policy
	table          enginekit.Table[row]
	authenticators authenticators
}

// deadlineKey keeps the deadline of timeoutMS in a context, on the engine's
// clock. A context's own deadline, which is real time, ends what waits for a
// socket.
type deadlineKey struct{}

// within gives a timeoutMS to what is done with a context: none if it is nil or 0.
func (o Options) within(ctx context.Context, limit *time.Duration) (context.Context, context.CancelFunc) {
	if limit == nil || *limit == 0 {
		return ctx, func() {}
	}
	return o.until(ctx, o.Now().Add(*limit))
}

// until ends a context at a time of the engine's clock, and after as much real
// time. An earlier deadline stays.
func (o Options) until(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	if before, ok := deadlineOf(ctx); ok && before.Before(at) {
		at = before
	}
	return context.WithTimeout(context.WithValue(ctx, deadlineKey{}, at), at.Sub(o.Now()))
}

// deadlineOf is the deadline of timeoutMS; false without one.
func deadlineOf(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(deadlineKey{}).(time.Time)
	return at, ok
}

// left is the time until the deadline of timeoutMS. Without one there is a
// long time left, whatever deadline the context itself has.
func (o Options) left(ctx context.Context) time.Duration {
	if at, ok := deadlineOf(ctx); ok {
		return at.Sub(o.Now())
	}
	return forever
}
