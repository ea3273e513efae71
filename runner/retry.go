package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// attempt runs a job and retries it while it fails or breaks. A skipped retry does not count.
func (r *run) attempt(ctx context.Context, j job) *result.Verdict {
	attempts := []*result.Verdict{r.awake(ctx, j)}
	for last := attempts[0]; last.Status.FailsRun() && len(attempts) <= r.cfg.Retries && ctx.Err() == nil &&
		r.stopped() == nil; {
		if last = r.awake(ctx, j); last.Status == result.Skipped {
			break
		}
		attempts = append(attempts, last)
	}
	return merged(attempts)
}

// awake runs a job, and repeats it once if it did not pass and the process stalled. The first verdict does not count.
func (r *run) awake(ctx context.Context, j job) *result.Verdict {
	for repeated := false; ; repeated = true {
		began := time.Now()
		v := r.do(ctx, j)
		stalled := r.stalls.since(began)
		if stalled == nil || v.Status != result.Failed && v.Status != result.Broken {
			return v
		}
		if repeated || ctx.Err() != nil || r.stopped() != nil {
			v.Status, v.Reason = result.Broken, strings.TrimSuffix(stalled.Error()+"; "+v.Reason, "; ")
			return v
		}
	}
}

// merged combines the attempts at a test into one verdict.
func merged(attempts []*result.Verdict) *result.Verdict {
	n := len(attempts)
	last := attempts[n-1]
	if n == 1 {
		return last
	}
	v := *last
	switch {
	case last.Status.FailsRun():
		v.Reason = strings.TrimPrefix(fmt.Sprintf("%s; no pass in %s", v.Reason, plural.Of(n, "attempt")), "; ")
	case last.Status == result.Passed:
		v = *attempts[n-2]
		v.Status = result.Flaky
		var statuses []string
		for _, a := range attempts[:n-1] {
			statuses = append(statuses, string(a.Status))
		}
		v.Reason = strings.TrimSuffix(fmt.Sprintf("passed at attempt %d, after %s: %s", n, strings.Join(statuses, ", "),
			v.Reason), ": ")
	}
	v.Attempts, v.Started = attempts, attempts[0].Started
	v.Duration, v.Timings = 0, result.Timings{}
	for _, a := range attempts {
		v.Duration += a.Duration
		v.Timings.Add(a.Timings)
	}
	return &v
}
