// Package processtime limits waits for an answer so that a busy machine is not mistaken for a server that hangs.
package processtime

import (
	"context"
	"time"
)

// step is the length of the sleeps that make up a limit. It is short: a limit has more sleeps than an exchange with a
// server has steps.
const step = 20 * time.Millisecond

// Limit returns a context that ends with a cause after d of this process's own time: after short sleeps that together
// take d if nothing delays them. If no processor is free, each sleep takes longer, and so does each step of an exchange
// with a server. The limit therefore grows with the time that an answer takes.
func Limit(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return limit(ctx, d, cause, time.After)
}

func limit(ctx context.Context, d time.Duration, cause error,
	after func(time.Duration) <-chan time.Time) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go func() {
		for range d / step {
			select {
			case <-after(step):
			case <-limited.Done():
				return
			}
		}
		cancel(cause)
	}()
	return limited, func() { cancel(context.Canceled) }
}
