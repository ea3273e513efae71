package reference

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
)

// Options configure the engine. The zero value is the current policy with a real clock.
type Options struct {
	// Policy is the name of the retry policy (retry.Policies); "" is the current one.
	Policy string
	// Heartbeat is the default of heartbeatFrequencyMS, and the maxAwaitTimeMS of an awaitable hello. 0 means 25 ms.
	// The specification's 10 s is too long for tests: a mongos would stay Unknown until its next heartbeat after a
	// state change error.
	Heartbeat time.Duration
	// Now is the clock; nil is time.Now. Socket deadlines are always real time.
	Now func() time.Time
	// Backoff controls whether backoffs sleep.
	Backoff Backoff
	// Random returns a number in [0, 1) for jitter and server selection, or 1; nil is an unseeded source. It is called
	// concurrently.
	Random func() float64

	// Tracing configures spans.
	Tracing Tracing

	// dial makes connections; nil is a net.Dialer. Tests connect in memory.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Backoff controls whether backoffs sleep.
type Backoff string

// The backoff modes.
const (
	BackoffReal Backoff = "real" // sleep; the default
	// BackoffNone reports delays without sleeping, so they do not count against timeoutMS.
	BackoffNone Backoff = "none"
)

// backOff waits for a delay or the end of the context.
func (o Options) backOff(ctx context.Context, d time.Duration) (took time.Duration) {
	if o.Backoff == BackoffNone || d <= 0 {
		return 0
	}
	begun := o.Now()
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return o.Now().Sub(begun)
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, 25*time.Millisecond)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.dial == nil {
		o.dial = new(net.Dialer).DialContext
	}
	return o
}

// New returns a reference engine. It returns an error for an unknown policy or backoff mode.
func New(o Options) (engine.Engine, error) {
	policy, err := retry.Named(o.Policy)
	if err != nil {
		return nil, err
	}
	if o.Backoff != "" && o.Backoff != BackoffReal && o.Backoff != BackoffNone {
		return nil, fmt.Errorf("backoff %q is neither %s nor %s", o.Backoff, BackoffReal, BackoffNone)
	}
	d := &driver{options: o.withDefaults(), policy: policy, table: enginekit.NewTable(rows())}
	d.NewTest = func() engine.Test {
		return &test{driver: d, Test: enginekit.Test{ClientFields: []string{"observeLogMessages", "observeTracingMessages"},
			Unsupported: unsupported,
			Make:        d.make, CloseEntity: closeEntity}}
	}
	d.Description = engine.Description{
		Name:          "reference",
		Version:       policy.Name,
		SchemaVersion: enginekit.SchemaVersion,
		Operations:    d.table.Names(),
		Features: []string{"client backpressure", "csot", engine.FeatureLogging, engine.FeatureTracing, "retryable reads",
			"retryable writes",
			"sessions", "transactions"},
	}
	return d, nil
}

// driver is the engine.
type driver struct {
	enginekit.Engine
	options        Options
	policy         *retry.Policy
	table          enginekit.Table[row]
	authenticators authenticators
}

// deadlineKey is the context key of the deadline of timeoutMS, on the engine's clock. The context's own deadline is
// real time, for sockets.
type deadlineKey struct{}

// within applies a timeoutMS to a context. Nil and 0 mean no timeout.
func (o Options) within(ctx context.Context, limit *time.Duration) (context.Context, context.CancelFunc) {
	if limit == nil || *limit == 0 {
		return ctx, func() {}
	}
	return o.until(ctx, o.Now().Add(*limit))
}

// until applies a deadline on the engine's clock to a context. Zero means none. An existing earlier deadline is kept.
func (o Options) until(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	if at.IsZero() {
		return ctx, func() {}
	}
	if before, ok := deadlineOf(ctx); ok && before.Before(at) {
		at = before
	}
	return context.WithTimeout(context.WithValue(ctx, deadlineKey{}, at), at.Sub(o.Now()))
}

// deadlineOf returns the deadline of timeoutMS, if any.
func deadlineOf(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(deadlineKey{}).(time.Time)
	return at, ok
}

// left returns the time until the deadline of timeoutMS, or forever without one.
func (o Options) left(ctx context.Context) time.Duration {
	if at, ok := deadlineOf(ctx); ok {
		return at.Sub(o.Now())
	}
	return forever
}
