package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/secret"
	"github.com/unified-test-runner/utr/matrix"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// cellTimeout is the default limit for a cell.
const cellTimeout = time.Hour

type matrixFlags struct {
	flags     *flags
	set       *[]variable
	only      *[]*regexp.Regexp
	dryRun    *bool
	verbose   *bool
	jobs      *int
	results   *string
	resume    *bool
	timeout   *time.Duration
	shard     *string
	durations *string
	people    *peopleFlags
	reports   reportFlags
}

func matrixCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "matrix FILE",
		GroupID: suitesGroup,
		Short:   "Run suites on many clusters and engines",
		Long: `FILE is a YAML file that lists clusters, engines, suites and options. Each
combination is a cell, and runs as utr run does, in a process of its own. One report
describes all of them. docs/nightly.md describes the file.

The results of cells are kept in a folder. After an interruption, the same command
with --resume continues: it does not repeat finished cells, unless their definition,
their suites, utr or the version of their servers has changed. A cell that broke or
was interrupted runs again. Reports say which cells are from earlier runs, and when
they ran.

Exit codes: the worst of all cells, as for utr run; 3 also for a cell whose process
died or timed out.`,
		Example: `# list the cells, with the command line of each
utr matrix nightly.yml --dry-run -v
# run all of them, two at a time
utr matrix nightly.yml --jobs 2 --html night.html --junit night.xml
# run some of them
utr matrix nightly.yml --only '^sharded' --set VERSION=8.0
# a quarter of each cell's tests: utr merge merges the quarters
utr matrix nightly.yml --shard 2/4 --durations last-night.json --json part-2.json`,
		Args: arguments(1, 1, "a file"),
	}, func(f *flags) action {
		m := &matrixFlags{flags: f}
		f.group = "Cells"
		m.dryRun = f.toggle("dry-run", "list the cells, with -v the command line of each, and stop")
		m.only = f.patterns("only", "run only cells whose names match")
		m.set = list(f, "set", "NAME=VALUE",
			"set a variable of FILE, overriding the environment and FILE", func(s string) (v variable, err error) {
				v.name, v.value, err = nameAndValue(s)
				return v, err
			})
		m.jobs = f.number("jobs", "N", 1, 1, "cells that run at once, each on a cluster of its own")
		m.timeout = f.duration("cell-timeout", "limit for a cell for which FILE sets none (default 1h)")
		m.results = f.text("results", "DIR", "", "folder for the results of cells (default the name of FILE with .results)")
		m.resume = f.toggle("resume", "continue after an interruption: do not repeat finished cells")
		m.shard = f.text("shard", "I/N", "", "run one of N parts of the tests of each cell, such as 2/5; utr merge merges the reports")
		m.durations = f.file("durations", "with --shard: JSON report used to balance shards; the same one for all")
		m.people = f.peopleSaying("print the command line of each cell")
		m.verbose, m.people.verbose, m.people.past = m.people.verbose, new(bool), true
		m.reports = f.reports()
		return m.act
	})
}

// variable is a variable of a matrix file.
type variable struct{ name, value string }

func (m *matrixFlags) act(ctx context.Context, c *call) error {
	if err := m.reports.check(); err != nil {
		return err
	}
	if err := m.part(); err != nil {
		return err
	}
	file, err := m.read(c)
	if err != nil {
		return err
	}
	if err := c.checkCells(file); err != nil {
		return err
	}
	cells := m.chosen(file.Cells)
	if len(cells) == 0 {
		return usage("--only matches no cell: %s --dry-run lists them", report.Quote([]string{"utr", "matrix", c.paths[0]}))
	}
	if *m.dryRun {
		return c.print(m.plan(c, file, cells))
	}
	return m.run(ctx, c, cells)
}

// part checks --shard and --durations, which every cell gets.
func (m *matrixFlags) part() error {
	if !m.flags.Changed("shard") {
		return nil
	}
	if _, err := runner.ParseShard(*m.shard); err != nil {
		return usage("--shard %q: %w", *m.shard, err)
	}
	if *m.durations != "" {
		_, err := readReport(*m.durations)
		return err
	}
	return nil
}

// read reads the file, and registers the secrets of its connection strings.
func (m *matrixFlags) read(c *call) (*matrix.File, error) {
	data, err := os.ReadFile(c.paths[0])
	if err != nil {
		return nil, invalid(err)
	}
	set := map[string]string{}
	for _, v := range *m.set {
		set[v.name] = v.value
	}
	file, err := matrix.Parse(c.paths[0], data, matrix.Options{Set: set, Getenv: c.env})
	if err != nil {
		return nil, invalid(err)
	}
	for _, cell := range file.Cells {
		c.secrets.Read(cellArgs(&cell)...)
	}
	return file, nil
}

