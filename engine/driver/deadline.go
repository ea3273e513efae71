package driver

import (
	"context"
	"time"
)

// The driver takes a context's deadline for a timeoutMS: it sends maxTimeMS
// and retries until then. So an operation's context must have a deadline if,
// and only if, the suite gives it one; the runner's own time limit becomes a
// plain cancellation.

// timeoutKey is the key of a timeoutMS in a context: its deadline, which
// operations in the callback of withTransaction share.
type timeoutKey struct{}

// undated gives a context without a deadline that ends when another does.
func undated(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if deadline, under := ctx.Value(timeoutKey{}).(time.Time); under && !time.Now().Before(deadline) {
			return // it is a timeoutMS that is over, of which timed makes a timeout again
		}
		cancel(context.Cause(ctx))
	})
	return out, func() { stop(); cancel(nil) }
}

// timed applies a timeoutMS, nil for none of its own.
func timed(ctx context.Context, timeout *time.Duration) (context.Context, context.CancelFunc) {
	deadline, under := ctx.Value(timeoutKey{}).(time.Time)
	switch {
	case timeout != nil:
		deadline = time.Now().Add(*timeout)
	case !under:
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithValue(ctx, timeoutKey{}, deadline), deadline)
}
