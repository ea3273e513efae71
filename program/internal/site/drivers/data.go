package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/site"
	"github.com/unified-test-runner/utr/result"
)

// data is docs/driver/drivers.json: what a run of drivers.yml found. The reference engine is one of the drivers.
type data []*driver

// driver is an engine with its releases, the newest first. There is at least one.
type driver struct {
	Name     string     `json:"name"`
	Releases []*release `json:"releases"`
}

// release has the results of a release of a driver.
type release struct {
	Version    string            `json:"version"`
	Suites     []*counts         `json:"suites"`               // without deviations, by name
	Deviations map[string]string `json:"deviations,omitempty"` // what the driver does, by suite of deviations
	Changes    []string          `json:"changes,omitempty"`    // since the release before it, as items of a list

	// Tests of the newest release, by what it does differently and by what it does not support.
	Differs []site.Count `json:"differs,omitempty"`
	Lacks   []site.Count `json:"lacks,omitempty"`

	differs, lacks map[string]int
	verdicts       []*result.Verdict // as report.Compare needs them
}

// counts are the numbers of tests of a group of suites.
type counts struct {
	Name         string `json:"name"`
	Passed       int    `json:"passed"`
	KnownFailing int    `json:"knownFailing"`
	Lacking      int    `json:"lacking"`
}

