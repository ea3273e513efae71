package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A clean-up has its own limit, and a shorter one as soon as somebody waits for
// the end of the run.
func TestCleaningUp(t *testing.T) {
	const own, after = "the limit of the clean-up of ", "the limit of the clean-up after an interruption of "
	for _, row := range []struct {
		reason      string
		interrupted time.Duration // when the run is, -1 for never
		limit, then time.Duration
		ends        time.Duration
		cause       string
	}{
		{"nobody interrupts", -1, 15 * time.Second, 3 * time.Second, 15 * time.Second, own + "15s has passed"},
		{"interrupted before it", 0, 15 * time.Second, 3 * time.Second, 3 * time.Second, after + "3s has passed"},
		{"interrupted meanwhile", time.Second, 15 * time.Second, 3 * time.Second, 4 * time.Second, after + "3s has passed"},
		{"the first limit passes first", time.Second, 2 * time.Second, 3 * time.Second, 2 * time.Second, own + "2s has passed"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				if row.interrupted == 0 {
					interrupt()
				} else if row.interrupted > 0 {
					time.AfterFunc(row.interrupted, interrupt)
				}
				began := time.Now()
				cleaning, done := cleaningUp(ctx, row.limit, row.then)
				defer done()
				<-cleaning.Done()
				if cause := context.Cause(cleaning).Error(); cause != row.cause || time.Since(began) != row.ends {
					t.Errorf("%q after %s", cause, time.Since(began))
				}
			})
		})
	}
}
