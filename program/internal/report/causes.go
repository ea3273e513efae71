package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// Cause is a group of red tests that failed for the same reason.
type Cause struct {
	failure // the first test, if possible one that was not red before
	number  int
	tests   int
	fresh   int // tests that were not red in the last earlier run that had them
	since   int // the earlier run since which a test has been red without interruption, or -1
	runs    *trends
	on      map[string]bool   // cells of a matrix, otherwise deployments
	places  []result.Position // the first ones
}

// Causes groups the red tests of a run by cause. Every report uses it.
type Causes struct {
	trends *trends           // nil without earlier runs
	byKey  map[string]*Cause // a cause has several keys
	all    []*Cause
	tests  int // red ones
}

// NewCauses returns no causes yet. With earlier runs, Add also finds what is new.
func NewCauses(earlier []*EarlierRun) *Causes {
	return &Causes{trends: newTrends(earlier), byKey: map[string]*Cause{}}
}

// Add adds the verdict of any test, in the order of the run. It returns the cause of a red test, otherwise nil, and the
// history of the test.
func (c *Causes) Add(v *result.Verdict) (its *Cause, history string) {
	if c.trends != nil {
		history = c.trends.history(v.Test)
	}
	if !v.Status.FailsRun() {
		return nil, history
	}
	f := failureOf(v)
	its = c.of(&f)
	if newlyRed(c.trends, history) {
		if its.fresh == 0 {
			its.failure = f
		}
		its.fresh++
	}
	if since := redSince(history); since >= 0 && (its.since < 0 || since < its.since) {
		its.since = since
	}
	if len(its.places) <= shownPlaces && !slices.Contains(its.places, f.At) {
		its.places = append(its.places, f.At)
	}
	its.tests++
	its.on[f.On] = true
	c.tests++
	return its, history
}

// of returns the cause of a failure. It may be new.
func (c *Causes) of(f *failure) *Cause {
	keys := f.keys()
	i := slices.IndexFunc(keys, func(k string) bool { return c.byKey[k] != nil })
	if i < 0 {
		i = 0
		c.byKey[keys[0]] = &Cause{failure: *f, number: len(c.all), since: -1, runs: c.trends, on: map[string]bool{}}
		c.all = append(c.all, c.byKey[keys[0]])
	}
	its := c.byKey[keys[i]]
	for _, k := range keys {
		if c.byKey[k] == nil {
			c.byKey[k] = its
		}
	}
	return its
}

// Sorted returns the new causes first, then those with the most tests.
func (c *Causes) Sorted() []*Cause {
	news := func(one *Cause) int { return min(one.fresh, 1) }
	return slices.SortedStableFunc(slices.Values(c.all), func(a, b *Cause) int {
		return cmp.Or(news(b)-news(a), b.tests-a.tests)
	})
}

// Scope says how many tests a cause has, in how many cells or deployments, and since when.
func (c *Cause) Scope() string {
	s := plural.Of(c.tests, "test")
	noun := "deployment"
	if c.InCell {
		noun = "cell"
	}
	add(&s, len(c.on) > 1, " in %s", plural.Of(len(c.on), noun))
	add(&s, c.fresh > 0, ", %d new", c.fresh)
	if c.since >= 0 {
		s += ", " + c.runs.failingSince(c.since)
	}
	return s
}

// headline is the name of the first test, with the scope if it says more.
func (c *Cause) headline() string {
	s := clip(c.Name, briefWidth)
	add(&s, c.tests > 1 || c.fresh > 0 || c.since >= 0, " (%s)", c.Scope())
	return s
}

// shownPlaces is the number of places of a cause that a list has.
const shownPlaces = 4

// also lists the places of other tests, or is "".
func (c *Cause) also() (s string) {
	n := 0
	for _, at := range c.places {
		if at != c.At && !at.IsZero() {
			n++
			add(&s, n <= shownPlaces, ", %s", at)
			add(&s, n > shownPlaces, ", …")
		}
	}
	return strings.TrimPrefix(s, ", ")
}

// Test is the name of the first test.
func (c *Cause) Test() string { return oneLine(c.Name) }

// keys identify the cause of a failure. Failures that have a key in common have the same cause. The first key is what
// went wrong, in whichever test. The second one is the place and the kinds of what was expected and observed, since
// servers and engines describe the same error in different words. No key has a reply, or a value that differs between
// runs.
func (f *failure) keys() []string {
	if len(f.Mismatches) == 0 || f.Status == result.Broken {
		return []string{string(f.Status) + " " + stable(cmp.Or(f.Reason, f.Why))}
	}
	m := f.Mismatches[0]
	kinds := numbers.ReplaceAllString(stable(m.Message), "#") // such as "expected 2 events, got 1"
	if code := errorCode.FindString(m.Got); code != "" {
		kinds += " " + code
	}
	row := firstDifference(m.List)
	observed := row.Want + ", " + row.Got
	if m.List == nil {
		observed = m.Got // tests with different expected values may get the same one
	}
	keys := []string{fmt.Sprintf("%s %s: %s: %s", f.Status, stable(m.Path), kinds, stable(observed))}
	if !m.Position.IsZero() {
		keys = append(keys, fmt.Sprintf("%s %s: %s: %s", f.Status, m.Position, kinds, stable(row.Want+", "+row.Got)))
	}
	return keys
}

// stable removes what differs between runs: documents, addresses, ids, times and indexes.
func stable(s string) string {
	before, _, _ := strings.Cut(s, "{")
	return unstable.ReplaceAllString(before, "#")
}

var (
	unstable = regexp.MustCompile(`[\w.-]*:\d{4,5}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|[0-9a-f]{24}|\[-?\d+\]|\d{6,}|` +
		`[A-Za-z0-9+/]{22,}={1,2}|\b(\d+(\.\d+)?(h|m|s|ms|µs|ns))+\b|\b\d+\.\d{3,}\b`)
	numbers   = regexp.MustCompile(`\d+`)
	errorCode = regexp.MustCompile(`, code \d+`)
)
