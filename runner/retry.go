package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// attempt does a job, and again as often as the configuration allows while it
// does not end well. An attempt that is kept from running says nothing and
// does not count.
func (r *run) attempt(ctx context.Context, j job) *result.Verdict {
	attempts := []*result.Verdict{r.do(ctx, j)}
	for last := attempts[0]; last.Status.Red() && len(attempts) <= r.cfg.Retries && ctx.Err() == nil && r.stopped() == nil; {
		if last = r.do(ctx, j); last.Status == result.Skipped {
			break
		}
		attempts = append(attempts, last)
	}
	return together(attempts)
}

// together makes one verdict of all attempts at a test: a pass after a failure
// does not count as a pass.
func together(attempts []*result.Verdict) *result.Verdict {
	n := len(attempts)
	last := attempts[n-1]
	if n == 1 {
		return last
	}
	v := *last
	switch {
	case last.Status.Red():
		v.Reason = strings.TrimPrefix(fmt.Sprintf("%s; not well at any of %d attempts", v.Reason, n), "; ")
	case last.Status == result.Passed:
		v = *attempts[n-2]
		v.Status = result.Flaky
		v.Reason = strings.TrimSuffix(fmt.Sprintf("passed at attempt %d, after %s: %s", n, endings(attempts[:n-1]), v.Reason), ": ")
	}
	v.Attempts, v.Began = attempts, attempts[0].Began
	v.Duration, v.Timings = 0, result.Timings{}
	for _, a := range attempts {
		v.Duration += a.Duration
		v.Timings.Add(a.Timings)
	}
	return &v
}

// endings says how attempts ended, such as "failed, broken".
func endings(attempts []*result.Verdict) string {
	var words []string
	for _, a := range attempts {
		words = append(words, string(a.Status))
	}
	return strings.Join(words, ", ")
}
