package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/report"
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
		{"html", "write a page for a browser that needs nothing beside itself", func(earlier []*report.Earlier) report.Generator { return report.HTML(earlier...) }},
		{"badge", "write an SVG image with the counts", alone(report.Badge)},
	}
}

// peopleFlags say how the report on standard output looks.
type peopleFlags struct {
	flags                         *flags
	verbose, timings, annotations *bool
	slowest                       *int
	past                          bool // all is over when it is told: no progress is
}

func (f *flags) people() *peopleFlags { return f.peopleSaying("a line for every test") }

// peopleSaying gives -v a meaning of the command's own.
func (f *flags) peopleSaying(verbose string) *peopleFlags {
	return &peopleFlags{
		flags:       f,
		verbose:     f.toggle("v", verbose),
		timings:     f.toggle("timings", "tell times, and where the time went"),
		slowest:     f.number("slowest", "N", 0, 0, "tell the N slowest tests at the end (default 5 with --timings, otherwise 0)"),
		annotations: f.toggle("annotations", "tell GitHub Actions the places of failures (always where $"+envActions+" is true)"),
	}
}

// reportFlags are the files that reports go to.
type reportFlags struct {
	files   []*string // by reportKinds
	earlier *listFlag
}

func (f *flags) reports() reportFlags {
	var r reportFlags
	for _, k := range reportKinds() {
		r.files = append(r.files, f.file(k.flag, k.summary, ".yml", ".yaml"))
	}
	r.earlier = &listFlag{}
	f.add(r.earlier, "earlier", "FILE|DIR", "with --html: JSON reports of earlier runs, for trends; may be repeated")
	return r
}

// check refuses two reports in one file.
func (r reportFlags) check(command string) error {
	kinds := reportKinds()
	for i, name := range r.files {
		for j, other := range r.files[:i] {
			if *name != "" && sameFile(*other, *name) {
				return usage("%s: --%s and --%s write to the same file, %s", command, kinds[j].flag, kinds[i].flag, *name)
			}
		}
		if slices.ContainsFunc(*r.earlier, func(in string) bool { return sameFile(in, *name) }) {
			return usage("%s: --%s would be written over the earlier report %s", command, kinds[i].flag, *name)
		}
		if kinds[i].flag == "html" && *name == "" && len(*r.earlier) > 0 {
			return usage("%s: --earlier goes with --html, which is not there", command)
		}
	}
	return nil
}

// open gives the reports that are wanted. done closes their files. No report
// is written over an input, as the command calls it.
func (r reportFlags) open(command, input string, inputs []string) (all []*report.Reporter, done func() error, err error) {
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
	for i, k := range reportKinds() {
		name := *r.files[i]
		if name == "" {
			continue
		}
		if slices.ContainsFunc(inputs, func(in string) bool { return sameFile(in, name) }) {
			return nil, nil, errors.Join(usage("%s: the report would be written over the %s %s", command, input, name), done())
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

// readEarlier reads the reports of earlier runs: files, and those in folders
// whose names end in .json, less what this run writes itself. One that has no
// test tells nothing.
func (r reportFlags) readEarlier() (all []*report.Earlier, err error) {
	for _, name := range *r.earlier {
		files := []string{name}
		if about, err := os.Stat(name); err == nil && about.IsDir() {
			if files, err = filepath.Glob(filepath.Join(quoteGlob(name), "*.json")); err != nil {
				return nil, invalid(fmt.Errorf("--earlier: %w", err))
			}
		}
		for _, file := range files {
			if slices.ContainsFunc(r.files, func(own *string) bool { return sameFile(*own, file) }) {
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

// quoteGlob gives the pattern that matches a name alone.
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
