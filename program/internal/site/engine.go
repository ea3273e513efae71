package site

import (
	"cmp"
	"maps"
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

func (t *Timeline) newest() *Group { return t.Runs[len(t.Runs)-1] }

// Engines arranges reports, which need not be in order, by engine. The engines are in the order of the newest reports
// that have them. Of reports of one run, the last one counts.
func Engines(reports []*Report) (all []*Engine) {
	for _, r := range sorted(reports) {
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

// departs returns what the driver does in each suite of deviations.
func (e *Engine) departs() map[string]departure {
	for _, t := range e.Suites {
		if t.Suites == deviations {
			return t.newest().Departs
		}
	}
	return nil
}

// word says what the driver does in a suite of deviations.
func (e *Engine) word(suite string) string { return cmp.Or(e.departs()[suite].Word, "does not run") }

// Count is a number of tests with a name.
type Count struct {
	Tests int
	Name  string
}

// counts adds numbers of tests by name, the highest first.
func counts(of []*Timeline, in func(*Group) map[string]int) (all []Count) {
	sum := map[string]int{}
	for _, t := range of {
		for name, n := range in(t.newest()) {
			sum[name] += n
		}
	}
	for name, n := range sum {
		all = append(all, Count{n, name})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(b.Tests-a.Tests, strings.Compare(a.Name, b.Name)) })
	return all
}

func differs(g *Group) map[string]int { return g.Differs }
func lacks(g *Group) map[string]int   { return g.Lacks }

// lacking is the number of tests that the engine does not support.
func (g *Group) lacking() (n int) {
	for _, tests := range g.Lacks {
		n += tests
	}
	return n
}

// names returns the sorted names of the suites that any engine has.
func names(engines []*Engine, of func(*Engine) []string) []string {
	all := map[string]bool{}
	for _, e := range engines {
		for _, name := range of(e) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
