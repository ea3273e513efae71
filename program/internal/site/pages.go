package site

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

//go:embed page.html
var pageHTML string

//go:embed site.css
var siteCSS string

// Title is the title of the index.
const Title = "utr results"

// Site is a set of static pages. They refer to each other by relative links and to nothing else.
type Site struct {
	reports []*Report // newest first
	engines []*Engine
	pages   map[*Engine]string
	details map[*Report]string // pages of reports that are the newest of any engine and suites
	known   map[string]string  // deviations by suite of specs/deviations
}

// New arranges reports, which need not be in order. known says what suites of specs/deviations are about, by name.
func New(reports []*Report, known map[string]string) *Site {
	s := &Site{reports: sorted(reports), engines: Engines(reports), pages: map[*Engine]string{},
		details: map[*Report]string{}, known: known}
	var pages, details slugs
	for _, e := range s.engines {
		s.pages[e] = "engines/" + pages.of(e.Name) + ".html"
		for _, t := range e.Suites {
			if r := t.newest().report; s.details[r] == "" {
				s.details[r] = "reports/" + details.of(strings.TrimSuffix(path.Base(r.Name), path.Ext(r.Name))) + ".html"
			}
		}
	}
	return s
}

// String says what the site has.
func (s *Site) String() string {
	return plural.Of(len(s.engines), "engine") + " in " + plural.Of(len(s.reports), "report")
}

// File is a file of a site. Its path has slashes.
type File struct {
	Path  string
	Write func(io.Writer) error
}

// Files returns the pages and badges, the index last. detail writes the page of a report, with the earlier ones to
// compare it with.
func (s *Site) Files(detail func(to io.Writer, r *Report, earlier []*Report) error) []File {
	templates := template.Must(template.New("").Parse(pageHTML))
	page := func(name string, about any) func(io.Writer) error {
		return func(to io.Writer) error { return templates.ExecuteTemplate(to, name, about) }
	}
	var files []File
	for _, r := range s.reports {
		if name := s.details[r]; name != "" {
			files = append(files, File{name, func(to io.Writer) error { return detail(to, r, s.before(r)) }})
		}
	}
	var all slugs
	for _, e := range s.engines {
		files = append(files, File{s.pages[e], page("engine", s.engine(e))})
		name := all.of(e.Name)
		var sum result.Summary
		var each slugs
		for _, t := range e.Suites {
			g := t.newest()
			files = append(files, badge("badges/"+name+"/"+each.of(t.Suites)+".json", e.Name+": "+t.Suites, g.Summary))
			if t.Suites != deviations {
				sum.Passed, sum.Failed, sum.Flaky, sum.Broken = sum.Passed+g.Passed, sum.Failed+g.Failed, sum.Flaky+
					g.Flaky, sum.Broken+g.Broken
				sum.Breaks, sum.Problems = append(sum.Breaks, g.Breaks...), append(sum.Problems, g.Problems...)
			}
		}
		files = append(files, badge("badges/"+name+".json", e.Name, sum))
	}
	return append(files, File{"index.html", page("index", s.index())})
}

func badge(name, label string, sum result.Summary) File {
	return File{name, func(to io.Writer) error {
		_, err := to.Write(report.Endpoint(label, sum))
		return err
	}}
}

// before returns the earlier reports with an engine and suites that a report has.
func (s *Site) before(r *Report) (earlier []*Report) {
	for _, e := range s.engines {
		for _, t := range e.Suites {
			has := slices.ContainsFunc(t.Runs, func(g *Group) bool { return g.report == r })
			for _, g := range t.Runs {
				if has && g.report.Began.Before(r.Began) && !slices.Contains(earlier, g.report) {
					earlier = append(earlier, g.report)
				}
			}
		}
	}
	return earlier
}

type indexView struct {
	frame
	About          string
	Suites, Faults []string
	Rows           []rowView
}

type rowView struct {
	Name, Version, Link string
	Cells               []*cellView
}

