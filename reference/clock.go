package reference

import (
	"context"
	"time"
)

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
