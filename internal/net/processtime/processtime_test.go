package processtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var errLimit = errors.New("no answer")

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		reason   string
		late     time.Duration // how much later than requested a sleep ends
		outer    time.Duration // limit of the outer context; 0: none
		end      time.Duration
		cause    error
		canceled bool
	}{
		{"a quiet machine", 0, 0, 2 * time.Second, errLimit, false},
		{"a busy machine, on which each step takes six times as long", 100 * time.Millisecond, 0, 12 * time.Second,
			errLimit, false},
		{"the outer context ends before", 0, time.Second, time.Second, context.DeadlineExceeded, false},
		{"the wait is over", 0, 0, 0, context.Canceled, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				outer := t.Context()
				if c.outer > 0 {
					var cancel context.CancelFunc
					outer, cancel = context.WithTimeout(outer, c.outer)
					defer cancel()
				}
				ctx, cancel := limit(outer, 2*time.Second, errLimit,
					func(d time.Duration) <-chan time.Time { return time.After(d + c.late) })
				defer cancel()
				if c.canceled {
					cancel()
				}
				<-ctx.Done()
				testkit.Equal(t, "the cause", context.Cause(ctx), c.cause)
				testkit.Equal(t, "ended after", time.Since(began), c.end)
			})
		})
	}
}