// read reads the report of a run. The pages explain every failure, so it returns an error if a test is red or did not
// run, or if no line of the driver's known-failing.txt dates a change between two releases. known says what suites of
// deviations are about, by name.
func read(name string, from io.Reader, known map[string]string) (data, error) {
	var d data
	var problems []error
	engines := map[string]*release{} // by name of the engine, such as node@7.9.0
	p, err := report.Scan(name, from, func(v *result.Verdict) {
		cluster, engine, suites, ok := site.CellOf(v.Test.Cell)
		if !ok || v.Status.FailsRun() || v.SkipKind == result.SkipNotRun || v.SkipKind == result.SkipInterrupted {
			problems = append(problems, fmt.Errorf("%s: %s: %s: %s", v.Status, v.Test.File, v.Test.Description, v.Reason))
			return
		}
		of := engines[engine]
		if of == nil {
			of = &release{differs: map[string]int{}, lacks: map[string]int{}, Deviations: map[string]string{}}
			engines[engine] = of
			d.driver(engine).Releases = append(d.driver(engine).Releases, of)
		}
		of.add(v, suites)
		slim := *v
		slim.Evidence, slim.Test.Cell = result.Evidence{}, cluster+"_"+suites // the same for all releases
		of.verdicts = append(of.verdicts, &slim)
	})
	if err := errors.Join(err, errors.Join(problems...)); err != nil || p.Run == nil || len(d) == 0 {
		return nil, cmp.Or(err, errors.New("the report has no tests, or was cut off"))
	}
	if faults := report.Faults(result.Summary{Breaks: p.Run.Breaks, Problems: p.Run.Problems}); len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "\n"))
	}
	for name, text := range p.Run.Engines {
		if _, engine, _, ok := site.CellOf(name); ok && engines[engine] != nil {
			engines[engine].Version = text[strings.LastIndex(text, " ")+1:]
		}
	}
	for _, one := range d {
		if err := one.finish(known); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// driver returns the driver of an engine such as node@7.9.0. It adds a driver if there is none.
func (d *data) driver(engine string) *driver {
	name, _, _ := strings.Cut(engine, "@")
	for _, one := range *d {
		if one.Name == name {
			return one
		}
	}
	*d = append(*d, &driver{Name: name})
	return (*d)[len(*d)-1]
}

// add counts a test.
func (r *release) add(v *result.Verdict, suites string) {
	reason := site.ParseReason(v.Reason)
	if suites == "deviations" {
		name := suiteName(v)
		if v.Status != result.Skipped && (r.Deviations[name] == "" || v.Status == result.KnownFailing) {
			r.Deviations[name] = reason.Word(v.Status)
			if reason.Sometimes {
				r.Deviations[name] += " sometimes"
			}
		}
		return
	}
	i := slices.IndexFunc(r.Suites, func(c *counts) bool { return c.Name == suites })
	if i < 0 {
		i, r.Suites = len(r.Suites), append(r.Suites, &counts{Name: suites})
	}
	switch {
	case v.Status == result.Passed:
		r.Suites[i].Passed++
	case v.Status == result.KnownFailing:
		r.Suites[i].KnownFailing++
		r.differs[reason.Why]++
	case v.SkipKind == result.SkipCapability:
		r.Suites[i].Lacking++
		r.lacks[strings.TrimPrefix(v.Reason, "the engine does not support ")]++
	}
}

// suiteName returns the name of the file of a test without its folder and extension.
func suiteName(v *result.Verdict) string {
	return strings.TrimSuffix(path.Base(v.Test.File), path.Ext(v.Test.File))
}

// finish sorts the releases, and adds what is different from one to the next.
func (d *driver) finish(known map[string]string) error {
	slices.SortStableFunc(d.Releases, func(a, b *release) int { return semver.Compare("v"+b.Version, "v"+a.Version) })
	d.Releases[0].Differs, d.Releases[0].Lacks = site.Counts(d.Releases[0].differs), site.Counts(d.Releases[0].lacks)
	for i, newer := range d.Releases {
		slices.SortFunc(newer.Suites, func(a, b *counts) int { return strings.Compare(a.Name, b.Name) })
		if i+1 == len(d.Releases) {
			continue
		}
		older := d.Releases[i+1]
		var err error
		if newer.Changes, err = changes(older, newer, known); err != nil {
			return fmt.Errorf("%s, from %s to %s: %w", d.Name, older.Version, newer.Version, err)
		}
	}
	return nil
}

// changes returns what changed between two releases: the changes of utr diff, where known failures are failures, by
// their explanation.
func changes(older, newer *release, known map[string]string) (items []string, err error) {
	type group struct {
		what  string
		tests int
		rerun []string // of the first test, with the release that fails or skips it
	}
	var groups []*group
	for kind, all := range report.Compare(older.run(newer), newer.run(older), time.Hour, nil) {
		for _, c := range all {
			what, shows, err := explain(report.ChangeKind(kind), c, older.Version, newer.Version, known)
			if err != nil {
				id := cmp.Or(c.New, c.Old).Test
				return nil, fmt.Errorf("%s, %s: %s: %w", id.Cell, id.File, id.Description, err)
			}
			i := slices.IndexFunc(groups, func(g *group) bool { return g.what == what })
			if i < 0 {
				i, groups = len(groups), append(groups, &group{what: what, rerun: shows.Rerun})
			}
			groups[i].tests++
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return b.tests - a.tests })
	for _, g := range groups {
		item := fmt.Sprintf("%s: %s", plural.Of(g.tests, "test"), g.what)
		if len(g.rerun) > 2 {
			all := slices.Insert(slices.Clone(g.rerun), 2, "--known-failing", "/dev/null") // after utr run
			item += ":\n\n  ```\n  " + report.Quote(all) + "\n  ```"
		}
		items = append(items, item)
	}
	return items, nil
}

// run returns the tests of suites that another release ran, too. Known failures are failures.
func (r *release) run(other *release) *report.SavedRun {
	run := &report.SavedRun{Run: &report.PastRun{}}
	for _, v := range r.verdicts {
		_, suites, _ := strings.Cut(v.Test.Cell, "_")
		if suites != "deviations" && !slices.ContainsFunc(other.Suites, func(c *counts) bool { return c.Name == suites }) {
			continue
		}
		judged := *v
		if v.Status == result.KnownFailing {
			judged.Status = result.Failed
		}
		run.Verdicts = append(run.Verdicts, &judged)
	}
	return run
}

// explain says why a test changed, and which of its verdicts shows it. The reason of a known failure must date the
// change between the versions, or say that the test depends on chance.
func explain(kind report.ChangeKind, c report.Change, older, newer string,
	known map[string]string) (what string, shows *result.Verdict, err error) {
	skipped := func(v *result.Verdict) bool { return v != nil && v.SkipKind == result.SkipCapability }
	about := func(v *result.Verdict) string {
		return cmp.Or(known[suiteName(v)], site.ParseReason(v.Reason).Why)
	}
	dated := func(v *result.Verdict, at, change string) (string, *result.Verdict, error) {
		switch {
		case semver.Compare("v"+older, "v"+at) < 0 && semver.Compare("v"+at, "v"+newer) <= 0:
			return "**" + change + " in " + at + "**: " + about(v), v, nil
		case site.ParseReason(v.Reason).Sometimes:
			return "**by chance**: " + about(v), v, nil
		}
		return "", nil, fmt.Errorf("the reason does not say in which release it is %s: %s", change, v.Reason)
	}
	switch {
	case skipped(c.New):
		return "**not supported** any more: " + c.New.Reason, c.New, nil
	case skipped(c.Old):
		what = "**supported**, which was not: " + c.Old.Reason
		if c.New.Status != result.Passed {
			what += "; it differs: " + about(c.New)
		}
		return what, c.Old, nil
	case kind == report.NewFailure && c.Old != nil:
		return dated(c.New, site.ParseReason(c.New.Reason).Since, "new")
	case kind == report.Fixed:
		return dated(c.Old, site.ParseReason(c.Old.Reason).Until, "fixed")
	}
	return "", nil, fmt.Errorf("it does not run with both: %s", cmp.Or(c.New, c.Old).Reason)
}
