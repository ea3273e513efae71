package report

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/unified-test-runner/utr/internal/plural"
	"github.com/unified-test-runner/utr/result"
)

// cause is a group of red tests that failed for the same reason.
type cause struct {
	failure // the first test, if possible one that was not red before
	number  int
	tests   int
	fresh   int // tests that were not red in the last earlier run that had them
	cells   map[string]bool
}

// causes groups the red tests of a run by cause. Every report uses it.
type causes struct {
	trends *trends // nil without earlier runs
	byKey  map[string]*cause
	tests  int // red ones
}

func newCauses(earlier []*EarlierRun) *causes {
	return &causes{trends: newTrends(earlier), byKey: map[string]*cause{}}
}

// add adds the verdict of any test, in the order of the run. It returns the cause of a red test, otherwise nil, and the
// history of the test.
func (c *causes) add(v *result.Verdict) (its *cause, history string) {
	if c.trends != nil {
		history = c.trends.history(v.Test)
	}
	if !v.Status.FailsRun() {
		return nil, history
	}
	f := failureOf(v)
	key := f.key()
	its = c.byKey[key]
	if its == nil {
		its = &cause{failure: f, number: len(c.byKey), cells: map[string]bool{}}
		c.byKey[key] = its
	}
	if newlyRed(c.trends, history) {
		if its.fresh == 0 {
			its.failure = f
		}
		its.fresh++
	}
	its.tests++
	its.cells[f.Cell] = true
	c.tests++
	return its, history
}

// sorted returns the new causes first, then those with the most tests.
func (c *causes) sorted() []*cause {
	all := make([]*cause, len(c.byKey))
	for _, one := range c.byKey {
		all[one.number] = one
	}
	news := func(one *cause) int { return min(one.fresh, 1) }
	slices.SortStableFunc(all, func(a, b *cause) int {
		return cmp.Or(news(b)-news(a), b.tests-a.tests)
	})
	return all
}

// scope says how many tests a cause has, and in how many cells.
func (c *cause) scope() string {
	s := plural.Of(c.tests, "test")
	add(&s, len(c.cells) > 1, " in %s", plural.Of(len(c.cells), "cell"))
	add(&s, c.fresh > 0, ", %d new", c.fresh)
	return s
}

// Cause is why tests are red.
type Cause struct {
	Status result.Status
	Why    string // in one line
	Scope  string // number of tests and cells
	Test   string // the first one
	Rerun  string // command line that reruns it, if known
}

// Causes groups the red tests of a run by cause, as every report does. The zero value is ready to use.
type Causes struct{ of *causes }

// Add adds the verdict of any test.
func (c *Causes) Add(v *result.Verdict) {
	if c.of == nil {
		c.of = newCauses(nil)
	}
	c.of.add(v)
}

// List returns the causes, those with the most tests first.
func (c *Causes) List() (all []Cause) {
	if c.of == nil {
		return nil
	}
	for _, one := range c.of.sorted() {
		all = append(all, Cause{one.Status, one.Why, one.scope(), oneLine(one.Name), one.Rerun})
	}
	return all
}

// key identifies the cause of a failure. It has no ports, ids, times and indexes.
func (f *failure) key() string {
	why := f.Why
	if len(f.Mismatches) > 0 && f.Status != result.Broken {
		m := f.Mismatches[0]
		m.Want = "" // tests with different values may get the same one
		why = whyOf(m)
	}
	return string(f.Status) + " " + unstable.ReplaceAllString(why, "#")
}

var unstable = regexp.MustCompile(`:\d{4,5}\b|[0-9a-f]{24}|\[-?\d+\]|\d{6,}|[A-Za-z0-9+/]{22}==|\b\d+(\.\d+)?m?s\b`)
