package site

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// releasesHead is docs/driver/releases.md up to the first row of its first table.
//
//go:embed releases.md
var releasesHead string

// Releases is a report of several releases of drivers: engines like driver@2.10.0.
type Releases struct {
	*Report
	verdicts map[string][]*result.Verdict // by engine, as compare needs them
}

// ReadReleases reads a JSON report.
func ReadReleases(name string, from io.Reader) (*Releases, error) {
	all := &Releases{verdicts: map[string][]*result.Verdict{}}
	var err error
	all.Report, err = read(name, from, time.Time{}, func(v *result.Verdict) {
		cluster, _, _ := strings.Cut(v.Test.Cell, "_")
		if engine, suites, ok := cellOf(v.Test.Cell); ok {
			slim := *v
			slim.Evidence, slim.Test.Cell = result.Evidence{}, cluster+"_"+suites // the same for all releases
			all.verdicts[engine] = append(all.verdicts[engine], &slim)
		}
	})
	return all, err
}

// driver is an engine with its releases, the newest first. There is at least one.
type driver struct {
	name     string
	releases []*Engine
}

// drivers arranges engines by driver: driver@2.10.0 is a release of driver.
func drivers(engines []*Engine) (all []*driver) {
	for _, e := range engines {
		name, _, _ := strings.Cut(e.Name, "@")
		d := find(&all, func(d *driver) bool { return d.name == name }, driver{name: name})
		d.releases = append(d.releases, e)
	}
	for _, d := range all {
		slices.SortStableFunc(d.releases, func(a, b *Engine) int { return semver.Compare("v"+b.Version, "v"+a.Version) })
	}
	return all
}

// newest returns the newest release of each driver, under the name of the driver.
func newest(engines []*Engine) (all []*Engine) {
	for _, d := range drivers(engines) {
		e := *d.releases[0]
		e.Name = d.name
		all = append(all, &e)
	}
	return all
}

// Markdown returns docs/driver/releases.md. known says what suites of specs/deviations are about, by name. Like that of
// drivers.md, a test that is red or did not run is an error, and so is a change between two releases that no line of
// the driver's known-failing.txt dates.
func (r *Releases) Markdown(known map[string]string) (string, error) {
	if err := r.explained(); err != nil {
		return "", err
	}
	all := slices.DeleteFunc(drivers(Engines([]*Report{r.Report})), func(d *driver) bool {
		return !semver.IsValid("v" + d.releases[0].Version) // the reference engine
	})
	var b strings.Builder
	b.WriteString(releasesHead)
	for _, d := range all {
		for _, e := range d.releases {
			for _, t := range e.compared() {
				g := t.newest()
				fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d |\n", d.name, e.Version, t.Suites, g.Passed, g.KnownFailing,
					g.lacking())
			}
		}
	}
	b.WriteString("\n## What changed between releases\n")
	for _, d := range all {
		if len(d.releases) == 1 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n", d.name)
		for i, newer := range d.releases[:len(d.releases)-1] {
			older := d.releases[i+1]
			changes, err := r.compare(older, newer, known)
			if err != nil {
				return "", fmt.Errorf("%s, from %s to %s: %w", d.name, older.Version, newer.Version, err)
			}
			fmt.Fprintf(&b, "\nFrom %s to %s:%s\n", older.Version, newer.Version,
				cmp.Or(strings.Join(changes, ""), " no change."))
		}
	}
	b.WriteString(suitesByRelease(all))
	return b.String(), nil
}

