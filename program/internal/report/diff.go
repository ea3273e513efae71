package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// ChangeKind is a kind of change between two runs.
type ChangeKind int

// The kinds, in the order in which Text lists them.
const (
	NewFailure   ChangeKind = iota // red now and not before, or new and red
	OtherFailure                   // red in both, with another status (failed, broken, flaky)
	NotRun                         // not run or missing, because the newer run broke
	Fixed                          // passed now, red or known-failing before
	SkipChanged                    // skipped in one of the runs, or for another reason
	Slower                         // passed in both, slower by the threshold and beyond noise
	Added                          // only in the newer run
	Removed                        // only in the older run, although the newer one is complete
)

// Difference lists the changes between two runs by kind. Each list is in the
// order of the newer run, Removed in the order of the older run.
type Difference [Removed + 1][]Change

// Change is a test in two runs. Old or New is nil if the run did not have it.
type Change struct{ Old, New *result.Verdict }

// changeKinds are the names of the kinds in JSON, and their heads in the text.
var changeKinds = [len(Difference{})]struct{ name, head string }{
	{"newFailure", "new failures"}, {"otherFailure", "failures of another kind"}, {"notRun", "not run"},
	{"fixed", "fixed"}, {"skip", "changed skips"}, {"slower", "slower"}, {"added", "added"}, {"removed", "removed"},
}