// checkCells checks the command lines of all cells before any of them runs.
func (c *call) checkCells(file *matrix.File) error {
	var problems []string
	for i := range file.Cells {
		cell := &file.Cells[i]
		if err := c.checkCell(cell); err != nil {
			problems = append(problems, fmt.Sprintf("%s: the cell %s: %s", cell.Position, cell.Name, err))
		}
	}
	if len(problems) > 0 {
		return invalid(errors.New(strings.Join(problems, "\n")))
	}
	return nil
}

func (c *call) checkCell(cell *matrix.Cell) error {
	r, inside, o, err := c.cell(cell)
	if err != nil {
		return err
	}
	if slices.Contains(inside.paths, specs.Stdin) {
		return errors.New("cells do not have standard input")
	}
	e, err := o.engine(EngineOptions{Policy: *r.policy, Backoff: *r.backoff})
	if err != nil {
		return err
	}
	return e.Close()
}

// cell parses the command line of a cell as its process will.
func (c *call) cell(cell *matrix.Cell) (r *runFlags, inside *call, o order, err error) {
	p := *c.program
	p.Getenv = func(name string) string {
		if slices.Contains(notInherited(), name) {
			return ""
		}
		return c.env(name)
	}
	inside = &call{program: &p, secrets: c.secrets, errors: c.errors}
	f := newFlags(inside, &cobra.Command{Use: "run"})
	r = declareRun(f)
	if err = f.Parse(joinSeeds(append([]string{"--cell", cell.Name}, cellArgs(cell)...))); err == nil {
		err = f.conflicts()
	}
	if err != nil {
		return nil, nil, o, err
	}
	inside.paths = f.Args()
	o, err = r.order(inside)
	return r, inside, o, err
}

// servers opens the target of a cell, and returns the versions of its servers.
func (c *call) servers(ctx context.Context, cell *matrix.Cell) ([]string, error) {
	r, inside, o, err := c.cell(cell)
	if err != nil {
		return nil, err
	}
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	source, err := r.source(ctx, inside, o.uri, o.single, lose, nil)
	if err != nil {
		return nil, err
	}
	return deployment.Servers(source.Offers()), source.Close()
}

// cellArgs is the command line of a cell, without the arguments that all cells get. It
// may contain secrets.
func cellArgs(cell *matrix.Cell) (args []string) {
	for _, a := range []struct {
		flag string
		uri  secret.Text
	}{{"--uri", cell.URI}, {"--single-uri", cell.SingleURI}} {
		if a.uri.Reveal() != "" {
			args = append(args, a.flag, a.uri.Reveal())
		}
	}
	return append(args, cell.Args()...)
}

// chosen keeps the cells that match --only.
func (m *matrixFlags) chosen(cells []matrix.Cell) (out []matrix.Cell) {
	for _, c := range cells {
		if len(*m.only) == 0 || slices.ContainsFunc(*m.only, func(p *regexp.Regexp) bool { return p.MatchString(c.Name) }) {
			out = append(out, c)
		}
	}
	return out
}

// plan is the output of --dry-run.
func (m *matrixFlags) plan(c *call, file *matrix.File, cells []matrix.Cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s:\n", cellsOf(len(cells)), file.Name)
	for i := range cells {
		fmt.Fprintf(&b, "  %s\n", cells[i].Name)
		if *m.verbose {
			fmt.Fprintf(&b, "      %s\n", c.shown(&cells[i], m.extra()))
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

// extra are the flags that every cell gets beside its own.
func (m *matrixFlags) extra() (args []string) {
	if *m.shard != "" {
		args = append(args, "--shard", *m.shard)
	}
	if *m.durations != "" {
		args = append(args, "--durations", *m.durations)
	}
	return args
}

// shown is the command line of a cell as a user would type it, without secrets.
func (c *call) shown(cell *matrix.Cell, extra []string) string {
	return report.Quote(c.secrets.texts(slices.Concat([]string{"utr", "run"}, extra, cellArgs(cell))))
}

// folder is where results are kept.
func (m *matrixFlags) folder(file string) string {
	if *m.results != "" {
		return *m.results
	}
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".results"
}

// inputs are the files that no report may overwrite.
func (m *matrixFlags) inputs(c *call, suites []string, cells []matrix.Cell) []string {
	inputs := append([]string{c.paths[0], *m.durations}, suites...)
	for _, cell := range cells {
		inputs = append(inputs, valueOf(cell.Flags, "--known-failing"))
	}
	return inputs
}

// valueOf returns the value of a flag in a command line, or "".
func valueOf(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// contents returns the contents of a file that a flag names, or "" without one.
func contents(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // a preset, which is part of the program
	}
	return string(data), err
}
