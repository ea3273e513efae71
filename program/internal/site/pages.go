package site

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
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

//go:embed site.css
var siteCSS string

const title = "utr results"

// Site is a set of static pages. They refer to each other by relative links and to nothing else.
type Site struct {
	All     []*Engine
	Pages   map[*Engine]string
	Known   map[string]string  // deviations by suite of specs/deviations
	reports []*Report          // newest first
	details map[*Report]string // pages of reports that are the newest of any engine and suites
}

// New arranges reports. They need not be in order. known says what suites of specs/deviations are about, by name.
func New(reports []*Report, known map[string]string) *Site {
	s := &Site{reports: sorted(reports), Pages: map[*Engine]string{}, details: map[*Report]string{}, Known: known}
	s.All = enginesOf(s.reports)
	var pages, details slugs
	for _, e := range s.All {
		s.Pages[e] = "engines/" + pages.of(e.Name) + ".html"
		for _, t := range e.Suites {
			if r := t.Newest().report; s.details[r] == "" {
				s.details[r] = "reports/" + details.of(strings.TrimSuffix(path.Base(r.Name), path.Ext(r.Name))) + ".html"
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
func (s *Site) Files(detail func(to io.Writer, r *Report, earlier []*Report) error) []File {
	templates := template.Must(template.New("").Funcs(template.FuncMap{"anchor": anchor}).Parse(pageHTML))
	page := func(name string, a about) func(io.Writer) error {
		return func(to io.Writer) error { return templates.ExecuteTemplate(to, name, a) }
	}
	badge := func(name, label string, sum result.Summary) File {
		return File{"badges/" + name + ".json", reportfile.Text(report.Endpoint(label, sum))}
	}
	var files []File
	for _, r := range s.reports {
		if name := s.details[r]; name != "" {
			files = append(files, File{name, func(to io.Writer) error { return detail(to, r, s.before(r)) }})
		}
	}
	var all slugs
	for _, e := range s.All {
		files = append(files, File{s.Pages[e], page("engine", s.about(e.Name+" · "+title, e))})
		name := all.of(e.Name)
		var sum result.Summary
		var each slugs
		for _, t := range e.Suites {
			g := t.Newest()
			files = append(files, badge(name+"/"+each.of(t.Suites), e.Name+": "+t.Suites, g.Summary))
			if t.Suites != deviations {
				sum.Passed, sum.Failed, sum.Flaky, sum.Broken = sum.Passed+g.Passed, sum.Failed+g.Failed, sum.Flaky+
					g.Flaky, sum.Broken+g.Broken
				sum.Breaks, sum.Problems = append(sum.Breaks, g.Breaks...), append(sum.Problems, g.Problems...)
			}
		}
		files = append(files, badge(name, e.Name, sum))
	}
	return append(files, File{"index.html", page("index", s.about(title, nil))})
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

// about is what every page has, and what it is about.
type about struct {
	Title  string
	Style  template.CSS
	Faults []string
	*Site
	*Engine
}

func (s *Site) about(title string, e *Engine) about {
	a := about{Title: title, Style: template.CSS(report.Style() + siteCSS), Site: s, Engine: e}
	if e == nil {
		for _, r := range s.reports {
			for _, f := range r.Faults {
				a.Faults = append(a.Faults, path.Base(r.Name)+": "+f)
			}
		}
		return a
	}
	for _, t := range e.Suites {
		for _, f := range report.Faults(t.Newest().Summary) {
			if !slices.Contains(a.Faults, f) {
				a.Faults = append(a.Faults, f)
			}
		}
	}
	return a
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

// Cells returns the newest results of an engine, one for each of Groups. It is nil where there are none.
func (s *Site) Cells(e *Engine) (cells []*cell) {
	for _, name := range s.Groups() {
		var one *cell
		if i := slices.IndexFunc(e.Suites, func(t *Timeline) bool { return t.Suites == name }); i >= 0 {
			one = &cell{e.Suites[i].Newest(), s.Pages[e] + "#" + anchor(i)}
		}
		cells = append(cells, one)
	}
	return cells
}

// Detail returns the newest results of suites, with a link to their tests on the page of the report.
func (s *Site) Detail(t *Timeline) *cell {
	g := t.Newest()
	return &cell{g, "../" + s.details[g.report] + "#" + url.Values{"q": {g.filter}}.Encode()}
}

// cell has results of an engine in a group of suites.
type cell struct {
	*Group
	Link string
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
func (g *Group) Causes() []report.Cause { return g.causes.List() }

// mostRuns is how many runs the history of suites shows.
const mostRuns = 30

// History returns the last runs, the newest first.
func (t *Timeline) History() []*Group {
	runs := slices.Clone(t.Runs[max(0, len(t.Runs)-mostRuns):])
	slices.Reverse(runs)
	return runs
}

// Red reports whether a test of any suites is red.
func (e *Engine) Red() bool {
	return slices.ContainsFunc(e.Suites, func(t *Timeline) bool { return len(t.Newest().Causes()) > 0 })
}

// Differing and Lacking count the tests of the newest runs by what the driver does differently, and by what it does
// not support.
func (e *Engine) Differing() []Count {
	return counts(e.compared(), func(g *Group) map[string]int { return g.Differs })
}
func (e *Engine) Lacking() []Count {
	return counts(e.compared(), func(g *Group) map[string]int { return g.Lacks })
}

func when(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}

// anchor is the place of suites on the page of their engine.
func anchor(i int) string { return fmt.Sprint("suites-", i+1) }

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