// JSON returns the changes as JSON Lines, in the order of the kinds.
func (d Difference) JSON() []byte {
	type ending struct {
		Status     result.Status   `json:"status"`
		Reason     string          `json:"reason,omitempty"`
		DurationMS result.Duration `json:"durationMS"`
	}
	end := func(v *result.Verdict) *ending {
		if v == nil {
			return nil
		}
		return &ending{v.Status, failureOf(v).Why, result.Duration(v.Duration)}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for kind, changes := range d {
		for _, c := range changes {
			id := cmp.Or(c.New, c.Old).Test
			_ = e.Encode(struct { // no field can fail to encode
				Change     string  `json:"change"`
				Cell       string  `json:"cell,omitempty"`
				File       string  `json:"file"`
				Test       string  `json:"test"`
				Deployment string  `json:"deployment,omitempty"`
				Iteration  int     `json:"iteration,omitempty"`
				Old        *ending `json:"old,omitempty"`
				New        *ending `json:"new,omitempty"`
			}{changeKinds[kind].name, id.Cell, id.File, id.Description, id.Deployment, id.Iteration, end(c.Old), end(c.New)})
		}
	}
	return b.Bytes()
}

// Compare compares two runs. It identifies tests by cell, file, description, deployment and iteration. slower is the
// threshold of Slower, and noise the durations of earlier runs, or nil.
func Compare(before, after *SavedRun, slower time.Duration, noise Noise) (d Difference) {
	old, now := keys(before.Verdicts), keys(after.Verdicts)
	seen := map[testKey]*result.Verdict{}
	for i, k := range old {
		seen[k] = before.Verdicts[i]
	}
	for i, k := range now {
		c := Change{seen[k], after.Verdicts[i]}
		d.add(c, c.slower(slower) && noise.beyond(k, c))
		delete(seen, k)
	}
	broke := after.broke()
	for i, k := range old {
		switch v := before.Verdicts[i]; {
		case seen[k] == nil, v.SkipKind == result.SkipNotRun: // perhaps under a name without its deployment
		case slices.ContainsFunc(broke, func(b result.Break) bool { return b.Cell == "" || b.Cell == v.Test.Cell }):
			d[NotRun] = append(d[NotRun], Change{Old: v})
		default:
			d[Removed] = append(d[Removed], Change{Old: v})
		}
	}
	return d
}

// testKey identifies a test in a run: a hash of its identity and of the number of tests before it with the same one.
type testKey uint64

type repeatedTest struct {
	result.TestID
	repeat int
}

var keySeed = maphash.MakeSeed()

// nextKey returns the key of a test: the first one of its identity that is not used.
func nextKey[T any](id result.TestID, used map[testKey]T) testKey {
	id.Suite, id.Iteration = "", max(1, id.Iteration)
	for repeat := 0; ; repeat++ {
		k := testKey(maphash.Comparable(keySeed, repeatedTest{id, repeat}))
		if _, found := used[k]; !found {
			return k
		}
	}
}

func keys(verdicts []*result.Verdict) (all []testKey) {
	used := map[testKey]bool{}
	for _, v := range verdicts {
		k := nextKey(v.Test, used)
		used[k] = true
		all = append(all, k)
	}
	return all
}

func (d *Difference) add(c Change, slower bool) {
	put := func(kind ChangeKind) { d[kind] = append(d[kind], c) }
	was, is := c.Old, c.New
	if is.SkipKind == result.SkipNotRun || is.SkipKind == result.SkipInterrupted {
		if was != nil { // otherwise it is missing under the name with its deployment
			put(NotRun)
		}
		return
	}
	if was == nil {
		put(Added)
		if is.Status.FailsRun() {
			put(NewFailure)
		}
		return
	}
	skipped := was.Status == result.Skipped || is.Status == result.Skipped
	switch {
	case is.Status.FailsRun() && !was.Status.FailsRun():
		put(NewFailure)
	case is.Status.FailsRun() && is.Status != was.Status:
		put(OtherFailure)
	case is.Status == result.Passed && (was.Status.FailsRun() || was.Status == result.KnownFailing):
		put(Fixed)
	case skipped && (was.Status != is.Status || was.SkipKind != is.SkipKind || was.Reason != is.Reason):
		put(SkipChanged)
	case slower:
		put(Slower)
	}
}

// shortest is the duration up to which a test is not compared: it depends on the machine more than on the driver.
const shortest = 100 * time.Millisecond

// slower reports whether a test that passed in both runs took longer by the threshold and twice as long.
func (c Change) slower(threshold time.Duration) bool {
	return c.Old != nil && c.Old.Status == result.Passed && c.New.Status == result.Passed &&
		min(c.Old.Duration, c.New.Duration) > shortest && c.New.Duration-c.Old.Duration >= threshold &&
		c.New.Duration >= 2*c.Old.Duration
}

// Noise has the durations of tests that passed in earlier runs.
type Noise map[testKey][]float64

// Read adds a JSON report.
func (n Noise) Read(name string, from io.Reader) error {
	used := map[testKey]bool{}
	_, err := Scan(name, from, func(v *result.Verdict) {
		k := nextKey(v.Test, used)
		used[k] = true
		if v.Status == result.Passed {
			n[k] = append(n[k], v.Duration.Seconds())
		}
	})
	return err
}

// beyond reports whether a test took longer than the mean of the earlier runs by more than three standard deviations.
// The older run is one of them. Without earlier runs of the test, it is true.
func (n Noise) beyond(k testKey, c Change) bool {
	if len(n[k]) == 0 {
		return true
	}
	took := append(slices.Clone(n[k]), c.Old.Duration.Seconds())
	mean, variance := 0.0, 0.0
	for _, t := range took {
		mean += t / float64(len(took))
	}
	for _, t := range took {
		variance += (t - mean) * (t - mean) / float64(len(took)-1)
	}
	return c.New.Duration.Seconds() > mean+3*math.Sqrt(variance)
}

// DifferenceOptions are the options of Difference.Text.
type DifferenceOptions struct {
	Verbose bool // list every test
	Slower  bool // list slower tests; otherwise they are only counted
}

// Text has the counts and then, by kind, the changes: those with the same cause or outcome are one entry.
func (d Difference) Text(o DifferenceOptions) []byte {
	t := &text{}
	notRun := ""
	add(&notRun, len(d[NotRun]) > 0, ", %d not run", len(d[NotRun]))
	t.line(0, "%s, %d fixed, %s, %d slower, %d added, %d removed%s",
		plural.Of(len(d[NewFailure]), "new failure"), len(d[Fixed]), plural.Of(len(d[SkipChanged]), "changed skip"),
		len(d[Slower]), len(d[Added]), len(d[Removed]), notRun)
	for kind, changes := range d {
		if len(changes) == 0 || ChangeKind(kind) == Slower && !o.Slower && !o.Verbose {
			continue
		}
		t.line(0, "\n%s:", changeKinds[kind].head)
		shown, others := first(grouped(ChangeKind(kind), changes, o.Verbose), listedCauses, o.Verbose)
		for _, g := range shown {
			v := cmp.Or(g.first.New, g.first.Old)
			line := oneLine(v.Test.File + ": " + title(v.Test))
			add(&line, g.scope != "", " (%s)", g.scope)
			t.line(2, "%s", line)
			t.line(4, "%s", oneLine(g.first.describe(ChangeKind(kind))))
		}
		if others > 0 {
			t.line(2, "… %d more (-v lists all)", others)
		}
	}
	return bytes.Clone(t.buffer.Bytes())
}

// changeGroup are changes with the same cause or outcome.
type changeGroup struct {
	first Change
	tests int
	scope string // "" for one test
}

// grouped groups failures by cause, and other changes by outcome, the largest groups first. If each, it groups nothing.
func grouped(kind ChangeKind, changes []Change, each bool) (all []*changeGroup) {
	causes, byKey := NewCauses(nil), map[string]*changeGroup{}
	for i, c := range changes {
		key, scope := stable(c.describe(kind)), ""
		switch {
		case each || kind == Slower:
			key = fmt.Sprint(i)
		case kind == NewFailure || kind == OtherFailure:
			its, _ := causes.Add(c.New)
			key, scope = fmt.Sprint(its.number), its.Scope()
		}
		g := byKey[key]
		if g == nil {
			g = &changeGroup{first: c}
			byKey[key], all = g, append(all, g)
		}
		if g.tests++; g.tests > 1 {
			g.scope = cmp.Or(scope, plural.Of(g.tests, "test"))
		}
	}
	slices.SortStableFunc(all, func(a, b *changeGroup) int { return b.tests - a.tests })
	return all
}

func (c Change) describe(kind ChangeKind) string {
	switch {
	case kind == Slower:
		return fmt.Sprintf("%s → %s", round(c.Old.Duration), round(c.New.Duration))
	case kind == Added:
		return outcome(c.New)
	case c.New == nil:
		return "was " + outcome(c.Old)
	case c.Old == nil:
		return "is new → " + outcome(c.New)
	}
	return outcome(c.Old) + " → " + outcome(c.New)
}

// outcome is a status with its reason.
func outcome(v *result.Verdict) string {
	s, why := string(v.Status), v.Reason
	switch {
	case v.Status == result.Skipped:
		why = skipReason(v)
	case v.Status.FailsRun():
		why = failureOf(v).Why
	}
	add(&s, why != "", " (%s)", clip(why, briefWidth))
	return s
}

// Durations returns the durations of tests that were not skipped, by name. Of tests
// with the same name, the longest counts.
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
