package acceptance

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

const day = 24 * time.Hour

// set returns the result of time.Now after the system clock was changed by d: another
// wall clock time with the same monotonic reading. Package time cannot create such a
// Time; its first word contains the seconds above 30 bits of nanoseconds.
func set(t time.Time, d time.Duration) time.Time {
	word := (*uint64)(unsafe.Pointer(&t))
	*word += uint64(int64(d/time.Second)) << 30
	return t
}

// jumping returns a clock that jumps by a day at every call.
func jumping() func() time.Time {
	var calls atomic.Int64
	return func() time.Time {
		return set(time.Now(), []time.Duration{0, day, -day}[calls.Add(1)%3])
	}
}

// Changes of the system clock during a run affect neither verdicts nor durations, and
// nothing hangs.
func TestClockIsSet(t *testing.T) {
	if now := time.Now(); set(now, -day).Round(0).Sub(now.Round(0)) != -day || set(now, -day).Sub(now) != 0 {
		t.Fatal("set does not change the wall clock alone")
	}
	e, err := reference.New(reference.Options{Backoff: reference.BackoffNone, Now: jumping()})
	testkit.Check(t, err)
	b := suitetest.With(t, e, deployment.EmbeddedOptions{})
	b.Config.Filter = runner.Filter{Run: []*regexp.Regexp{regexp.MustCompile(`collection\.find .*(timeoutMS|backs? ?off)`)}}
	b.Config.Now, b.Config.KeepEvents = jumping(), true
	var suites []*specs.Suite
	for _, specification := range []string{"client-backpressure", "retryable-reads"} {
		suites = append(suites, suitetest.Load(t, suitetest.OwnFolder(t, specification))...)
	}
	begun := time.Now()
	verdicts := b.Run(t, suites)
	took := time.Since(begun)
	suitetest.CheckVerdicts(t, verdicts, result.SkipRequirement, result.SkipFilter)
	for _, v := range verdicts {
		durations := []result.Duration{result.Duration(v.Duration)}
		for _, p := range v.Timings.Phases() {
			durations = append(durations, *p.Took)
		}
		for _, o := range v.Operations {
			durations = append(durations, o.Duration)
		}
		for _, d := range durations {
			if d < 0 || d > result.Duration(took) {
				t.Errorf("%s: a duration of %s in a run of %s", v.Test.Description, time.Duration(d), took)
			}
		}
	}
}

// Known failures expire by the clock at the start of the run, so that all tests use
// the same time.
func TestExpiryAtTheStart(t *testing.T) {
	until := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	for _, r := range []struct {
		reason       string
		start, later time.Time
		want         result.Status
		problems     int
	}{
		{"it expires during the run", until.Add(day - time.Minute), until.Add(day + time.Minute), result.KnownFailing, 0},
		{"the clock is set back during the run", until.Add(day + time.Minute), until.Add(-day), result.Failed, 1},
		{"it has not expired", until, until, result.KnownFailing, 0},
	} {
		config := suitetest.New(t, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.Single}}).Config
		var began atomic.Bool
		var got []result.Status
		config.Jobs = 1
		config.KnownFailing = []runner.KnownFailure{{Pattern: regexp.MustCompile("wrong|first|second"), Reason: "a reason",
			Until: until}}
		config.Now = func() time.Time {
			return testkit.Either(began.Load(), r.later, r.start)
		}
		config.Notify = func(n result.Note) {
			switch n := n.(type) {
			case result.RunStarted:
				began.Store(true)
			case result.TestFinished:
				got = append(got, n.Verdict.Status)
			}
		}
		summary, err := runner.Run(context.Background(), load(t, "wrong"), config)
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, got, []result.Status{r.want, r.want})
		testkit.Equal(t, r.reason+": problems", len(summary.Problems), r.problems)
	}
}
