package runner

import (
	"testing"
	"time"

	"github.com/unified-test-runner/utr/result"
)

func TestAttemptsTogether(t *testing.T) {
	v := func(s result.Status) *result.Verdict {
		return &result.Verdict{Status: s, Duration: time.Second, Timings: result.Timings{Setup: 1, Server: 2}, Mismatches: make([]result.Mismatch, 1)}
	}
	for _, r := range []struct {
		reason   string
		attempts []result.Status
		want     result.Status
	}{
		{"one attempt is what it is", []result.Status{result.Passed}, result.Passed},
		{"a failure is not tried again if nobody wants that", []result.Status{result.Failed}, result.Failed},
		{"a pass after a failure is no pass", []result.Status{result.Failed, result.Passed}, result.Flaky},
		{"nor after several", []result.Status{result.Failed, result.Broken, result.Passed}, result.Flaky},
		{"nor after a break", []result.Status{result.Broken, result.Passed}, result.Flaky},
		{"failures all the way", []result.Status{result.Failed, result.Failed}, result.Failed},
		{"the last one counts among bad ones", []result.Status{result.Failed, result.Broken}, result.Broken},
		{"what is known to fail is no pass", []result.Status{result.Broken, result.KnownFailing}, result.KnownFailing},
	} {
		var attempts []*result.Verdict
		for _, s := range r.attempts {
			attempts = append(attempts, v(s))
		}
		got := together(attempts)
		n := time.Duration(len(attempts))
		if got.Status != r.want || got.Duration != n*time.Second || got.Timings.Setup != n || got.Timings.Server != 2*n || len(got.Mismatches) != 1 {
			t.Errorf("%s: %+v", r.reason, got)
		}
		if n > 1 && len(got.Attempts) != len(attempts) || n == 1 && got.Attempts != nil {
			t.Errorf("%s: %d attempts are told", r.reason, len(got.Attempts))
		}
	}
}
