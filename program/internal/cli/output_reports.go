package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

type reportKind struct {
	flag, summary string
	generate      func() report.Generator
}

// reportKinds is the table of report files, each with its flag. Some compare with earlier runs.
func reportKinds(earlier ...*report.EarlierRun) []reportKind {
	return []reportKind{
		{"json", "write a JSON line for each test; - writes a report to standard output", report.JSON},
		{"junit", "write a JUnit XML report", report.JUnit},
		{"tap", "write a report in the Test Anything Protocol", report.TAP},
		{"sarif", "write a SARIF log of the failures, for code scanning", report.SARIF},
		{"markdown", "write a Markdown summary, for the page of a CI job",
			func() report.Generator { return report.Markdown(earlier...) }},
		{"html", "write a self-contained HTML page", func() report.Generator { return report.HTML(earlier...) }},
		{"badge", "write an SVG badge with the counts", report.Badge},
	}
}

// reportFlags are the format of the report on standard output and the report files.
type reportFlags struct {
	report.TextOptions
	flags       *flags
	annotations bool
	allCells    bool     // list every cell, however many there are
	files       []string // in the order of reportKinds
	earlier     []string
}

// reports declares the flags. Commands describe -v themselves.
func (f *flags) reports(r *reportFlags, verbose string) {
	kinds := reportKinds()
	r.flags, r.files = f, make([]string, len(kinds))
	f.group = "Output"
	f.toggle(&r.Verbose, "verbose", verbose)
	f.toggle(&r.Quiet, "quiet", "print only the list of failures, problems and the counts")
	f.toggle(&r.Timings, "timings", "print durations, and where the time went in total and by file")
	f.number(&r.Slowest, "slowest", "N", 0, "print the N slowest tests at the end (default 5 with --timings, else 0)")
	f.toggle(&r.annotations, "annotations", "annotate failures for GitHub Actions (default if $"+envActions+" is true)")
	f.group = "Reports"
	for i, k := range kinds {
		set(f, &r.files[i], k.flag, "FILE", k.summary, func(s string) (string, error) {
			if s == reportToOutput {
				return s, nil
			}
			return fileName(s, ".yml", ".yaml")
		})
	}
	f.texts(&r.earlier, "earlier", "FILE|DIR",
		"JSON reports of earlier runs: failures say since when they fail, and --html shows trends")
	f.checks = append(f.checks, r.check)
}

// check rejects flags that name the same file twice.
func (r *reportFlags) check() error {
	r.flags.inv.reportOnly = slices.Contains(r.files, reportToOutput)
	kinds := reportKinds()
	for i, name := range r.files {
		for j, other := range r.files[:i] {
			if name != "" && reportfile.Same(other, name) {
				return usage("--%s and --%s write to the same file, %s", kinds[j].flag, kinds[i].flag, name)
			}
		}
		if reportfile.Among(name, r.earlier) {
			return usage("--%s would overwrite the earlier report %s", kinds[i].flag, name)
		}
	}
	return nil
}

// reportToOutput is the name of standard output for a report file. Text for people then goes to standard error.
const reportToOutput = "-"

type outputs struct {
	inv   *invocation
	all   []*report.Reporter // the report on standard output first
	shown []*report.Reporter // those that are not files
	files []*reportfile.File
	ended bool // they have the last note
}

