package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/specs"
)

// reportKind is a report that goes to a file.
type reportKind struct {
	flag, summary string
	generate      func() report.Generator
}

// reportKinds is the table of reports: each is a flag of every command that
// writes them.
func reportKinds() []reportKind {
	return []reportKind{
		{"json", "write a record for each test as JSON lines", report.JSON},
		{"junit", "write a JUnit XML report", report.JUnit},
		{"tap", "write a report in the Test Anything Protocol", report.TAP},
		{"markdown", "write a summary in Markdown, for the page of a CI job", report.Markdown},
		{"html", "write a page for a browser that needs nothing beside itself", report.HTML},
		{"badge", "write an SVG image with the counts", report.Badge},
	}
}

// peopleFlags say how the report on standard output looks.
type peopleFlags struct {
	flags                         *flags
	verbose, timings, annotations *bool
}

func (f *flags) people() *peopleFlags {
	return &peopleFlags{
		flags:       f,
		verbose:     f.toggle("v", "a line for every test"),
		timings:     f.toggle("timings", "tell times, and where the time went"),
		annotations: f.toggle("annotations", "tell GitHub Actions the places of failures (always where $"+envActions+" is true)"),
	}
}

// reportFlags are the files that reports go to.
type reportFlags []*string

func (f *flags) reports() reportFlags {
	var r reportFlags
	for _, k := range reportKinds() {
		r = append(r, f.file(k.flag, k.summary, ".yml", ".yaml"))
	}
	return r
}

// check refuses two reports in one file.
func (r reportFlags) check(command string) error {
	kinds := reportKinds()
	for i, name := range r {
		for j, other := range r[:i] {
			if *name != "" && sameFile(*other, *name) {
				return usage("%s: --%s and --%s write to the same file, %s", command, kinds[j].flag, kinds[i].flag, *name)
			}
		}
	}
	return nil
}

// open gives the reports that are wanted. done closes their files. No report
// is written over an input, as the command calls it.
func (r reportFlags) open(command, input string, inputs []string) (all []*report.Reporter, done func() error, err error) {
	var files []*os.File
	done = func() (err error) {
		for _, f := range files {
			if closing := f.Close(); closing != nil && err == nil {
				err = fmt.Errorf("writing the report to %s: %w", f.Name(), closing)
			}
		}
		return err
	}
	for i, k := range reportKinds() {
		name := *r[i]
		if name == "" {
			continue
		}
		if slices.ContainsFunc(inputs, func(in string) bool { return sameFile(in, name) }) {
			return nil, nil, errors.Join(usage("%s: the report would be written over the %s %s", command, input, name), done())
		}
		f, err := create(name)
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		files = append(files, f)
		all = append(all, report.New(name, k.generate(), f))
	}
	return all, done, nil
}

// filesOf names the files of suites.
func filesOf(suites []*specs.Suite) []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.File)
	}
	return names
}
