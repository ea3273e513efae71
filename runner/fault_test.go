package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A clean-up has its own limit, and a shorter one as soon as somebody waits for
// the end of the run.
func TestCleaningUp(t *testing.T) {
	const own, after = "the limit of the clean-up of ", "the limit of the clean-up after an interruption of "
	for _, r := range []struct {
		reason                         string
		interrupted, limit, then, ends time.Duration // in seconds; interrupted -1 is never
		cause                          string
	}{
		{"nobody interrupts", -1, 15, 3, 15, own + "15s has passed"},
		{"interrupted before it", 0, 15, 3, 3, after + "3s has passed"},
		{"interrupted meanwhile", 1, 15, 3, 4, after + "3s has passed"},
		{"the first limit passes first", 1, 2, 3, 2, own + "2s has passed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if r.interrupted == 0 {
				interrupt()
			} else if r.interrupted > 0 {
				time.AfterFunc(r.interrupted*time.Second, interrupt)
			}
			began := time.Now()
			cleaning, done := cleaningUp(ctx, r.limit*time.Second, r.then*time.Second)
			defer done()
			<-cleaning.Done()
			testkit.Equal(t, r.reason, context.Cause(cleaning), r.cause)
			testkit.Equal(t, r.reason, time.Since(began), r.ends*time.Second)
		})
	}
}
