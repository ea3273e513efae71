// Package site turns JSON reports into static pages: an index of engines and suites, a page for each engine with its
// deviations and its history, and badges. Program drivers writes pages of docs from the report of one run.
package site

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// Report is what a JSON report says about each engine and its suites.
type Report struct {
	Name   string
	Began  time.Time
	Commit string // that CI tested; "" if unknown
	Groups []*Group
	Faults []string // of the run, if it has no groups
	page   string   // its path, if it has the newest results of any engine and suites
}

// Group has the results of an engine in a group of suites: the suites of a cell of a matrix, or of a folder.
type Group struct {
	Engine, Version, Suites string
	result.Summary

	NotRun  int                  // tests that did not run, because the run broke
	Lacks   map[string]int       // tests by what the engine does not support
	Differs map[string]int       // known failures by what the driver does differently
	Departs map[string]departure // what the driver does, by suite of deviations
	causes  *report.Causes
	filter  string // of the report's page, for these tests
	report  *Report
}

// departure is what a driver does in a suite of deviations, and why the specification does not expect it.
type departure struct{ Word, Reason string }

// deviations is the group of specs/deviations.
const deviations = "deviations"

// Read reads a JSON report. If the report has no time, the run has the time written.
func Read(name string, from io.Reader, written time.Time) (*Report, error) {
	r := &Report{Name: name, Began: written}
	p, err := report.Scan(name, from, func(v *result.Verdict) { r.groupOf(v.Test.Cell, v.Test.File).add(v) })
	switch {
	case err != nil:
		return nil, err
	case p.Shard != "":
		return nil, fmt.Errorf("%s is a part of a run: merge its parts first", name)
	}
	run := cmp.Or(p.Run, &report.PastRun{Breaks: []result.Break{{Reason: "the report was cut off"}}})
	if r.Commit = run.Commit; !run.Started.IsZero() {
		r.Began = run.Started
	}
	r.end(run)
	return r, nil
}

// Tests is the number of tests with a verdict.
func (r *Report) Tests() (n int) {
	for _, g := range r.Groups {
		n += g.Ran() + g.Skipped
	}
	return n
}

// groupOf returns the group of a test. The engine is "" if the end of the report names it.
func (r *Report) groupOf(cell, file string) *Group {
	_, engine, suites, ok := CellOf(cell)
	filter := "_" + engine + "_" + suites
	if !ok {
		suites, filter = folderOf(file), ""
		if strings.Contains(file, suites+"/") {
			filter = suites + "/"
		}
	}
	i := slices.IndexFunc(r.Groups, func(g *Group) bool { return g.Engine == engine && g.Suites == suites })
	if i >= 0 {
		return r.Groups[i]
	}
	g := &Group{Engine: engine, Suites: suites, filter: filter, report: r,
		causes: report.NewCauses(nil), Lacks: map[string]int{}, Differs: map[string]int{}, Departs: map[string]departure{}}
	r.Groups = append(r.Groups, g)
	return g
}

