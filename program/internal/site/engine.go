package site

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/program/internal/report"
)

// Engine has the results of an engine over several reports.
type Engine struct {
	Name, Version string
	Page          string      // its path
	Suites        []*Timeline // by name
}

// Timeline has the results of an engine in a group of suites, oldest first. There is at least one.
type Timeline struct {
	Suites string
	Anchor string // its place on the page of the engine
	Runs   []*Group
}

// Newest returns the newest results.
func (t *Timeline) Newest() *Group { return t.Runs[len(t.Runs)-1] }

// Detail is the link from the page of the engine to the newest results on the page of their report.
func (t *Timeline) Detail() string {
	g := t.Newest()
	return "../" + g.report.page + "#" + url.Values{"q": {g.filter}}.Encode()
}

// mostRuns is how many runs the history of suites shows.
const mostRuns = 30

// History returns the last runs, the newest first.
func (t *Timeline) History() []*Group {
	runs := slices.Clone(t.Runs[max(0, len(t.Runs)-mostRuns):])
	slices.Reverse(runs)
	return runs
}

// enginesOf arranges sorted reports by engine. The engines are in the order of the newest reports that have them. Of
// reports of one run, the last one counts.
func enginesOf(reports []*Report) (all []*Engine) {
	for _, r := range reports {
		for _, g := range r.Groups {
			engine := find(&all, func(e *Engine) bool { return e.Name == g.Engine }, Engine{Name: g.Engine})
			engine.Version = cmp.Or(engine.Version, g.Version)
			line := find(&engine.Suites, func(t *Timeline) bool { return t.Suites == g.Suites }, Timeline{Suites: g.Suites})
			if len(line.Runs) == 0 || !line.Runs[0].report.Began.Equal(r.Began) {
				line.Runs = slices.Insert(line.Runs, 0, g)
			}
		}
	}
	for _, e := range all {
		slices.SortFunc(e.Suites, func(a, b *Timeline) int { return strings.Compare(a.Suites, b.Suites) })
		for i, t := range e.Suites {
			t.Anchor = fmt.Sprint("suites-", i+1)
		}
	}
	return all
}

// find returns the first matching item of a list. If no item matches, it appends other and returns that.
func find[T any](all *[]*T, is func(*T) bool, other T) *T {
	if i := slices.IndexFunc(*all, is); i >= 0 {
		return (*all)[i]
	}
	*all = append(*all, &other)
	return &other
}

// of returns the results in a group of suites, or nil.
func (e *Engine) of(suites string) *Timeline {
	for _, t := range e.Suites {
		if t.Suites == suites {
			return t
		}
	}
	return nil
}

// Faults says what is wrong with the newest runs.
func (e *Engine) Faults() (all []string) {
	for _, t := range e.Suites {
		for _, f := range report.Faults(t.Newest().Summary) {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// Red reports whether a test of any suites is red.
func (e *Engine) Red() bool {
	return slices.ContainsFunc(e.Suites, func(t *Timeline) bool { return len(t.Newest().Causes()) > 0 })
}

// Departs returns what the driver does in each suite of deviations.
func (e *Engine) Departs() map[string]departure {
	if t := e.of(deviations); t != nil {
		return t.Newest().Departs
	}
	return nil
}

// Differing and Lacking count the tests of the newest runs by what the driver does differently, and by what it does
// not support.
func (e *Engine) Differing() []Count {
	return e.counts(func(g *Group) map[string]int { return g.Differs })
}
func (e *Engine) Lacking() []Count { return e.counts(func(g *Group) map[string]int { return g.Lacks }) }

// counts adds numbers of tests by name, the highest first. The suites of deviations do not count.
func (e *Engine) counts(in func(*Group) map[string]int) []Count {
	sum := map[string]int{}
	for _, t := range e.Suites {
		if t.Suites != deviations {
			for name, n := range in(t.Newest()) {
				sum[name] += n
			}
		}
	}
	return Counts(sum)
}

// Count is a number of tests with a name.
type Count struct {
	Tests int    `json:"tests"`
	Name  string `json:"name"`
}

// Counts lists numbers of tests by name, the highest first.
func Counts(of map[string]int) (all []Count) {
	for name, n := range of {
		all = append(all, Count{n, name})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(b.Tests-a.Tests, strings.Compare(a.Name, b.Name)) })
	return all
}
