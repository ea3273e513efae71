package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/night"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

type cellRun struct {
	matrix.Cell
	inv      *invocation // as in its process
	flags    *runFlags
	plan     *runPlan
	identity string
	done     bool
	log      night.Log
	end      result.CellFinished

	// From its report.
	tests, files int
	notRun       []*result.Verdict // tests that are not in its report
}

func (m *matrixRun) run(ctx context.Context, c *invocation) (err error) {
	m.started = time.Now()
	inputs, err := m.identify(context.WithoutCancel(ctx)) // so that an interruption is in the reports
	if err != nil {
		return err
	}
	out, err := m.reports.open(c, "file", inputs)
	if err != nil {
		return err
	}
	defer func() { err = out.close(err) }()
	if m.folder, err = night.OpenResults(ctx, m.resultsPath(c.paths[0]), ChildGrace, c.note); err != nil {
		return err
	}
	defer m.folder.Close()
	m.removeLeftovers(ctx)
	if err := m.keepFinished(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	stopAnnouncing := c.announceInterruption(ctx)
	err = m.runCells(ctx)
	stopAnnouncing()
	if err != nil {
		return err
	}
	return m.report(ctx, out)
}

// removeLeftovers removes what earlier runs left, for all cells.
func (m *matrixRun) removeLeftovers(ctx context.Context) {
	var services []string
	for _, cell := range m.cells {
		if url := cell.flags.orchestration.URL; url != "" && !slices.Contains(services, url) {
			services = append(services, url)
		}
	}
	if book, err := m.inv.ledger(); err == nil { // otherwise cells report it
		m.inv.removeLeftovers(ctx, book, services...)
	}
}

// identify computes the identity of each cell: a digest of its definition, suites, engine, shard and this program.
// It returns the names of all files that the matrix reads. No report may overwrite them.
func (m *matrixRun) identify(ctx context.Context) (files []string, err error) {
	program, err := m.inv.program.Build()
	if err != nil {
		return nil, fmt.Errorf("cannot identify this program: %w", err)
	}
	files = []string{m.inv.paths[0], m.inv.engines, m.durations}
	digests := map[string]string{} // by paths
	for _, cell := range m.cells {
		key := strings.Join(cell.Paths, "\x00")
		if _, known := digests[key]; !known {
			loaded, err := cell.inv.load(ctx, specs.Options{})
			if err != nil {
				return nil, invalid(fmt.Errorf("%s: the cell %s: %w", cell.Position, cell.Name, err))
			}
			var all strings.Builder
			for _, s := range loaded.Suites {
				fmt.Fprintf(&all, "%s %x\n", s.File, s.Digest)
			}
			digests[key] = all.String()
			files = append(files, filesOf(loaded.Suites)...)
		}
		knownFailing := cell.flags.named.lists(cell.flags.knownFailing)
		files = append(files, knownFailing...)
		sum := sha256.New()
		fmt.Fprintf(sum, "%s\n%q\n%s\n", program,
			m.inv.secrets.texts(slices.Concat(m.extra(), cell.Args(), cell.flags.named.definition())), digests[key])
		for _, name := range slices.Concat([]string{m.durations}, knownFailing, cell.flags.orchestration.clusters) {
			text, err := readList(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // no name, or a preset
				return nil, invalid(err)
			}
			fmt.Fprintf(sum, "%q\n", text)
		}
		cell.identity = fmt.Sprintf("sha256:%x", sum.Sum(nil))
	}
	return files, nil
}

// keepFinished finds the cells that --resume does not repeat. It removes the earlier results of the others.
func (m *matrixRun) keepFinished(ctx context.Context) error {
	found := map[string][]string{} // server versions by cluster
	for _, c := range m.cells {
		if m.unchanged(ctx, c, found) {
			c.done = true
			m.ended++
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.folder.Remove(c.Name); err != nil {
			return fmt.Errorf("cannot keep results: %w", err)
		}
	}
	finished := "results"
	if m.ended > 0 {
		finished = fmt.Sprintf("%d of them already finished", m.ended)
	}
	if m.reports.Quiet {
		return nil
	}
	return m.inv.print(fmt.Sprintf("%s, %s in %s\n", plural.Of(len(m.cells), "cell"), finished, m.folder.Path))
}

// unchanged reports whether the identity and the servers of a cell are unchanged, and adds its earlier results.
func (m *matrixRun) unchanged(ctx context.Context, c *cellRun, found map[string][]string) bool {
	identity, _ := os.ReadFile(m.folder.Finished(c.Name)) // only a finished cell has the file
	if !m.resume || string(identity) != c.identity {
		return false
	}
	past, err := m.folder.Earlier(c.Name)
	if err != nil || past == nil || past.Run == nil {
		return false
	}
	cluster := c.Cluster() + " " + c.Position.String()
	if _, known := found[cluster]; !known {
		m.inv.note(fmt.Sprintf("--resume: asking the servers of the cell %s for their version; a cluster that does not exist is created first", c.Name))
		servers, err := c.servers(ctx)
		if err != nil { // the cell will fail with it
			m.inv.note(fmt.Sprintf("the cell %s runs again: cannot get the version of its servers: %s", c.Name,
				m.inv.secrets.Redact(err.Error())))
		}
		found[cluster] = servers
	}
	if len(found[cluster]) == 0 || !slices.Equal(found[cluster], past.Run.Servers) {
		return false
	}
	c.end.Broken, c.end.KeptFrom = "", past.Run.Started
	c.addReport(past)
	return true
}

func (c *cellRun) servers(ctx context.Context) ([]string, error) {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	source, err := c.plan.source(ctx, lose)
	if err != nil {
		return nil, err
	}
	return deployment.Servers(source.Offers()), source.Close()
}

// runCells runs the remaining cells concurrently, but those on the same existing cluster one after another.
func (m *matrixRun) runCells(ctx context.Context) error {
	todo := slices.DeleteFunc(slices.Clone(m.cells), func(c *cellRun) bool { return c.done })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *cellRun)
	var running []*cellRun
	var failure error
	draw := m.statusLine(&running)
	defer draw.Stop()
	for {
		for len(running) < m.jobs && ctx.Err() == nil {
			busy := slices.Concat(mapSlice(running, (*cellRun).resources)...)
			i := slices.IndexFunc(todo, func(c *cellRun) bool {
				return !slices.ContainsFunc(c.resources(), func(r string) bool { return slices.Contains(busy, r) })
			})
			if i < 0 {
				break
			}
			c := todo[i]
			todo = slices.Delete(todo, i, i+1)
			running = append(running, c)
			if m.verbose {
				failure = errors.Join(failure, m.inv.print(m.shown(c)+"\n"))
			}
			go func() {
				m.runCell(ctx, c)
				ended <- c
			}()
		}
		if len(running) == 0 {
			return failure
		}
		c := draw.wait(ended)
		c.done = true
		m.ended++
		running = slices.DeleteFunc(running, func(r *cellRun) bool { return r == c })
		line := fmt.Sprintf("%*d/%d %s\n", len(fmt.Sprint(len(m.cells))), m.ended, len(m.cells), report.CellLine(c.end))
		if m.reports.Quiet {
			continue
		}
		if err := m.inv.print(draw.wipe + line); err != nil {
			failure = err // standard output was closed, or the disk is full
			cancel()
		}
	}
}

// liveLine is the status line of a matrix on a terminal. Elsewhere it is never drawn.
type liveLine struct {
	*time.Ticker
	wipe string // removes it
	draw func()
}

const drawInterval = 250 * time.Millisecond

func (m *matrixRun) statusLine(running *[]*cellRun) *liveLine {
	l := &liveLine{Ticker: time.NewTicker(drawInterval), draw: func() {}}
	if m.inv.columns() == 0 || m.reports.Quiet {
		return l
	}
	m.inv.statusLine, l.wipe = true, report.Wipe
	began, start := m.ended, time.Now()
	l.draw = func() {
		red := 0
		for _, c := range m.cells {
			if c.done {
				red += c.end.Summary.Failed + c.end.Summary.Broken + c.end.Summary.Flaky
			}
		}
		cells := mapSlice(*running, func(c *cellRun) report.RunningCell {
			return report.RunningCell{Name: c.Name, Done: int(c.log.Done.Load()), Red: int(c.log.Red.Load()),
				Total: int(c.log.Total.Load())}
		})
		_ = m.inv.print(l.wipe + report.CellsStatus(m.inv.columns(), began, m.ended, len(m.cells), red, cells,
			time.Since(start)))
	}
	return l
}

// wait draws the line until a cell ends, and removes it.
func (l *liveLine) wait(ended <-chan *cellRun) *cellRun {
	for {
		select {
		case c := <-ended:
			return c
		case <-l.C:
			l.draw()
		}
	}
}

// resources returns the existing clusters that a cell uses. No two cells may use one at the same time.
func (c *cellRun) resources() (names []string) {
	names = slices.Concat(deployment.HostsOf(c.flags.uri), deployment.HostsOf(c.flags.single))
	o := &c.flags.orchestration
	service, err := orchestration.New(o.URL)
	if err != nil {
		return names
	}
	defer service.Close()
	for _, name := range o.clusters {
		if strings.HasPrefix(name, existingCluster) {
			names = append(names, service.URL()+" "+name)
		}
	}
	return names
}

func (m *matrixRun) runCell(ctx context.Context, c *cellRun) {
	if c.end.Broken = m.runProcess(ctx, c); c.end.Broken != "" || c.end.Summary.ExitCode() >= ExitBroken {
		return
	}
	if err := os.WriteFile(m.folder.Finished(c.Name), []byte(c.identity), 0o644); err != nil {
		c.end.Broken = err.Error()
	}
}

// runProcess runs a cell in its own process and adds its report. It returns why the cell broke, or "".
func (m *matrixRun) runProcess(ctx context.Context, c *cellRun) (broken string) {
	timeout := cmp.Or(c.Timeout, m.timeout, cellTimeout)
	file, err := os.Create(m.folder.Log(c.Name))
	if err != nil {
		return err.Error()
	}
	log := &c.log
	log.File = file
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	args := slices.Concat([]string{"run", argumentsFrom + specs.Stdin, "--cell", c.Name, "--json", m.folder.Report(c.Name),
		"--annotations=false", "-v"}, m.extra())
	child := night.Child{Args: args, More: c.Args(), Env: childEnvironment(os.Environ()), Holds: m.folder.Cells,
		Output: m.inv.secrets.Writer(log), Grace: ChildGrace}
	pid, code, err := m.inv.program.Child(limited, child)
	closing := cmp.Or(log.Err, file.Close())
	past, unreadable := m.folder.Earlier(c.Name)
	if past != nil {
		c.addReport(past)
	}
	complete, summary := past != nil && past.Run != nil, &c.end.Summary
	var breaks []result.Break
	if complete {
		breaks = past.Run.Breaks
	} else {
		summary.Duration = time.Since(began)
	}
	switch {
	case ctx.Err() != nil:
		broken, summary.Interrupted = "interrupted", true
	case limited.Err() != nil:
		broken, summary.Interrupted = fmt.Sprintf("timed out after %s", timeout), false
	case err != nil:
		broken = m.inv.secrets.Redact(err.Error())
	case unreadable != nil:
		broken = unreadable.Error()
	case !complete, code == ExitBroken && summary.ExitCode() != ExitBroken, code > ExitBroken, code == ExitUsage:
		broken = fmt.Sprintf("exit code %d: %s", code, log.Message())
	case len(breaks) > 0:
		broken = breaks[0].Reason
	case closing != nil:
		broken = closing.Error()
	}
	if left := m.leftovers(pid, began); left != "" {
		broken = strings.TrimPrefix(broken+"; ", "; ") + "left for utr clean: " + left
	}
	return broken
}

// leftovers lists what the process of a cell created and did not remove.
func (m *matrixRun) leftovers(pid int, began time.Time) string {
	book, err := m.inv.ledger()
	if err != nil {
		return "" // the cell had no ledger either
	}
	dead, _, _ := book.Leftovers() // utr clean reports the error
	var names []string
	for _, l := range dead {
		if l.Run.PID == pid && !l.At.Before(began.Truncate(time.Second)) {
			names = append(names, l.Entry.String())
		}
	}
	return strings.Join(names, ", ")
}

func (c *cellRun) addReport(p *report.SavedRun) {
	s, files := &c.end.Summary, map[string]bool{}
	for _, v := range p.Verdicts {
		s.Add(v)
		files[v.Test.File] = true
	}
	c.tests += len(p.Verdicts)
	c.files = len(files)
	if p.Run != nil {
		c.end.Engine = p.Run.Engine
		s.Duration, s.Interrupted, s.Problems = time.Duration(p.Run.Duration), p.Run.Interrupted, p.Run.Problems
	}
}

// addNotRun adds the tests of a broken cell that its report lacks.
func (m *matrixRun) addNotRun(ctx context.Context, c *cellRun, past *report.SavedRun) error {
	loaded, err := c.inv.load(ctx, specs.Options{})
	if err != nil {
		return err
	}
	type test struct {
		file, description string
		iteration         int
	}
	of := func(id result.TestID) test { return test{id.File, id.Description, max(1, id.Iteration)} }
	reported := map[test]bool{}
	if past != nil {
		for _, v := range past.Verdicts {
			reported[of(v.Test)] = true
		}
	}
	cfg := c.plan.config
	cfg.Shard = m.shard
	for _, v := range runner.NotRun(loaded.Suites, cfg, c.end.Broken) {
		if !reported[of(v.Test)] {
			c.notRun = append(c.notRun, v)
			c.end.Summary.Add(v)
		}
	}
	c.tests += len(c.notRun)
	return nil
}

// report reports all cells as one run. It reads the verdicts again, cell by cell, to save memory.
func (m *matrixRun) report(ctx context.Context, out *outputs) error {
	for _, c := range m.cells {
		past, err := m.folder.Earlier(c.Name)
		if err != nil {
			c.end.Broken = cmp.Or(c.end.Broken, err.Error())
		}
		if c.end.Broken != "" && (past == nil || past.Run == nil) {
			if err := m.addNotRun(context.WithoutCancel(ctx), c, past); err != nil {
				m.inv.note(fmt.Sprintf("the tests of the cell %s that did not run cannot be listed: %s", c.Name, err))
			}
		}
	}
	out.notify(m.start())
	var all result.Summary
	if ctx.Err() != nil {
		all.Interrupt(runner.Interruption(ctx))
	}
	complete := 0
	for _, c := range m.cells {
		m.reportCell(c, out, &all)
		if c.done && !c.end.Summary.Interrupted {
			complete++
		}
	}
	if m.shard.Count == 0 { // utr merge judges shards
		all.RequireTests(1)
	}
	all.Duration = time.Since(m.started)
	out.notify(result.RunFinished{Summary: all})
	for _, r := range out.all {
		if err := r.Err(); err != nil {
			return fmt.Errorf("a report is incomplete: %w", err)
		}
	}
	if ctx.Err() != nil {
		m.inv.note(fmt.Sprintf("interrupted after %d of %s; the same command with --resume runs the rest",
			complete, plural.Of(len(m.cells), "cell")))
	}
	return exit(all.ExitCode())
}

// reportCell reports a cell, and adds its verdicts, problems and breaks to the summary of all.
func (m *matrixRun) reportCell(c *cellRun, out *outputs, all *result.Summary) {
	past, _ := m.folder.Earlier(c.Name) // the cell broke with its error
	if past == nil || !c.done {
		past = &report.SavedRun{}
	}
	for _, v := range slices.Concat(past.Verdicts, c.notRun) {
		all.Add(v)
		v.Test.Cell = c.Name
		if v.Status == result.KnownFailing { // the report of the cell has the details
			v.Clients, v.Operations, v.Attempts = nil, nil, nil
		}
		out.notify(result.TestFinished{Verdict: v})
	}
	out.notify(c.end)
	for _, p := range c.end.Summary.Problems {
		all.Problems = append(all.Problems, "cell "+c.Name+": "+p)
	}
	if c.end.Broken != "" {
		all.Breaks = append(all.Breaks, result.Break{Cell: c.Name, Reason: c.end.Broken})
	}
}

// start returns the first note of the report.
func (m *matrixRun) start() result.RunStarted {
	started := result.RunStarted{Time: m.started, Jobs: m.jobs, Shard: m.shard.String()}
	var engines []string
	for _, c := range m.cells {
		started.Total += c.tests
		started.Files = max(started.Files, c.files)
		if c.end.Engine != "" && !slices.Contains(engines, c.end.Engine) {
			engines = append(engines, c.end.Engine)
		}
	}
	started.Engine = strings.Join(engines, " and ")
	return started
}
