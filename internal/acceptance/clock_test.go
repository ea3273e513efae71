package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

const day = 24 * time.Hour

// set gives what time.Now gives where somebody has set the clock of the machine
// by d: another time of day, with the same monotonic reading. Package time has no
// way to make that; the seconds of such a Time stand above 30 bits of
// nanoseconds in its first word.
func set(t time.Time, d time.Duration) time.Time {
	word := (*uint64)(unsafe.Pointer(&t))
	*word += uint64(int64(d/time.Second)) << 30
	return t
}

// The trick does what it claims, or the tests below would prove nothing.
func TestSetClock(t *testing.T) {
	now := time.Now()
	for _, d := range []time.Duration{day, -day, 0} {
		moved := set(now, d)
		if got := moved.Round(0).Sub(now.Round(0)); got != d {
			t.Errorf("the time of day moved by %s, want %s", got, d)
		}
		if got := moved.Sub(now); got != 0 {
			t.Errorf("the monotonic reading moved by %s", got)
		}
	}
}

// restless is a clock that is set, at every look, a day forwards or back.
func restless() func() time.Time {
	var looks atomic.Int64
	return func() time.Time {
		return set(time.Now(), []time.Duration{0, day, -day}[looks.Add(1)%3])
	}
}

// A machine whose clock is set in the middle of a run, again and again, changes
// no verdict and no duration, and nothing hangs.
func TestClockIsSet(t *testing.T) {
	suites, err := specs.Load([]string{"retryable-reads", "retryable-writes", "client-backpressure"}, specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	filter := runner.Filter{Run: []*regexp.Regexp{regexp.MustCompile(`collection\.find .*(timeoutMS|backs? ?off)`)}}
	source, err := deployment.OpenEmbedded(context.Background(), deployment.EmbeddedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(now func() time.Time) (map[result.TestID]*result.Verdict, result.Summary) {
		engine, err := reference.New(reference.Options{Backoff: reference.BackoffNone, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		}()
		verdicts := make(map[result.TestID]*result.Verdict)
		begun := time.Now()
		summary, err := runner.Run(context.Background(), suites.Suites, runner.Config{
			Engine: engine, Source: source, Filter: filter, Jobs: 2, Timeout: 30 * time.Second, Clock: runner.Clock{Now: now}, KeepEvents: true,
			Notify: func(n result.Note) {
				if f, ok := n.(result.TestFinished); ok {
					verdicts[f.Verdict.Test] = f.Verdict
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); summary.Duration < 0 || summary.Duration > took {
			t.Errorf("the run says %s of the %s that it took", summary.Duration, took)
		}
		return verdicts, summary
	}
	moved, summary := run(restless())
	t.Logf("%d tests passed", summary.Passed)
	if summary.Passed < 10 {
		t.Errorf("only %d tests passed", summary.Passed)
	}
	for id, v := range moved {
		if v.Status != result.Passed && v.Status != result.Skipped { // as all of them do otherwise
			t.Errorf("%s: %s", id.File, describe(v))
		}
		for what, d := range map[string]time.Duration{"all": v.Duration, "set-up": v.Timings.Setup, "engine": v.Timings.Engine,
			"server": v.Timings.Server, "waiting": v.Timings.Waiting, "clean-up": v.Timings.Cleanup} {
			if d < 0 || d > summary.Duration {
				t.Errorf("%s of %s took %s", what, v.Test.Description, d)
			}
		}
		for _, o := range v.Operations {
			if o.Duration < 0 || o.Duration > summary.Duration {
				t.Errorf("%s of %s took %s", o.Name, v.Test.Description, o.Duration)
			}
		}
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// Whether a known failure has expired is judged by the day on which the run
// began, whatever the clock says later: all of its tests by the same one.
func TestExpiryAtTheStart(t *testing.T) {
	const suite = `description: "wrong"
schemaVersion: "1.0"
createEntities:
  - client: {id: client}
tests:
  - {description: "first", operations: [{name: assertNumberConnectionsCheckedOut, object: testRunner, arguments: {client: client, connections: 7}}]}
  - {description: "second", operations: [{name: assertNumberConnectionsCheckedOut, object: testRunner, arguments: {client: client, connections: 7}}]}
`
	file := filepath.Join(t.TempDir(), "suite.yml")
	if err := os.WriteFile(file, []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	until := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	for _, r := range []struct {
		reason        string
		start, later  time.Time
		want          result.Status
		wantsProblems bool
	}{
		{"it expires in the middle of the run", until.Add(day - time.Minute), until.Add(day + time.Minute), result.KnownFailing, false},
		{"the clock is set back in the middle of the run", until.Add(day + time.Minute), until.Add(-day), result.Failed, true},
		{"it has not expired", until, until, result.KnownFailing, false},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench(t, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.Single}})
			var began atomic.Bool
			var problems []string
			var got []result.Status
			config := b.config
			config.Jobs = 1
			config.KnownFailing = []runner.KnownFailure{{Pattern: regexp.MustCompile("wrong|first|second"), Reason: "a reason", Until: until}}
			config.Clock = runner.Clock{Now: func() time.Time {
				if began.Load() {
					return r.later
				}
				return r.start
			}}
			config.Notify = func(n result.Note) {
				switch n := n.(type) {
				case result.RunStarted:
					began.Store(true)
				case result.TestFinished:
					got = append(got, n.Verdict.Status)
				case result.RunFinished:
					problems = n.Summary.Problems
				}
			}
			if _, err := runner.Run(context.Background(), load(t, file), config); err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 || got[0] != r.want || got[1] != r.want {
				t.Errorf("%v, want %s twice", got, r.want)
			}
			if (len(problems) > 0) != r.wantsProblems {
				t.Errorf("problems: %q", problems)
			}
		})
	}
}
