package main

import (
	"embed"
	"maps"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"

	"github.com/unified-test-runner/utr/program/internal/compare"
)

//go:embed drivers.md releases.md deviation.md
var pageFiles embed.FS

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"newest": data.newest, "suites": data.suites,
	"cell": func(text string) string { return strings.ReplaceAll(text, "|", `\|`) },
}).ParseFS(pageFiles, "*.md"))

// pages returns the pages by their paths below docs.
func (d data) pages(deviations []compare.Deviation) (map[string]string, error) {
	released := slices.DeleteFunc(slices.Clone(d), func(one *driver) bool {
		return !semver.IsValid("v" + one.Newest().Version) // the reference engine
	})
	pages := map[string]string{}
	add := func(page, name string, about any) error {
		var b strings.Builder
		err := pageTemplates.ExecuteTemplate(&b, name, about)
		pages[page] = b.String()
		return err
	}
	if err := add("drivers.md", "drivers.md", d); err != nil {
		return nil, err
	}
	if err := add("driver/releases.md", "releases.md", released); err != nil {
		return nil, err
	}
	for _, one := range deviations {
		if one.Suite == "" {
			continue
		}
		about := deviationPage{Deviation: one, of: released}
		if err := add("driver/deviations/"+one.Name()+".md", "deviation.md", about); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// Newest returns the newest release of a driver.
func (d *driver) Newest() *release { return d.Releases[0] }

// Earlier returns the other releases.
func (d *driver) Earlier() []*release { return d.Releases[1:] }

// step is what changed from a release to the next.
type step struct {
	From, To string
	Changes  []string
}

// Steps returns what changed, the newest release first.
func (d *driver) Steps() (steps []step) {
	for i, older := range d.Earlier() {
		steps = append(steps, step{older.Version, d.Releases[i].Version, d.Releases[i].Changes})
	}
	return steps
}

// Word says what a release does in a suite of deviations.
func (r *release) Word(suite string) string {
	word, _, _ := strings.Cut(r.Deviations[suite], " ")
	if word == "" {
		return "does not run"
	}
	return word
}

// differsFrom reports whether a release differs from a suite of deviations.
func (r *release) differsFrom(suite string) bool {
	return r.Deviations[suite] != "" && r.Word(suite) != "same"
}

// newest returns the drivers with only their newest release.
func (d data) newest() (all data) {
	for _, one := range d {
		all = append(all, &driver{one.Name, one.Releases[:1]})
	}
	return all
}

// suites returns the suites of deviations that any release ran.
func (d data) suites() []string {
	all := map[string]bool{}
	for _, one := range d {
		for _, r := range one.Releases {
			for suite := range r.Deviations {
				all[suite] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Differing names the releases that differ from a suite of deviations, and those that do not run it.
func (d *driver) Differing(suite string) string {
	list := func(prefix, end string, in func(*release) bool) string {
		versions := d.versions(in)
		switch len(versions) {
		case 0:
			return ""
		case len(d.Releases):
			return prefix + "all" + end
		}
		return prefix + strings.Join(versions, ", ") + end
	}
	return strings.TrimSpace(list("", "", func(r *release) bool { return r.differsFrom(suite) }) +
		list(" (not run: ", ")", func(r *release) bool { return r.Deviations[suite] == "" }))
}

func (d *driver) versions(in func(*release) bool) (all []string) {
	for _, r := range d.Releases {
		if in(r) {
			all = append(all, r.Version)
		}
	}
	return all
}

// deviationPage is a report for the maintainers of drivers about a deviation with a suite.
type deviationPage struct {
	compare.Deviation
	of data
}

// deviationRow is a driver of which a release differs. Engine is the newest release that does.
type deviationRow struct{ Driver, Engine, Differ, Others, Code string }

// Rows returns the drivers that differ.
func (p deviationPage) Rows() (rows []deviationRow) {
	for _, d := range p.of {
		differ := d.versions(func(r *release) bool { return r.differsFrom(p.Name()) })
		if len(differ) == 0 {
			continue
		}
		row := deviationRow{Driver: d.Name, Engine: d.Name, Code: p.Code[d.Name]}
		if len(d.Releases) > 1 { // utr installs them
			row.Engine += "@" + differ[0]
		}
		if p.Engines != nil && !slices.Contains(p.Engines, d.Name) {
			row.Code = "differs in another way"
		}
		row.Others = strings.Join(d.versions(func(r *release) bool { return !r.differsFrom(p.Name()) }), ", ")
		for _, r := range d.Releases {
			at := slices.Index(differ, r.Version)
			if at >= 0 && strings.HasSuffix(r.Deviations[p.Name()], " sometimes") {
				differ[at] += " (sometimes)"
			}
		}
		row.Differ = strings.Join(differ, ", ")
		rows = append(rows, row)
	}
	return rows
}