// open opens the reports. None may overwrite an input. input is the word for an input in the error. If one cannot be
// written, the others say so.
func (r *reportFlags) open(c *invocation, input string, inputs []string) (*outputs, error) {
	earlier, err := r.readEarlier()
	if err != nil {
		return nil, err
	}
	o := &outputs{inv: c, all: []*report.Reporter{report.New("standard output", c.textReport(r, earlier), c.out())}}
	o.shown = o.all[:1:1]
	for _, name := range r.files {
		if name != "" && reportfile.Among(name, inputs) {
			return nil, usage("the report would overwrite the %s %s", input, name)
		}
	}
	var failures []error
	for i, k := range reportKinds(earlier...) {
		name := r.files[i]
		if name == "" {
			continue
		}
		if name == reportToOutput {
			o.all = append(o.all, report.New("standard output", k.generate(), &whole{&c.screen, c.program.Stdout}))
			o.shown = append(o.shown, o.all[len(o.all)-1])
			continue
		}
		f, err := reportfile.Open(name)
		if err == nil {
			err = f.Replace(report.Unfinished(k.generate(), result.RunStarted{Time: time.Now()}))
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		o.files = append(o.files, f)
		o.all = append(o.all, report.New(name, k.generate(), f))
	}
	if len(failures) > 0 {
		return nil, o.close(errors.Join(failures...))
	}
	return o, nil
}

// err returns the first error of a report that is not a file.
func (o *outputs) err() error {
	return errors.Join(mapSlice(o.shown, (*report.Reporter).Err)...)
}

func (o *outputs) notify(n result.Note) {
	o.send(o.all, n)
	if _, last := n.(result.RunFinished); last {
		o.ended = true
	}
}

func (o *outputs) send(reports []*report.Reporter, n result.Note) {
	if start, first := n.(result.RunStarted); first {
		start.Commit = cmp.Or(start.Commit, o.inv.env(envCommit), o.inv.env(envGitLabCommit))
		n = start
	}
	n = o.inv.secrets.note(n)
	for _, r := range reports {
		r.Note(n)
	}
}

// broke writes the reports of a run that broke before its first test. If it was not interrupted, its error is enough
// for standard output.
func (o *outputs) broke(s result.Summary, started result.RunStarted, tests []*result.Verdict) {
	reports := o.all
	if !s.Interrupted {
		reports = o.all[1:]
	}
	started.Time, started.Total, started.Skipped = time.Now(), len(tests), len(tests)
	o.send(reports, started)
	for _, v := range tests {
		s.Add(v)
		o.send(reports, result.TestFinished{Verdict: v})
	}
	o.send(reports, result.RunFinished{Summary: s})
}

// close closes the files and combines their errors with err. An incomplete report outranks failed tests. Reports
// without a last note get one.
func (o *outputs) close(err error) error {
	if !o.ended {
		o.broke(result.Summary{Breaks: []result.Break{{Reason: reason(err)}}}, result.RunStarted{}, nil)
	}
	closing := o.closeFiles()
	switch {
	case closing == nil:
		return err
	case codeOf(err) < ExitBroken:
		return closing
	}
	o.inv.note(closing.Error())
	return err
}

func (o *outputs) closeFiles() error {
	return errors.Join(mapSlice(o.files, (*reportfile.File).Close)...)
}

// reason returns why a run broke.
func reason(err error) string {
	if err == nil {
		return "it ended before its first test" // a panic
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// readEarlier reads the reports of earlier runs, and *.json in folders, except what this run writes and empty
// reports.
func (r *reportFlags) readEarlier() (all []*report.EarlierRun, err error) {
	err = eachEarlier(r.earlier, r.files, func(file string) error {
		e, err := reportfile.ReadWritten(file, report.ReadEarlier)
		if err == nil && e.Tests() > 0 {
			all = append(all, e)
		}
		return err
	})
	return all, err
}

// eachEarlier calls a function with each file that --earlier names, except those that the command also uses.
func eachEarlier(names, used []string, read func(file string) error) error {
	for _, name := range names {
		for _, file := range reportfile.In(name) {
			if reportfile.Among(file, used) {
				continue
			}
			if err := read(file); err != nil {
				return invalid(fmt.Errorf("--earlier: %w", err))
			}
		}
	}
	return nil
}

func filesOf(suites []*specs.Suite) []string {
	return mapSlice(suites, func(s *specs.Suite) string { return s.File })
}

// textReport returns the report on standard output, with color and a status line on a terminal.
func (c *invocation) textReport(p *reportFlags, earlier []*report.EarlierRun) report.Generator {
	o := p.TextOptions
	terminal := c.columns() > 0
	o.Color = terminal && c.env(envNoColor) == ""
	text := report.Cells(report.Text(o, earlier...), o.Verbose || p.allCells)
	if p.annotations || c.env(envActions) == "true" && !p.flags.Changed("annotations") {
		text = report.Annotated(text, earlier...)
	}
	if p.Past || p.Quiet {
		return text
	}
	if !terminal {
		return report.Files(text, o.Timings)
	}
	c.statusLine = true
	return report.Progress(text, c.columns, time.Now)
}

// columns is the width of the terminal, 0 if standard output is not one or does not support escape sequences.
func (c *invocation) columns() int {
	columns, terminal := c.program.Terminal()
	if !terminal || c.env(envTerminal) == "dumb" {
		return 0
	}
	return columns
}

func readReport(name string) (*report.SavedRun, error) {
	p, err := reportfile.Read(name, report.Read)
	return p, invalid(err)
}

func readReports(names []string) (all []*report.SavedRun, err error) {
	for _, name := range names {
		p, err := readReport(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
