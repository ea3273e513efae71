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

// A test and its clean-up end soon after all servers have stopped answering, or a replica set has lost its primary,
// whatever waits for them. A short silence, an election, or a slow server do not end a test.
func TestWatch(t *testing.T) {
	for _, row := range []struct {
		why      string
		what     string        // the fault
		from, to time.Duration // its beginning and end, since the test began
		end      step          // how the engine ends the test; an operation before it takes 30 seconds
		want     result.Status
		takes    time.Duration
	}{
		{"all servers answer", "", 0, 0, step{}, result.Passed, 30 * time.Second},
		{"they are silent for a moment", stopped, 9 * time.Second, 13 * time.Second, step{}, result.Passed, 30 * time.Second},
		{"they remain silent", stopped, 9 * time.Second, time.Hour, step{}, result.Broken, 14 * time.Second},
		{"they remain silent, and the clean-up waits for them", stopped, 9 * time.Second, time.Hour, step{Hangs: true},
			result.Broken, 15 * time.Second},
		{"they fall silent during the clean-up", stopped, 31 * time.Second, time.Hour, step{Hangs: true}, result.Broken,
			37 * time.Second},
		{"an election", headless, 9 * time.Second, 21 * time.Second, step{}, result.Passed, 30 * time.Second},
		{"no primary at first", headless, 0, 12 * time.Second, step{}, result.Passed, 30 * time.Second},
		{"no primary", headless, 0, time.Hour, step{}, result.Broken, 16 * time.Second},
		{"no primary, and the clean-up waits for one", headless, 9 * time.Second, time.Hour, step{Hangs: true}, result.Broken,
			23 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			during := func(what string) func() bool {
				return func() bool { at := time.Since(began); return row.what == what && row.from <= at && at < row.to }
			}
			d := &fakeDeployment{silent: during(stopped), readOnly: during(headless), owned: true,
				about: deployment.Description{Topology: deployment.ReplicaSet, Hosts: []string{"a:1", "b:1"}}}
			engine := &fakeEngine{script: map[string][]step{"end": {row.end},
				"database0.runCommand": {{Lasts: 30 * time.Second}}}}
			var verdict *result.Verdict
			r, err := onFakes(Config{Engine: engine, Timeout: time.Minute, Notify: func(n result.Note) {
				if v, ok := n.(result.TestFinished); ok {
					verdict = v.Verdict
				}
			}}, &fakeSource{start: func(deployment.Description) *fakeDeployment { return d }})
			testkit.Check(t, err)
			_, err = r.all(context.Background(), []*specs.Suite{parse(t, waiting)})
			testkit.Check(t, err)
			says := map[string]string{stopped: "the deployment stopped answering: a:1: connection refused; b:1: connection refused",
				headless: "the deployment has no primary: a:1 is not primary; b:1 is not primary"}[row.what]
			if verdict.Status == result.Passed {
				says = ""
			}
			if took := time.Since(began); verdict.Status != row.want || took != row.takes ||
				!strings.HasPrefix(verdict.Reason, says) {
				t.Errorf("%s: %s after %s: %s", row.why, verdict.Status, took, verdict.Reason)
			}
		})
	}
}
