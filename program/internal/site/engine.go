package site

import (
	"cmp"
	"slices"
	"strings"
)

// Engine has the results of an engine over several reports.
type Engine struct {
	Name, Version string
	Suites        []*Timeline // by name
}

// Timeline has the results of an engine in a group of suites, oldest first. There is at least one.
type Timeline struct {
	Suites string
	Runs   []*Group
}

// Newest returns the newest results.
func (t *Timeline) Newest() *Group { return t.Runs[len(t.Runs)-1] }

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
	}
	return all
}

// sorted returns the newest report first. Of a run that was resumed, that is its last report.
func sorted(reports []*Report) []*Report {
	reversed := slices.Clone(reports)
	slices.Reverse(reversed)
	return slices.SortedStableFunc(slices.Values(reversed), func(a, b *Report) int { return b.Began.Compare(a.Began) })
}

// find returns the first matching item of a list. If no item matches, it appends other and returns that.
func find[T any](all *[]*T, is func(*T) bool, other T) *T {
	if i := slices.IndexFunc(*all, is); i >= 0 {
		return (*all)[i]
	}
	*all = append(*all, &other)
	return &other
}

// compared returns the groups that are not deviations.
func (e *Engine) compared() []*Timeline {
	return slices.DeleteFunc(slices.Clone(e.Suites), func(t *Timeline) bool { return t.Suites == deviations })
}

// Departs returns what the driver does in each suite of deviations.
func (e *Engine) Departs() map[string]departure {
	for _, t := range e.Suites {
		if t.Suites == deviations {
			return t.Newest().Departs
		}
	}
	return nil
}

// Count is a number of tests with a name.
type Count struct {
	Tests int    `json:"tests"`
	Name  string `json:"name"`
}

// counts adds numbers of tests by name, the highest first.
func counts(of []*Timeline, in func(*Group) map[string]int) (all []Count) {
	sum := map[string]int{}
	for _, t := range of {
		for name, n := range in(t.Newest()) {
			sum[name] += n
		}
	}
	return Counts(sum)
}

// Counts lists numbers of tests by name, the highest first.
func Counts(of map[string]int) (all []Count) {
	for name, n := range of {
		all = append(all, Count{n, name})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(b.Tests-a.Tests, strings.Compare(a.Name, b.Name)) })
	return all
}

// Lacking is the number of tests that the engine does not support.
func (g *Group) Lacking() (n int) {
	for _, tests := range g.Lacks {
		n += tests
	}
	return n
}
