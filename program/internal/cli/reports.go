package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/report"
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
	r.flags.call.reportOnly = slices.Contains(r.files, reportToOutput)
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

// reportToOutput is the name of standard output for a report file. Text for people then goes to standard error.
const reportToOutput = "-"

type outputs struct {
	call  *call
	all   []*report.Reporter // the report on standard output first
	shown []*report.Reporter // those that are not files
	files []*reportOutput
	ended bool // they have the last note
}

// open opens the reports. None may overwrite an input. input is the word for an input in the error. If one cannot be
// written, the others say so.
func (r *reportFlags) open(c *call, input string, inputs []string) (*outputs, error) {
	earlier, err := r.readEarlier()
	if err != nil {
		return nil, err
	}
	o := &outputs{call: c, all: []*report.Reporter{report.New("standard output", c.textReport(r, earlier), c.out())}}
	o.shown = o.all[:1:1]
	for _, name := range r.files {
		if slices.ContainsFunc(inputs, func(in string) bool { return name != "" && sameFile(in, name) }) {
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
		f, err := openReport(name)
		if err == nil {
			err = f.replace(report.Unfinished(k.generate(), result.RunStarted{Time: time.Now()}))
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
	o.tell(o.all, n)
	if _, last := n.(result.RunFinished); last {
		o.ended = true
	}
}

func (o *outputs) tell(reports []*report.Reporter, n result.Note) {
	if start, first := n.(result.RunStarted); first {
		start.Commit = cmp.Or(start.Commit, o.call.env(envCommit), o.call.env(envGitLabCommit))
		n = start
	}
	n = o.call.secrets.note(n)
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
	o.tell(reports, started)
	for _, v := range tests {
		s.Add(v)
		o.tell(reports, result.TestFinished{Verdict: v})
	}
	o.tell(reports, result.RunFinished{Summary: s})
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
	o.call.note(closing.Error())
	return err
}

func (o *outputs) closeFiles() error {
	return errors.Join(mapSlice(o.files, (*reportOutput).Close)...)
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
	for _, name := range r.earlier {
		for _, file := range reportsIn(name) {
			if slices.ContainsFunc(r.files, func(own string) bool { return sameFile(own, file) }) {
				continue
			}
			e, err := fromWritten(file, report.ReadEarlier)
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

// reportsIn returns a file itself, or *.json in a folder.
func reportsIn(name string) []string {
	if about, err := os.Stat(name); err != nil || !about.IsDir() {
		return []string{name}
	}
	inside, _ := fs.Glob(os.DirFS(name), "*.json") // fails only for a malformed pattern
	return mapSlice(inside, func(file string) string { return filepath.Join(name, file) })
}

func filesOf(suites []*specs.Suite) []string {
	return mapSlice(suites, func(s *specs.Suite) string { return s.File })
}

// textReport returns the report on standard output, with color and a status line on a terminal.
func (c *call) textReport(p *reportFlags, earlier []*report.EarlierRun) report.Generator {
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
func (c *call) columns() int {
	columns, terminal := c.program.Terminal()
	if !terminal || c.env(envTerminal) == "dumb" {
		return 0
	}
	return columns
}

// reportOutput is a report file that gets its name when it is complete. Devices and pipes are written directly.
type reportOutput struct {
	file    *os.File
	name    string // from the command line
	target  string // its final name; "" if it is written directly
	mode    fs.FileMode
	state   string // of the file with its final name until then
	written bool
	err     error // of the first failed write
}

// partial is the suffix of a report that is being written. After a killed run it shows how far the run got.
const partial = ".partial"

func openReport(name string) (_ *reportOutput, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write a report: %w", err)
		}
	}()
	target, mode := name, fs.FileMode(0o666)
	switch about, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !about.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &reportOutput{file: f, name: name}, err
	default:
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		mode = about.Mode().Perm()
		f, err := os.OpenFile(target, os.O_WRONLY, 0) // do not replace a read-only file
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(target+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Create(name) // the file is writable, its folder is not
		target = ""
	}
	return &reportOutput{file: f, name: name, target: target, mode: mode, state: "the earlier report is unchanged"}, err
}

// replace replaces an earlier report, so that nobody takes it for that of this run, however the run ends.
func (f *reportOutput) replace(text []byte) (err error) {
	if f.target == "" {
		return nil
	}
	_, failed := f.file.Write(text)
	if err = cmp.Or(f.file.Close(), failed); err == nil {
		err = os.Rename(f.target+partial, f.target)
	}
	if err == nil {
		f.state = "it says that the run has not finished"
		f.file, err = os.OpenFile(f.target+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, f.mode)
	}
	if err != nil {
		_ = os.Remove(f.target + partial)
		err = fmt.Errorf("cannot write a report: %w", err)
	}
	return err
}

// Write keeps the first error.
func (f *reportOutput) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.file.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// Close renames the report to its name. It removes an incomplete report, and that of a run that never began.
func (f *reportOutput) Close() error {
	err := cmp.Or(f.file.Close(), f.err)
	if f.target != "" && err == nil && f.written {
		err = os.Rename(f.target+partial, f.target)
	}
	if f.target != "" && (err != nil || !f.written) {
		_ = os.Remove(f.target + partial)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing the report to %s: %w", f.name, err)
	if _, missing := os.Stat(f.name); f.target != "" && missing == nil {
		err = fmt.Errorf("%w; %s", err, f.state)
	}
	return err
}

// writeFile writes a report file, unless the name is "".
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := openReport(name)
	if err != nil {
		return err
	}
	failed := write(f)
	return cmp.Or(f.Close(), failed)
}

// sameFile reports whether two names refer to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	one, noPath := filepath.Abs(a)
	other, noOther := filepath.Abs(b)
	if noPath == nil && noOther == nil && one == other {
		return true
	}
	file, missing := os.Stat(a)
	another, gone := os.Stat(b)
	return missing == nil && gone == nil && os.SameFile(file, another)
}

func writeText[T string | []byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, string(text))
		return err
	}
}

func readReport(name string) (*report.SavedRun, error) {
	p, err := fromFile(name, report.Read)
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

func fromFile[T any](name string, read func(name string, from io.Reader) (T, error)) (value T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return value, err
	}
	defer func() { _ = f.Close() }()
	return read(name, f)
}

// fromWritten reads a file with a function that also requires the time at which the file was written.
func fromWritten[T any](name string, read func(name string, from io.Reader, written time.Time) (T, error)) (T, error) {
	return fromFile(name, func(name string, from io.Reader) (value T, err error) {
		about, err := os.Stat(name)
		if err != nil {
			return value, err
		}
		return read(name, from, about.ModTime())
	})
}

const slowerBy = 100 * time.Millisecond

func diffCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare the reports of two runs",
		Long: `OLD and NEW are reports that utr run --json wrote. Tests are matched by file,
description, deployment and iteration. Prints the counts, and then new failures, failures of
another kind, fixed tests, changed skips, added or removed tests, and tests that did not run
because the newer run broke or was interrupted. Failures with the same cause are one entry,
as in utr run.

Slower tests are counted, and listed with --slower or -v. They passed in both runs, took more
than 100ms in both, at least twice as long and 100ms more in the newer one, and with
--earlier longer than the mean of the earlier runs by three standard deviations.

Exit codes: 0 no change for the worse, 1 new failures, removed tests, or tests that did
not run, 2 bad usage or not a report.`,
		Example: `# what changed last night
utr diff yesterday.json today.json
# after tests were removed on purpose
utr diff --allow-removed yesterday.json today.json`,
		Args: arguments(2, 2, "two reports, the older one first"),
	}, func(f *flags) action {
		var slower time.Duration
		f.duration(&slower, "slower", "list tests that are slower by at least this (default: count those slower by "+slowerBy.String()+")")
		asJSON, allowed, verbose := false, false, false
		var earlier []string
		f.texts(&earlier, "earlier", "FILE|DIR", "JSON reports of earlier runs, to know the noise of durations")
		f.toggle(&verbose, "verbose", "list every test")
		f.toggle(&allowed, "allow-removed", "do not fail because of removed tests")
		f.toggle(&asJSON, "json", "print a JSON line for each change")
		return func(_ context.Context, c *call) error {
			reports, err := readReports(c.paths)
			if err != nil {
				return err
			}
			noise, err := readNoise(earlier, c.paths)
			if err != nil {
				return err
			}
			d := report.Compare(reports[0], reports[1], cmp.Or(slower, slowerBy), noise)
			text := d.Text(report.DifferenceOptions{Verbose: verbose, Slower: slower > 0})
			if asJSON {
				text = d.JSON()
			}
			worse := len(d[report.NewFailure])+len(d[report.NotRun]) > 0 || len(d[report.Removed]) > 0 && !allowed
			return c.conclude(string(text), worse)
		}
	})
}

