package report

import (
	"bytes"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Difference is what changed between two runs. Each list is in the order of
// the newer run, Went in that of the older one.
type Difference struct {
	// NewFailures are red now and were not, whether they were there or not.
	NewFailures []Change
	// OtherFailures are red as before, but in another way (failed, broken, flaky).
	OtherFailures []Change
	// Mended passed, and were red or known to fail.
	Mended []Change
	// Skips are skipped now and were not, or the other way round, or for
	// another kind of reason, or for another reason.
	Skips []Change
	// Slower passed both times and took longer by the threshold at least, and
	// twice as long at least.
	Slower []Change
	// Came are not in the older run, Went not in the newer one.
	Came, Went []Change
}

// Change is one test in two runs; one of them is nil where it was not there.
type Change struct{ Old, New *result.Verdict }

// Compare compares the verdicts of two runs, test by test: cell, file,
// description, deployment and iteration. slower is the least difference in time that counts.
func Compare(before, after []*result.Verdict, slower time.Duration) Difference {
	var d Difference
	old := keyed(before)
	now := keyed(after)
	seen := map[verdictKey]*result.Verdict{}
	for i, k := range old {
		seen[k] = before[i]
	}
	for i, k := range now {
		c := Change{seen[k], after[i]}
		delete(seen, k)
		d.add(c, slower)
	}
	for i, k := range old {
		if _, left := seen[k]; left {
			d.Went = append(d.Went, Change{Old: before[i]})
		}
	}
	return d
}

// verdictKey names a verdict in a run; repeat tells tests of one name apart.
type verdictKey struct {
	cell, file, description, deployment string
	iteration, repeat                   int
}

func keyOf(id result.TestID) verdictKey {
	return verdictKey{cell: id.Cell, file: id.File, description: id.Description, deployment: id.Deployment, iteration: max(1, id.Iteration)}
}

// keyed names all verdicts of a run.
func keyed(verdicts []*result.Verdict) []verdictKey {
	keys := make([]verdictKey, len(verdicts))
	times := map[verdictKey]int{}
	for i, v := range verdicts {
		k := keyOf(v.Test)
		keys[i] = k
		keys[i].repeat = times[k]
		times[k]++
	}
	return keys
}

func (d *Difference) add(c Change, slower time.Duration) {
	if c.Old == nil {
		d.Came = append(d.Came, c)
		if c.New.Status.Red() {
			d.NewFailures = append(d.NewFailures, c)
		}
		return
	}
	was, is := c.Old, c.New
	skipped := was.Status == result.Skipped || is.Status == result.Skipped
	switch {
	case is.Status.Red() && !was.Status.Red():
		d.NewFailures = append(d.NewFailures, c)
	case is.Status.Red() && is.Status != was.Status:
		d.OtherFailures = append(d.OtherFailures, c)
	case is.Status == result.Passed && (was.Status.Red() || was.Status == result.KnownFailing):
		d.Mended = append(d.Mended, c)
	case skipped && (was.Status != is.Status || was.SkipKind != is.SkipKind || was.Reason != is.Reason):
		d.Skips = append(d.Skips, c)
	case was.Status == result.Passed && is.Status == result.Passed && is.Duration-was.Duration >= slower && is.Duration >= 2*was.Duration:
		d.Slower = append(d.Slower, c)
	}
}

// Text tells people of a difference: each list that is not empty, and at the
// end the counts.
func (d Difference) Text() []byte {
	t := &text{}
	lists := []struct {
		head    string
		changes []Change
		line    func(Change) string
	}{
		{"new failures", d.NewFailures, changedVerdict},
		{"failures of another kind", d.OtherFailures, changedVerdict},
		{"mended", d.Mended, changedVerdict},
		{"changed skips", d.Skips, changedVerdict},
		{"slower", d.Slower, func(c Change) string { return fmt.Sprintf("%s → %s", round(c.Old.Duration), round(c.New.Duration)) }},
		{"tests that came", d.Came, func(c Change) string { return outcome(c.New) }},
		{"tests that went", d.Went, func(c Change) string { return "was " + outcome(c.Old) }},
	}
	for _, l := range lists {
		if len(l.changes) == 0 {
			continue
		}
		t.line(0, "%s:", l.head)
		for _, c := range l.changes {
			v := c.New
			if v == nil {
				v = c.Old
			}
			t.line(2, "%s", oneLine(v.Test.File+": "+title(v.Test)))
			t.line(4, "%s", oneLine(l.line(c)))
		}
		t.buffer.WriteByte('\n')
	}
	t.line(0, "%s, %d mended, %s, %d slower, %d came, %d went",
		plural(len(d.NewFailures), "new failure"), len(d.Mended), plural(len(d.Skips), "changed skip"), len(d.Slower), len(d.Came), len(d.Went))
	return bytes.Clone(t.buffer.Bytes())
}

func changedVerdict(c Change) string {
	if c.Old == nil {
		return "is new → " + outcome(c.New)
	}
	return outcome(c.Old) + " → " + outcome(c.New)
}

// outcome is a verdict in a few words.
func outcome(v *result.Verdict) string {
	s := string(v.Status)
	switch {
	case v.Status == result.Skipped:
		s += " (" + skipReason(v) + ")"
	case v.Status.Red() && len(v.Mismatches)+len(v.Reason) > 0:
		s += " (" + clip(headOf(v), briefWidth) + ")"
	case v.Reason != "":
		s += " (" + clip(v.Reason, briefWidth) + ")"
	}
	return s
}

// Durations gives how long the tests of a run took, by a name that the caller
// makes of each. Tests that did not run have none; of several of one name the
// longest counts.
func Durations(verdicts []*result.Verdict, name func(result.TestID) string) map[string]time.Duration {
	out := make(map[string]time.Duration)
	for _, v := range verdicts {
		if v.Status != result.Skipped {
			key := name(v.Test)
			out[key] = max(out[key], v.Duration)
		}
	}
	return out
}
