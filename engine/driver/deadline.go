package driver

import (
	"context"
	"time"
)

// The driver treats a context's deadline as a timeoutMS: it sends maxTimeMS and retries until then. So the context of
// an operation must have a deadline if and only if the suite sets one; the runner's own time limit becomes a plain
// cancellation.

// timeoutKey is the context key of the deadline that timeoutMS sets. Operations in
// the callback of withTransaction share it.
type timeoutKey struct{}

// undated returns a context without a deadline that ends when ctx does.
func undated(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if deadline, under := ctx.Value(timeoutKey{}).(time.Time); under && !time.Now().Before(deadline) {
			return // the deadline of a timeoutMS: timed applies it again
		}
		cancel(context.Cause(ctx))
	})
	return out, func() { stop(); cancel(nil) }
}

// timed applies a timeoutMS. If it is nil, the deadline of a surrounding withTransaction applies.
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