// compare returns what changed between two releases, as items of a list: the changes of utr diff, where known failures
// are failures, by their explanation.
func (r *Releases) compare(older, newer *Engine, known map[string]string) (items []string, err error) {
	both := func(v *result.Verdict) bool {
		_, suites, _ := strings.Cut(v.Test.Cell, "_")
		has := func(e *Engine) bool {
			return slices.ContainsFunc(e.Suites, func(t *Timeline) bool { return t.Suites == suites })
		}
		return has(older) && has(newer)
	}
	of := func(e *Engine) *report.SavedRun {
		run := &report.SavedRun{Run: &report.PastRun{}}
		for _, v := range r.verdicts[e.Name] {
			if !both(v) {
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
	type group struct {
		what  string
		tests int
		rerun []string // of the first test, with the release that fails or skips it
	}
	var groups []*group
	for kind, changes := range report.Compare(of(older), of(newer), time.Hour, nil) {
		for _, c := range changes {
			what, shows, err := explain(report.ChangeKind(kind), c, older.Version, newer.Version, known)
			if err != nil {
				id := cmp.Or(c.New, c.Old).Test
				return nil, fmt.Errorf("%s, %s: %s: %w", id.Cell, id.File, id.Description, err)
			}
			find(&groups, func(g *group) bool { return g.what == what }, group{what: what, rerun: shows.Rerun}).tests++
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return b.tests - a.tests })
	for _, g := range groups {
		item := fmt.Sprintf("\n\n- %s: %s", plural.Of(g.tests, "test"), g.what)
		if len(g.rerun) > 2 {
			all := slices.Insert(slices.Clone(g.rerun), 2, "--known-failing", "/dev/null") // after utr run
			item += ":\n\n  ```\n  " + report.Quote(all) + "\n  ```"
		}
		items = append(items, item)
	}
	return items, nil
}

// explain says why a test changed, and which of its verdicts shows it. The reason of a known failure must date the
// change between the versions, or say that the test depends on chance.
func explain(kind report.ChangeKind, c report.Change, older, newer string,
	known map[string]string) (what string, shows *result.Verdict, err error) {
	skipped := func(v *result.Verdict) bool { return v != nil && v.SkipKind == result.SkipCapability }
	about := func(v *result.Verdict) string {
		return cmp.Or(known[strings.TrimSuffix(path.Base(v.Test.File), path.Ext(v.Test.File))], why(v.Reason))
	}
	dated := func(v *result.Verdict, limit, change string) (string, *result.Verdict, error) {
		m := limits.FindStringSubmatch(v.Reason)
		switch at := m[limits.SubexpIndex(limit)]; {
		case semver.Compare("v"+older, "v"+at) < 0 && semver.Compare("v"+at, "v"+newer) <= 0:
			return "**" + change + " in " + at + "**: " + about(v), v, nil
		case m[limits.SubexpIndex("sometimes")] != "":
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
		return dated(c.New, "since", "new")
	case kind == report.Fixed:
		return dated(c.Old, "until", "fixed")
	}
	return "", nil, fmt.Errorf("it does not run with both: %s", cmp.Or(c.New, c.Old).Reason)
}

// suitesByRelease returns a table of the suites of specs/deviations and the releases that differ.
func suitesByRelease(all []*driver) string {
	var engines []*Engine
	var columns []string
	for _, d := range all {
		engines = append(engines, d.releases...)
		columns = append(columns, d.name)
	}
	return bySuite("\n## Deviations by release\n\nA cell names the releases that differ from the suite; it is empty if none "+
		"does.\n", "deviations/", engines, columns,
		func(i int, suite string) string { return all[i].differing(suite) })
}

// differing names the releases that differ from a suite of deviations, and those that do not run it.
func (d *driver) differing(suite string) string {
	var differ, missing []string
	for _, e := range d.releases {
		switch e.departs()[suite].Word {
		case "same":
		case "":
			missing = append(missing, e.Version)
		default:
			differ = append(differ, e.Version)
		}
	}
	list := func(some []string) string {
		if len(some) == len(d.releases) {
			return "all"
		}
		return strings.Join(some, ", ")
	}
	text := list(differ)
	if len(missing) > 0 {
		text = strings.TrimSpace(text + " (not run: " + list(missing) + ")")
	}
	return text
}
