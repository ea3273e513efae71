package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// reportKind is a report that goes to a file.
type reportKind struct {
	flag, summary string
	generate      func(earlier []*report.Earlier) report.Generator
}

// reportKinds is the table of reports: each is a flag of every command that
// writes them.
func reportKinds() []reportKind {
	alone := func(g func() report.Generator) func([]*report.Earlier) report.Generator {
		return func([]*report.Earlier) report.Generator { return g() }
	}
	return []reportKind{
		{"json", "write a record for each test as JSON lines", alone(report.JSON)},
		{"junit", "write a JUnit XML report", alone(report.JUnit)},
		{"tap", "write a report in the Test Anything Protocol", alone(report.TAP)},
		{"markdown", "write a summary in Markdown, for the page of a CI job", alone(report.Markdown)},
		{"html", "write a self-contained HTML page", func(earlier []*report.Earlier) report.Generator { return report.HTML(earlier...) }},
		{"badge", "write an SVG image with the counts", alone(report.Badge)},
	}
}

// reportFlags say how the report on standard output looks, and which files reports go to.
type reportFlags struct {
	report.TextOptions
	flags       *flags
	annotations bool
	past        bool     // the run is over: no progress is shown
	files       []string // by reportKinds
	earlier     []string
}

// reports declares the flags. -v has a meaning that is specific to a command.
func (f *flags) reports(r *reportFlags, verbose string) {
	kinds := reportKinds()
	r.flags, r.files = f, make([]string, len(kinds))
	f.group = "Output"
	f.toggle(&r.Verbose, "verbose", verbose)
	f.toggle(&r.Timings, "timings", "print durations, and what took the time")
	f.number(&r.Slowest, "slowest", "N", 0, "print the N slowest tests at the end (default 5 with --timings, else 0)")
	f.toggle(&r.annotations, "annotations", "annotate the lines of failures for GitHub Actions (always if $"+envActions+" is true)")
	f.group = "Reports"
	for i, k := range kinds {
		f.file(&r.files[i], k.flag, k.summary, ".yml", ".yaml")
	}
	f.texts(&r.earlier, "earlier", "FILE|DIR", "with --html: JSON reports of earlier runs, for trends")
}

// check refuses two reports in one file.
func (r *reportFlags) check() error {
	kinds := reportKinds()
	for i, name := range r.files {
		for j, other := range r.files[:i] {
			if name != "" && sameFile(other, name) {
				return usage("--%s and --%s write to the same file, %s", kinds[j].flag, kinds[i].flag, name)
			}
		}
		if slices.ContainsFunc(r.earlier, func(in string) bool { return sameFile(in, name) }) {
			return usage("--%s would overwrite the earlier report %s", kinds[i].flag, name)
		}
	}
	return nil
}

// open opens the reports that were requested, that on standard output first. done
// closes their files. No report overwrites an input; input is what the command calls one.
func (r *reportFlags) open(c *call, input string, inputs []string) (all []*report.Reporter, done func() error, err error) {
	var files []*reportOutput
	done = func() error {
		var all []error
		for _, f := range files {
			all = append(all, f.Close())
		}
		return errors.Join(all...)
	}
	earlier, err := r.readEarlier()
	if err != nil {
		return nil, nil, err
	}
	all = append(all, report.New("standard output", c.text(r), c.out()))
	for i, k := range reportKinds() {
		name := r.files[i]
		if name == "" {
			continue
		}
		if slices.ContainsFunc(inputs, func(in string) bool { return sameFile(in, name) }) {
			return nil, nil, errors.Join(usage("the report would overwrite the %s %s", input, name), done())
		}
		f, err := openReport(name)
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		files = append(files, f)
		all = append(all, report.New(name, k.generate(earlier), f))
	}
	return all, done, nil
}

// notify gives a note to reporters, without secrets.
func (c *call) notify(reporters []*report.Reporter, n result.Note) {
	n = c.secrets.note(n)
	for _, r := range reporters {
		r.Note(n)
	}
}

// readEarlier reads the reports of earlier runs: files, and those in folders
// whose names end in .json, less what this run writes itself. One without
// tests is ignored.
func (r *reportFlags) readEarlier() (all []*report.Earlier, err error) {
	for _, name := range r.earlier {
		files := []string{name}
		if about, err := os.Stat(name); err == nil && about.IsDir() {
			if files, err = filepath.Glob(filepath.Join(quoteGlob(name), "*.json")); err != nil {
				return nil, invalid(fmt.Errorf("--earlier: %w", err))
			}
		}
		for _, file := range files {
			if slices.ContainsFunc(r.files, func(own string) bool { return sameFile(own, file) }) {
				continue
			}
			e, err := readEarlier(file)
			if err != nil {
				return nil, invalid(fmt.Errorf("--earlier: %w", err))
			}
			if e.Tests() > 0 {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// quoteGlob returns the pattern that matches only a name.
func quoteGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

func readEarlier(name string) (*report.Earlier, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	about, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return report.ReadEarlier(name, f, about.ModTime())
}

// filesOf names the files of suites.
func filesOf(suites []*specs.Suite) []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.File)
	}
	return names
}
