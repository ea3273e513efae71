package local

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The pauses of a wait: short at first, since much is there at once, and
// longer as it goes on, so that a busy machine is left in peace.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// await asks again and again until there is no error, one that is permanent, or
// the context ends. The error says what was waited for, and why it was not there
// the last time.
func await(ctx context.Context, what string, ask func(context.Context) error) error {
	begun := time.Now()
	deadline, bounded := ctx.Deadline()
	var last error
	for pause := firstPause; ; pause = min(lastPause, pause*3/2) {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		// An error of the end says nothing. It can come before the context has noticed the end.
		late := ctx.Err() != nil || bounded && !time.Now().Before(deadline)
		if last == nil || !late {
			last = err
		}
		if p := (permanent{}); errors.As(err, &p) {
			return fmt.Errorf("%s: %w", what, p.error)
		}
		if ctx.Err() == nil {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("waited %s for %s: %w (seen last: %s)", time.Since(begun).Round(time.Millisecond), what, context.Cause(ctx), last)
	}
}
