package report

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// EarlierRun is the time, duration and statuses of an earlier run, for trends. It takes some tens of bytes per test.
type EarlierRun struct {
	name     string
	began    time.Time
	duration time.Duration
	counts   [6]int // in the order of result.Statuses, as page.js has it
	statuses map[testKey]uint8
}

// ReadEarlier reads a JSON report of an earlier run, possibly by another version of
// utr. If the report has no time, the run has the time written.
func ReadEarlier(name string, from io.Reader, written time.Time) (*EarlierRun, error) {
	e := &EarlierRun{name: name, statuses: map[testKey]uint8{}}
	var span span
	p, err := Scan(name, from, func(v *result.Verdict) {
		status := slices.Index(result.Statuses(), v.Status)
		span.add(v.Started, v.Duration)
		e.counts[status]++
		e.statuses[nextKey(v.Test, e.statuses)] = uint8(status)
	})
	if p.Run != nil {
		span.begin(p.Run.Started)
		span.reported = time.Duration(p.Run.Duration)
	}
	if e.began = span.first; e.began.IsZero() {
		e.began = written
	}
	e.duration = span.duration()
	return e, err
}

// Tests is the number of verdicts in the report.
func (e *EarlierRun) Tests() int { return len(e.statuses) }

// span is the time of a run, according to its records.
type span struct {
	first, last   time.Time
	sum, reported time.Duration // of all tests; of the run
}

// add adds a test. began is zero if unknown.
func (s *span) add(began time.Time, took time.Duration) {
	s.sum += took
	s.begin(began)
	if end := began.Add(took); !began.IsZero() && end.After(s.last) {
		s.last = end
	}
}

// begin extends the span to begin at a time. at is zero if unknown.
func (s *span) begin(at time.Time) {
	if !at.IsZero() && (s.first.IsZero() || at.Before(s.first)) {
		s.first = at
	}
}

// duration is the best estimate of the duration of the run.
func (s *span) duration() time.Duration {
	switch {
	case s.reported > 0:
		return s.reported
	case s.first.IsZero():
		return s.sum
	}
	return s.last.Sub(s.first)
}

// mostEarlier is the number of earlier runs that a page shows, the last ones.
const mostEarlier = 16

// trends are earlier runs, oldest first.
type trends struct {
	runs []*EarlierRun
	seen map[testKey]bool // tests of this run
}

// newTrends returns nil without earlier runs. Of more than mostEarlier runs it keeps the last ones.
func newTrends(earlier []*EarlierRun) *trends {
	if len(earlier) == 0 {
		return nil
	}
	runs := slices.SortedStableFunc(slices.Values(earlier), func(a, b *EarlierRun) int { return a.began.Compare(b.began) })
	return &trends{runs: runs[max(0, len(runs)-mostEarlier):], seen: map[testKey]bool{}}
}

// newlyRed reports whether a red test with this history was not red in the last run that had it.
func newlyRed(t *trends, history string) bool {
	last := strings.TrimRight(history, "-")
	return t != nil && (last == "" || !result.Statuses()[last[len(last)-1]-'0'].FailsRun())
}

// redSince returns the earlier run since which a test with this history has been red without interruption, or -1.
func redSince(history string) int {
	first := -1
	for i := len(history) - 1; i >= 0; i-- {
		switch {
		case history[i] == '-':
		case !result.Statuses()[history[i]-'0'].FailsRun():
			return first
		default:
			first = i
		}
	}
	return first
}

// failingSince says that a test has been red since an earlier run.
func (t *trends) failingSince(run int) string {
	return "failing since " + t.runs[run].began.UTC().Format("2006-01-02 15:04 UTC")
}

// remark says since when a red test with this history has been red. It is "" without earlier runs.
func (t *trends) remark(history string) string {
	switch since := redSince(history); {
	case t == nil:
		return ""
	case since >= 0:
		return t.failingSince(since)
	}
	return "new since the last run"
}

// history returns a character for each earlier run: the number of the test's
// status, or a minus if the run did not have the test.
func (t *trends) history(id result.TestID) string {
	k := nextKey(id, t.seen)
	t.seen[k] = true
	s := bytes.Repeat([]byte("-"), len(t.runs))
	for i, r := range t.runs {
		if status, found := r.statuses[k]; found {
			s[i] = '0' + status
		}
	}
	return string(s)
}

// gone counts the tests of the last run that are not in this run.
func (t *trends) gone() (n int) {
	for k := range t.runs[len(t.runs)-1].statuses {
		if !t.seen[k] {
			n++
		}
	}
	return n
}
