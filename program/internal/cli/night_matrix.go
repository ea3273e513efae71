package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/night"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

const cellTimeout = time.Hour

// matrixRun has the flags and the state of utr matrix.
type matrixRun struct {
	flags                   *flags
	set                     map[string]string
	only                    []*regexp.Regexp
	dryRun, verbose, resume bool
	jobs                    int
	timeout                 time.Duration
	shard                   runner.Shard
	results, durations      string
	reports                 reportFlags

	inv     *invocation
	folder  *night.Results
	cells   []*cellRun
	ended   int // cells that have ended
	started time.Time
}

func matrixCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "matrix FILE",
		Short: "Run suites on many clusters and engines",
		Long: `FILE is a YAML file that lists clusters, engines, suites and options. Each
combination is a cell, which runs like utr run, in its own process. One report covers
all cells. docs/your-night.md describes the file.

The results of cells are kept in a folder. After an interruption, the same command
with --resume continues: it does not repeat finished cells, unless their definition,
their suites, utr or the version of their servers has changed. A cell that broke or
was interrupted runs again. Reports show which cells ran earlier, and when.

Exit code: the highest of all cells, as for utr run; also 3 if the process of a cell
died or timed out, and 1 if no test ran in any cell.`,
		Example: `# list the cells, with the command line of each
utr matrix nightly.yml --dry-run -v
# run all of them, two at a time
utr matrix nightly.yml --jobs 2 --html night.html --junit night.xml
# run some of them
utr matrix nightly.yml --only '^sharded' --set VERSION=8.0
# a quarter of the tests of each cell; utr merge combines the reports
utr matrix nightly.yml --shard 2/4 --durations last-night.json --json part-2.json`,
		Args: arguments(1, 1, "a file"),
	}, func(f *flags) action {
		m := &matrixRun{inv: c, flags: f, set: map[string]string{}, jobs: 1}
		f.group = "Cells"
		f.toggle(&m.dryRun, "dry-run", "list the cells, with -v the command line of each, and exit")
		f.patterns(&m.only, "only", "run only cells whose names match")
		set(f, &m.set, "set", "NAME=VALUE", "set a variable of FILE, overriding the environment and FILE; may be repeated",
			func(s string) (map[string]string, error) {
				name, value, err := nameAndValue(s)
				m.set[name] = value
				return m.set, err
			}).DefValue = ""
		f.number(&m.jobs, "jobs", "N", 1, "cells to run concurrently, each on its own cluster")
		f.duration(&m.timeout, "cell-timeout", "time limit for a cell for which FILE sets none (default 1h)")
		f.text(&m.results, "results", "DIR", "folder for the results of cells (default the name of FILE with .results)")
		f.toggle(&m.resume, "resume", "continue after an interruption: do not repeat finished cells")
		f.enginesFlag()
		f.shard(&m.shard, &m.durations,
			"run one of N parts of the tests of each cell, such as 2/5; utr merge combines the reports")
		f.reports(&m.reports, "print the command line of each cell")
		return m.act
	})
}

func (m *matrixRun) act(ctx context.Context, c *invocation) error {
	m.verbose, m.reports.Past = m.reports.Verbose, true
	m.reports.Verbose, m.reports.allCells = false, m.verbose
	if m.durations != "" {
		if _, err := readReport(m.durations); err != nil {
			return err
		}
	}
	file, cells, err := m.read(c)
	if err != nil {
		return invalid(err)
	}
	m.cells = matching(cells, m.only, func(c *cellRun) string { return c.Name })
	if len(m.cells) == 0 {
		return usage("--only matches no cell: %s --dry-run lists them", report.Quote([]string{"utr", "matrix", c.paths[0]}))
	}
	if m.dryRun {
		return c.print(m.plan(file))
	}
	return m.run(ctx, c)
}

// read reads the file and registers its secrets. It checks the settings of all cells as their processes will.
func (m *matrixRun) read(c *invocation) (file *matrix.File, cells []*cellRun, err error) {
	data, err := os.ReadFile(c.paths[0])
	if err != nil {
		return nil, nil, err
	}
	problems := []error{nil}
	file, problems[0] = matrix.Parse(c.paths[0], data, m.set, c.env,
		matrix.Known{Versions: c.versions, Check: c.checkCellValue})
	if file == nil {
		return nil, nil, problems[0]
	}
	for _, cell := range file.Cells {
		c.secrets.Read(cell.Args()...)
		one := &cellRun{Cell: cell, end: result.CellFinished{Cell: cell.Name, Broken: "interrupted before it began"}}
		if err := one.check(c); err != nil {
			problems = append(problems, fmt.Errorf("%s: the cell %s: %s", cell.Position, cell.Name, err.Error()))
		}
		cells = append(cells, one)
	}
	return file, cells, errors.Join(problems...)
}

