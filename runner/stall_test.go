package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

func TestStalls(t *testing.T) {
	const second = time.Second
	for _, row := range []struct {
		why     string
		ticks   []time.Duration // since the start
		from    time.Duration
		stalled bool
	}{
		{"a process that runs", []time.Duration{0, second, 2 * second}, 0, false},
		{"a loaded machine", []time.Duration{0, 2 * second}, 0, false},
		{"a pause", []time.Duration{0, 62 * second}, 0, true},
		{"a pause that ended before", []time.Duration{0, 62 * second, 63 * second}, 62 * second, false},
		{"a pause that began before", []time.Duration{0, 62 * second, 63 * second}, 61 * second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s stalls
			start := time.Now()
			for _, at := range row.ticks {
				time.Sleep(at - time.Since(start))
				s.note(time.Now())
			}
			if err := s.since(start.Add(row.from)); (err != nil) != row.stalled {
				t.Errorf("%s: %v", row.why, err)
			}
		})
	}
}

// A test that does not pass while the process is paused is repeated once. If the process was paused again, it is
// broken.
func TestStalledTest(t *testing.T) {
	for _, row := range []struct {
		why     string
		stalled int // runs with a pause
		test    string
		want    result.Status
		runs    int
	}{
		{"no pause", 0, "fails", result.Failed, 1},
		{"a pause during the first run", 1, "fails", result.Failed, 2},
		{"a pause during both", 2, "fails", result.Broken, 2},
		{"a test that passes despite a pause", 1, "passes", result.Passed, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r *run
			runs := 0
			engine := &fakeEngine{during: func() {
				time.Sleep(time.Millisecond)
				if runs++; runs <= row.stalled {
					r.stalls.note(time.Now().Add(-time.Hour))
				}
			}, script: map[string][]step{"collection0.find": {{Repeat: true,
				Events: []scriptedEvent{{Client: "client0", Type: result.CommandStarted, Name: "find"}}}}}}
			suite := parse(t, chatty)
			for _, x := range suite.Tests {
				if x.Description == row.test {
					suite.Tests = []*specs.Test{x}
				}
			}
			var verdict *result.Verdict
			r, err := onFakes(Config{Engine: engine, Timeout: time.Minute, Notify: func(n result.Note) {
				if v, ok := n.(result.TestFinished); ok {
					verdict = v.Verdict
				}
			}}, &fakeSource{})
			testkit.Check(t, err)
			_, err = r.all(context.Background(), []*specs.Suite{suite})
			testkit.Check(t, err)
			if verdict.Status != row.want || runs != row.runs {
				t.Errorf("%s: %s %q after %d runs", row.why, verdict.Status, verdict.Reason, runs)
			}
		})
	}
}
