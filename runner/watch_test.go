package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// A test and its clean-up end soon after all servers have stopped answering, whatever waits for them. A server that is
// silent for a while, and one that takes its time, end nothing.
func TestWatch(t *testing.T) {
	for _, row := range []struct {
		why      string
		from, to time.Duration // when no server answers, since the test began
		end      step          // how the engine ends the test; an operation before it takes 30 seconds
		want     result.Status
		takes    time.Duration
	}{
		{"all servers answer", 0, 0, step{}, result.Passed, 30 * time.Second},
		{"they are silent for a moment", 9 * time.Second, 13 * time.Second, step{}, result.Passed, 30 * time.Second},
		{"they remain silent", 9 * time.Second, time.Hour, step{}, result.Broken, 14 * time.Second},
		{"they remain silent, and the clean-up waits for them", 9 * time.Second, time.Hour, step{Hangs: true}, result.Broken, 17 * time.Second},
		{"they fall silent during the clean-up", 31 * time.Second, time.Hour, step{Hangs: true}, result.Broken, 39 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			silent := func() bool { at := time.Since(began); return row.from <= at && at < row.to }
			d := &fakeDeployment{silent: silent, owned: true, about: deployment.Description{Topology: deployment.ReplicaSet, Hosts: []string{"a:1", "b:1"}}}
			engine := &fakeEngine{script: map[string][]step{"end": {row.end}, "database0.runCommand": {{Lasts: 30 * time.Second}}}}
			var verdict *result.Verdict
			r, err := onFakes(Config{Engine: engine, Timeout: time.Minute, Notify: func(n result.Note) {
				if v, ok := n.(result.TestFinished); ok {
					verdict = v.Verdict
				}
			}}, &fakeSource{start: func(deployment.Description) *fakeDeployment { return d }})
			testkit.Check(t, err)
			_, err = r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
			testkit.Check(t, err)
			says := verdict.Status == result.Passed ||
				strings.HasPrefix(verdict.Reason, "the deployment stopped answering: a:1: connection refused; b:1: connection refused")
			if took := time.Since(began); verdict.Status != row.want || took != row.takes || !says {
				t.Errorf("%s: %s after %s: %s", row.why, verdict.Status, took, verdict.Reason)
			}
		})
	}
}