// CellOf splits the name of a cell: cluster_engine_suites, or cluster_engine_suites_options.
func CellOf(cell string) (cluster, engine, suites string, ok bool) {
	parts := strings.Split(cell, "_")
	if len(parts) != 3 && len(parts) != 4 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// folderOf returns the last two folders of a suite, of official ones without those in the specification: "crud",
// "official/crud", "dated/retryable-writes".
func folderOf(file string) string {
	folders := strings.Split(path.Dir(strings.ReplaceAll(file, `\`, "/")), "/")
	for n := len(folders); n > 0 && (folders[n-1] == "tests" || folders[n-1] == "unified"); n-- {
		folders = folders[:n-1]
	}
	folders = folders[max(0, len(folders)-2):]
	folders = slices.DeleteFunc(folders,
		func(name string) bool { return slices.Contains([]string{"", ".", "..", "specs"}, name) })
	return cmp.Or(strings.Join(folders, "/"), "suites")
}

func (g *Group) add(v *result.Verdict) {
	g.Add(v)
	g.causes.Add(v)
	switch {
	case v.SkipKind == result.SkipNotRun || v.SkipKind == result.SkipInterrupted:
		g.NotRun++
	case v.SkipKind == result.SkipCapability:
		g.Lacks[strings.TrimPrefix(v.Reason, "the engine does not support ")]++
	case v.Status == result.Skipped: // no engine can run it on this cluster
	case g.Suites == deviations:
		name := strings.TrimSuffix(path.Base(v.Test.File), path.Ext(v.Test.File))
		if g.Departs[name].Word == "" || v.Status == result.KnownFailing {
			reason := ParseReason(v.Reason)
			g.Departs[name] = departure{reason.Word(v.Status), reason.Why}
		}
	case v.Status == result.KnownFailing:
		g.Differs[ParseReason(v.Reason).Why]++
	}
}

// Reason is the reason of a known failure. Since and Until are the versions or the day that limit it, if any.
type Reason struct {
	Since, Until string
	Sometimes    bool   // it depends on timing
	Why          string // what the driver does differently
}

var limits = regexp.MustCompile(`^(?:since (\d[^: ]*) ?)?(?:until (\d[^:]*))?(?:: )?(sometimes: )?`)

// ParseReason returns the parts of the reason of a verdict.
func ParseReason(text string) Reason {
	m := limits.FindStringSubmatch(text)
	return Reason{m[1], m[2], m[3] != "", text[len(m[0]):]}
}

// Word says what a driver does in a suite of deviations.
func (r Reason) Word(s result.Status) string {
	switch {
	case s == result.KnownFailing && strings.HasPrefix(r.Why, "permitted"):
		return "differs"
	case s == result.KnownFailing:
		return "departs"
	case s.FailsRun():
		return string(s)
	}
	return "same"
}

// end adds what the end of the report says: engines with their versions, and what is wrong with the run.
func (r *Report) end(run *report.PastRun) {
	for _, b := range run.Breaks {
		if _, _, _, ok := CellOf(b.Cell); ok {
			r.groupOf(b.Cell, "") // even if it has no test
		}
		r.blame(b.Cell, result.Summary{Breaks: []result.Break{b}})
	}
	for _, p := range run.Problems {
		rest, ofCell := strings.CutPrefix(p, "cell ")
		cell, _, _ := strings.Cut(rest, ": ")
		if !ofCell {
			cell = ""
		}
		r.blame(cell, result.Summary{Problems: []string{p}})
	}
	for cell, engine := range run.Engines {
		if _, _, _, ok := CellOf(cell); ok {
			_, r.groupOf(cell, "").Version = cutLast(engine)
		}
	}
	for _, g := range r.Groups {
		if g.NotRun > 0 && g.ExitCode() == 0 {
			g.Breaks = []result.Break{{Reason: plural.Of(g.NotRun, "test") + " did not run"}}
		}
		if g.Engine != "" {
			g.Version = cmp.Or(g.Version, versionOf(g.Engine, run.Engine))
			continue
		}
		name, version := cutLast(strings.TrimSpace(run.Engine))
		if strings.Contains(name, " and ") { // engines that were merged without cells
			name, version = run.Engine, ""
		}
		g.Engine, g.Version = cmp.Or(name, "unknown"), cmp.Or(g.Version, version)
	}
}

// blame adds a fault to the group of a cell, or to all groups, or to the report if it has none.
func (r *Report) blame(cell string, fault result.Summary) {
	_, engine, suites, known := CellOf(cell)
	if len(r.Groups) == 0 {
		r.Faults = append(r.Faults, report.Faults(fault)...)
	}
	for _, g := range r.Groups {
		if !known || g.Engine == engine && g.Suites == suites {
			g.Breaks, g.Problems = append(g.Breaks, fault.Breaks...), append(g.Problems, fault.Problems...)
		}
	}
}

// versionOf finds the version of an engine among the engines of a matrix, "name version and name version".
func versionOf(engine, all string) string {
	for one := range strings.SplitSeq(all, " and ") {
		if name, version := cutLast(one); strings.EqualFold(name, engine) {
			return version
		}
	}
	return ""
}

// cutLast splits off the last word, if there are several.
func cutLast(text string) (before, last string) {
	if i := strings.LastIndex(text, " "); i > 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}