// forCell returns the invocation of a cell. It does not choose the deployment by the environment.
func (c *invocation) forCell(paths []string) *invocation {
	p := *c.program
	p.Getenv = func(name string) string {
		if slices.Contains(targetVariables, name) {
			return ""
		}
		return c.env(name)
	}
	return &invocation{program: &p, secrets: c.secrets, errors: c.errors, paths: paths, engines: c.engines}
}

// checkCellValue checks a value of a flag for cells, or with "" for the flag a path of suites: it may be missing,
// unless it is misspelled.
func (c *invocation) checkCellValue(flag, value string) (err error) {
	c.secrets.Read("--"+flag, value)
	cell := c.forCell(nil)
	cell.errors = io.Discard // the check of the cell repeats warnings
	switch flag {
	case "":
		if hint := specs.Likely(value, c.official()); hint != "" {
			err = fmt.Errorf("no such file or folder%s", hint)
		}
	case "engine":
		_, err = cell.engineNamed(value)
		return err
	case "known-failing":
		_, err = namedEngine{}.knownFailing([]string{value})
		return err
	case "uri", "single-uri":
		return cell.checkURI("--"+flag, value)
	default:
		f := newFlags(cell, &cobra.Command{Use: "run"})
		declareRun(f)
		err = f.Lookup(flag).Value.Set(value)
	}
	if err != nil {
		err = fmt.Errorf("%s %q: %w", cmp.Or(flag, "suites"), value, err)
	}
	return err
}

func (r *cellRun) check(c *invocation) (err error) {
	r.inv = c.forCell(r.Paths)
	if r.flags, err = r.inv.parseRun(r.Flags); err != nil {
		return err
	}
	r.flags.config.Cell = r.Name
	r.plan = r.flags.plan(r.inv, nil)
	if err := r.plan.complete(); err != nil {
		return err
	}
	if slices.Contains(r.Paths, specs.Stdin) {
		return errors.New("cells have no standard input")
	}
	e, err := r.flags.named.open(r.flags.engine)
	if err != nil {
		return err
	}
	return e.Close()
}

func (m *matrixRun) plan(file *matrix.File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s:\n", plural.Of(len(m.cells), "cell"), m.inv.paths[0])
	for _, cell := range m.cells {
		fmt.Fprintf(&b, "  %s\n", cell.Name)
		if m.verbose {
			fmt.Fprintf(&b, "      %s\n", m.shown(cell))
		}
	}
	if len(file.Excluded) > 0 {
		fmt.Fprintf(&b, "%d excluded:\n", len(file.Excluded))
		for _, e := range file.Excluded {
			fmt.Fprintf(&b, "  %s: %s\n", e.Cell, e.Reason)
		}
	}
	return b.String()
}

// extra returns the flags that every cell gets in addition to its own.
func (m *matrixRun) extra() []string { return m.flags.args("engines", "shard", "durations") }

// shown returns the command line of a cell as a user would type it, without secrets.
func (m *matrixRun) shown(cell *cellRun) string {
	return report.Quote(m.inv.secrets.texts(slices.Concat([]string{"utr", "run"}, m.extra(), cell.Args())))
}

func (m *matrixRun) resultsPath(file string) string {
	base := filepath.Base(file)
	return cmp.Or(m.results, strings.TrimSuffix(base, filepath.Ext(base))+".results")
}

// ChildGrace is the time for an interrupted child to clean up: the running test, what it created, and all else.
const ChildGrace = runner.InterruptedEnd + lock.ReleaseLimit + deployment.CloseLimit + 15*time.Second

// targetVariables choose the deployment of this process, but not of its children.
var targetVariables = []string{envURI, envSingleURI}

func childEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(targetVariables, name)
	})
}

// buildID returns the version and a digest of this binary: builds of a development version may differ.
func buildID() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return reportfile.Read(self, func(_ string, program io.Reader) (string, error) {
		sum := sha256.New()
		_, err := io.Copy(sum, program)
		return fmt.Sprintf("%s %x", Version(), sum.Sum(nil)), err
	})
}
