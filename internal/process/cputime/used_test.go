package cputime

import (
	"runtime"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// A loop uses CPU time, at most the time on the clock of each core.
func TestUsed(t *testing.T) {
	began, before := time.Now(), Used()
	testkit.Until(t, "the loop uses 50 ms", func() bool {
		for i := range 100_000 {
			runtime.KeepAlive(i)
		}
		return Used()-before >= 50*time.Millisecond
	})
	used, most := Used()-before, time.Duration(runtime.NumCPU())*time.Since(began)
	testkit.Equal(t, "not more than the cores have", used <= most+20*time.Millisecond, true)
}