// readNoise reads the durations in reports of earlier runs, except the compared ones.
func readNoise(names, compared []string) (report.Noise, error) {
	noise := report.Noise{}
	for _, name := range names {
		for _, file := range reportsIn(name) {
			if slices.ContainsFunc(compared, func(own string) bool { return sameFile(own, file) }) {
				continue
			}
			_, err := fromFile(file, func(name string, from io.Reader) (any, error) { return nil, noise.Read(name, from) })
			if err != nil {
				return nil, invalid(fmt.Errorf("--earlier: %w", err))
			}
		}
	}
	return noise, nil
}

func mergeCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the reports of several runs",
		Long: `Each FILE is a report that utr run --json wrote, such as that of a shard. They
are reported as one run. Its problems are those of the reports, tests that are in two
reports, and shards that are missing or duplicated. It is broken if a report is cut off,
or its run broke or was interrupted.

Exit codes: as for utr run.`,
		Example: `# the shards of one run
utr merge --junit all.xml --markdown all.md shard-1.json shard-2.json`,
		Args: arguments(1, unlimited, "at least one report"),
	}, func(f *flags) action {
		reports := reportFlags{TextOptions: report.TextOptions{Past: true}}
		f.reports(&reports, "print a line for every test")
		return func(_ context.Context, c *call) (err error) {
			parts, err := readReports(c.paths)
			if err != nil {
				return err
			}
			out, err := reports.open(c, "report", c.paths)
			if err != nil {
				return err
			}
			defer func() { err = out.close(err) }()
			code := ExitOK
			for _, n := range report.Merge(parts) {
				out.notify(n)
				if end, ok := n.(result.RunFinished); ok {
					code = end.Summary.ExitCode()
				}
			}
			return cmp.Or(out.err(), exit(code))
		}
	})
}
