package site

import (
	_ "embed"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/result"
)

//go:embed page.html
var pageHTML string

const siteTitle = "utr results"

// Site is a set of static pages. They refer to each other by relative links and to nothing else.
type Site struct {
	All     []*Engine
	Known   map[string]string // deviations by suite of specs/deviations
	reports []*Report         // newest first
}

// New arranges reports. They need not be in order. known says what suites of specs/deviations are about, by name.
func New(reports []*Report, known map[string]string) *Site {
	s := &Site{reports: slices.Clone(reports), Known: known}
	slices.Reverse(s.reports) // of a run that was resumed, the last report counts
	slices.SortStableFunc(s.reports, func(a, b *Report) int { return b.Began.Compare(a.Began) })
	s.All = enginesOf(s.reports)
	var pages, details slugs
	for _, e := range s.All {
		e.Page = "engines/" + pages.of(e.Name) + ".html"
		for _, t := range e.Suites {
			if r := t.Newest().report; r.page == "" {
				r.page = "reports/" + details.of(strings.TrimSuffix(path.Base(r.Name), path.Ext(r.Name))) + ".html"
			}
		}
	}
	return s
}

// String says what the site has.
func (s *Site) String() string {
	return plural.Of(len(s.All), "engine") + " in " + plural.Of(len(s.reports), "report")
}

// File is a file of a site. Its path has slashes.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// Files returns the pages and badges, the index last. detail writes the page of a report, with the earlier ones to
// compare it with.
func (s *Site) Files(detail func(to io.Writer, r *Report, earlier []*Report) error) (files []File) {
	pages := report.Documents(pageHTML)
	page := func(path, name, title string, e *Engine) {
		about := map[string]any{"Title": title, "Site": s, "Engine": e}
		files = append(files, File{path, func(to io.Writer) error { return pages.ExecuteTemplate(to, name, about) }})
	}
	badge := func(name, label string, sum result.Summary) {
		files = append(files, File{"badges/" + name + ".json", reportfile.Text(report.Endpoint(label, sum))})
	}
	for _, r := range s.reports {
		if r.page != "" {
			files = append(files, File{r.page, func(to io.Writer) error { return detail(to, r, s.before(r)) }})
		}
	}
	var all slugs
	for _, e := range s.All {
		page(e.Page, "engine", e.Name+" · "+siteTitle, e)
		name := all.of(e.Name)
		var sum result.Summary
		var each slugs
		for _, t := range e.Suites {
			g := t.Newest()
			badge(name+"/"+each.of(t.Suites), e.Name+": "+t.Suites, g.Summary)
			if t.Suites != deviations {
				sum.Passed, sum.Failed, sum.Flaky, sum.Broken = sum.Passed+g.Passed, sum.Failed+g.Failed, sum.Flaky+
					g.Flaky, sum.Broken+g.Broken
				sum.Breaks, sum.Problems = append(sum.Breaks, g.Breaks...), append(sum.Problems, g.Problems...)
			}
		}
		badge(name, e.Name, sum)
	}
	page("index.html", "index", siteTitle, nil)
	return files
}

// before returns the earlier reports with an engine and suites that a report has.
func (s *Site) before(r *Report) (earlier []*Report) {
	for _, e := range s.All {
		for _, t := range e.Suites {
			i := slices.IndexFunc(t.Runs, func(g *Group) bool { return g.report == r })
			for _, g := range t.Runs[:max(0, i)] { // the oldest is first
				if !slices.Contains(earlier, g.report) {
					earlier = append(earlier, g.report)
				}
			}
		}
	}
	return earlier
}

// Faults says what is wrong with reports that have no results.
func (s *Site) Faults() (all []string) {
	for _, r := range s.reports {
		for _, f := range r.Faults {
			all = append(all, path.Base(r.Name)+": "+f)
		}
	}
	return all
}

// Newest says how many reports there are.
func (s *Site) Newest() string {
	if len(s.reports) == 0 {
		return ""
	}
	return plural.Of(len(s.reports), "report") + ", the newest of " + when(s.reports[0].Began)
}

// Groups returns the names of all groups of suites.
func (s *Site) Groups() []string {
	var all []string
	for _, e := range s.All {
		for _, t := range e.Suites {
			all = append(all, t.Suites)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Cells returns the results of an engine in each of Groups, or nil for a group without results.
func (s *Site) Cells(e *Engine) (cells []*Timeline) {
	for _, name := range s.Groups() {
		cells = append(cells, e.of(name))
	}
	return cells
}

// Red is the number of tests that failed, broke or were flaky.
func (g *Group) Red() int { return g.Failed + g.Broken + g.Flaky }

// Problem says what is wrong with the run. It is "" if tests did not run, because the page counts these.
func (g *Group) Problem() string {
	if n := len(report.Faults(g.Summary)); n > 0 && g.NotRun == 0 {
		return plural.Of(n, "problem")
	}
	return ""
}

// Empty reports whether there is nothing to show.
func (g *Group) Empty() bool {
	return g.Passed+g.Red()+g.KnownFailing+g.Lacking()+g.NotRun == 0 && g.Problem() == ""
}

// Faults says what is wrong with the run.
func (g *Group) Faults() string { return strings.Join(report.Faults(g.Summary), "; ") }

// When is the time of the run, and Commit the usual form of its commit.
func (g *Group) When() string   { return when(g.report.Began) }
func (g *Group) Commit() string { return g.report.Commit[:min(len(g.report.Commit), 12)] }

// Causes are the causes of failures.
func (g *Group) Causes() []*report.Cause { return g.causes.Sorted() }

// Lacking is the number of tests that the engine does not support.
func (g *Group) Lacking() (n int) {
	for _, tests := range g.Lacks {
		n += tests
	}
	return n
}

func when(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}

// slugs are names of files made of other names. They differ on every file system.
type slugs map[string]bool

var unfit = regexp.MustCompile(`[^a-zA-Z0-9.+-]`)

// of returns a new name with only letters, digits, dots, plus and minus signs.
func (s *slugs) of(name string) string {
	if *s == nil {
		*s = slugs{}
	}
	clean := strings.Trim(unfit.ReplaceAllString(name, "-"), ".-")
	clean = strings.TrimRight(clean[:min(len(clean), 80)], ".-")
	if clean == "" {
		clean = "unnamed"
	}
	unique := clean
	for n := 2; (*s)[strings.ToLower(unique)]; n++ {
		unique = fmt.Sprintf("%s-%d", clean, n)
	}
	(*s)[strings.ToLower(unique)] = true
	return unique
}
