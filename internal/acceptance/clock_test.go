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
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
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
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone, Now: restless()})
	if err != nil {
		t.Fatal(err)
	}
	b := bench.With(t, e, deployment.EmbeddedOptions{})
	b.Config.Filter = runner.Filter{Run: []*regexp.Regexp{regexp.MustCompile(`collection\.find .*(timeoutMS|backs? ?off)`)}}
	b.Config.Clock, b.Config.KeepEvents = runner.Clock{Now: restless()}, true
	begun := time.Now()
	verdicts := b.Run(t, own(t))
	took := time.Since(begun)
	bench.AllWell(t, verdicts, result.SkipRequirement, result.SkipFilter)
	for _, v := range verdicts {
		durations := []time.Duration{v.Duration, v.Timings.Setup, v.Timings.Engine, v.Timings.Server, v.Timings.Waiting, v.Timings.Cleanup}
		for _, o := range v.Operations {
			durations = append(durations, o.Duration)
		}
		for _, d := range durations {
			if d < 0 || d > took {
				t.Errorf("%s: a duration of %s in a run of %s", v.Test.Description, d, took)
			}
		}
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
			config := bench.New(t, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.Single}}).Config
			var began atomic.Bool
			var problems []string
			var got []result.Status
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
			if _, err := runner.Run(context.Background(), bench.Load(t, file), config); err != nil {
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