// frame is what every page has.
type frame struct {
	Title string
	Style template.CSS
}

func framed(title string) frame { return frame{title, template.CSS(report.Style() + siteCSS)} }

// cellView has the results of an engine in a group of suites.
type cellView struct {
	Link                                 string
	Passed, Failed, Known, Lacks, NotRun int
	Faults                               string
	Empty                                bool
}

func cell(g *Group, link string) *cellView {
	c := &cellView{Link: link, Passed: g.Passed, Failed: g.Failed + g.Broken + g.Flaky, Known: g.KnownFailing,
		Lacks: g.lacking(), NotRun: g.NotRun}
	if n := len(report.Faults(g.Summary)); n > 0 && c.NotRun == 0 {
		c.Faults = plural.Of(n, "problem")
	}
	c.Empty = c.Passed+c.Failed+c.Known+c.Lacks+c.NotRun == 0 && c.Faults == ""
	return c
}

func (s *Site) index() indexView {
	v := indexView{frame: framed(Title), Suites: names(s.engines, func(e *Engine) (all []string) {
		for _, t := range e.Suites {
			all = append(all, t.Suites)
		}
		return all
	})}
	for i, r := range s.reports {
		if i == 0 {
			v.About = plural.Of(len(s.reports), "report") + ", the newest of " + when(r.Began)
		}
		for _, f := range r.Faults {
			v.Faults = append(v.Faults, path.Base(r.Name)+": "+f)
		}
	}
	for _, e := range s.engines {
		row := rowView{Name: e.Name, Version: e.Version, Link: s.pages[e], Cells: make([]*cellView, len(v.Suites))}
		for i, t := range e.Suites {
			row.Cells[slices.Index(v.Suites, t.Suites)] = cell(t.newest(), s.pages[e]+"#"+anchor(i))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

type engineView struct {
	frame
	Name, Version  string
	Faults         []string
	Suites         []suitesView
	Causes         []causeView
	Differs, Lacks []Count
	Deviations     []deviationView
}

type suitesView struct {
	Name, Anchor, When string
	Newest             *cellView
	Chart              chartView
	Runs               []runView // newest first
}

type runView struct {
	*cellView
	When, Commit, Version, Problem string
}

type causeView struct {
	report.Cause
	Suites, Link string
}

type deviationView struct {
	Suite, Known string
	departure
}

// mostRuns is how many runs the history of suites shows.
const mostRuns = 30

func (s *Site) engine(e *Engine) engineView {
	v := engineView{frame: framed(e.Name + " · " + Title), Name: e.Name, Version: e.Version,
		Differs: counts(e.compared(), differs), Lacks: counts(e.compared(), lacks)}
	for i, t := range e.Suites {
		g := t.newest()
		link := "../" + s.details[g.report] + "#" + url.Values{"q": {g.filter}}.Encode()
		for _, f := range report.Faults(g.Summary) {
			if !slices.Contains(v.Faults, f) {
				v.Faults = append(v.Faults, f)
			}
		}
		for _, c := range g.causes.List() {
			v.Causes = append(v.Causes, causeView{c, t.Suites, link})
		}
		runs := t.Runs[max(0, len(t.Runs)-mostRuns):]
		one := suitesView{Name: t.Suites, Anchor: anchor(i), When: when(g.report.Began), Newest: cell(g, link),
			Chart: chart(runs)}
		for _, g := range slices.Backward(runs) {
			problem := strings.Join(report.Faults(g.Summary), "; ")
			one.Runs = append(one.Runs, runView{cell(g, ""), when(g.report.Began), short(g.report.Commit), g.Version, problem})
		}
		v.Suites = append(v.Suites, one)
	}
	departs := e.departs()
	for _, name := range slices.Sorted(maps.Keys(departs)) {
		v.Deviations = append(v.Deviations, deviationView{name, s.known[name], departs[name]})
	}
	return v
}

func when(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 MST")
}

// short returns the usual form of a commit.
func short(commit string) string { return commit[:min(len(commit), 12)] }

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
