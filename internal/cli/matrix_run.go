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
	"github.com/unified-test-runner/utr/matrix"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

type matrixRun struct {
	call    *call
	flags   *matrixFlags
	folder  *resultsFolder
	cells   []*cellRun
	ended   int // cells that have ended
	started time.Time
}

type cellRun struct {
	matrix.Cell
	call       *call // as in its process
	flags      *runFlags
	identity   string
	done       bool
	end        result.CellFinished
	files      int
	engineName string // from its report
}

func (m *matrixFlags) run(ctx context.Context, c *call, cells []*cellRun) (err error) {
	n := &matrixRun{call: c, flags: m, cells: cells, started: time.Now()}
	inputs, err := n.identify(ctx)
	if err != nil {
		return err
	}
	out, err := m.reports.open(c, "file", inputs)
	if err != nil {
		return err
	}
	defer func() { err = out.close(err) }()
	if n.folder, err = openResults(ctx, m.folder(c.paths[0]), c.note); err != nil {
		return err
	}
	defer n.folder.close()
	if err := n.keepFinished(ctx); err != nil {
		return err
	}
	stopAnnouncing := c.announceInterruption(ctx)
	err = n.runCells(ctx)
	stopAnnouncing()
	if err != nil {
		return err
	}
	return n.report(ctx, out)
}

// identify computes the identity of each cell: a digest of its definition, suites, engine, shard and this program.
// It returns the names of all files that the matrix reads, which no report may overwrite.
func (n *matrixRun) identify(ctx context.Context) (files []string, err error) {
	program, err := n.call.program.Build()
	if err != nil {
		return nil, fmt.Errorf("cannot identify this program: %w", err)
	}
	files = []string{n.call.paths[0], n.call.engines, n.flags.durations}
	digests := map[string]string{} // by paths
	for _, cell := range n.cells {
		key := strings.Join(cell.Paths, "\x00")
		if _, known := digests[key]; !known {
			loaded, err := cell.call.load(ctx, specs.Options{})
			switch {
			case errors.Is(err, errInterrupted):
				return nil, err
			case err != nil:
				return nil, invalid(fmt.Errorf("%s: the cell %s: %w", cell.Position, cell.Name, err))
			}
			var all strings.Builder
			for _, s := range loaded.Suites {
				fmt.Fprintf(&all, "%s %x\n", s.File, s.Digest)
			}
			digests[key] = all.String()
			files = append(files, filesOf(loaded.Suites)...)
		}
		knownFailing := cmp.Or(cell.flags.knownFailing, cell.flags.named.adapter.KnownFailing)
		files = append(files, knownFailing)
		sum := sha256.New()
		fmt.Fprintf(sum, "%s\n%q\n%s\n", program, n.call.secrets.texts(slices.Concat(n.flags.extra(), cell.Args(), cell.flags.named.definition())), digests[key])
		for _, name := range append([]string{n.flags.durations, knownFailing}, cell.flags.orchestration.clusters...) {
			text, err := os.ReadFile(name)
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
func (n *matrixRun) keepFinished(ctx context.Context) error {
	found := map[string][]string{} // server versions by cluster
	for _, c := range n.cells {
		if n.unchanged(ctx, c, found) {
			c.done = true
			n.ended++
			continue
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err := n.folder.remove(c.Name); err != nil {
			return fmt.Errorf("cannot keep results: %w", err)
		}
	}
	finished := "results"
	if n.ended > 0 {
		finished = fmt.Sprintf("%d of them already finished", n.ended)
	}
	return n.call.print(fmt.Sprintf("%s, %s in %s\n", cellsOf(len(n.cells)), finished, n.folder.path))
}

// unchanged reports whether the identity and the servers of a cell are unchanged, and adds its earlier results.
func (n *matrixRun) unchanged(ctx context.Context, c *cellRun, found map[string][]string) bool {
	if !n.flags.resume || !n.folder.isFinished(c.Name, c.identity) {
		return false
	}
	past, err := n.folder.earlier(c.Name)
	if err != nil || past == nil || past.Run == nil {
		return false
	}
	cluster := c.Cluster() + " " + c.Position.String()
	if _, known := found[cluster]; !known {
		servers, err := c.servers(ctx)
		if err != nil { // the cell will fail with it
			n.call.note(fmt.Sprintf("the cell %s runs again: cannot get the version of its servers: %s", c.Name, n.call.secrets.Redact(err.Error())))
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
	source, err := c.flags.source(ctx, c.call, lose, nil)
	if err != nil {
		return nil, err
	}
	return deployment.Servers(source.Offers()), source.Close()
}

func cellsOf(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}

// runCells runs the remaining cells concurrently, but those on the same existing cluster one after another.
func (n *matrixRun) runCells(ctx context.Context) error {
	var todo []*cellRun
	for _, c := range n.cells {
		if !c.done {
			todo = append(todo, c)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *cellRun)
	busy := map[string]bool{} // resources
	running := 0
	var failure error
	for {
		for running < n.flags.jobs && ctx.Err() == nil {
			i := slices.IndexFunc(todo, func(c *cellRun) bool {
				return !slices.ContainsFunc(c.resources(), func(r string) bool { return busy[r] })
			})
			if i < 0 {
				break
			}
			c := todo[i]
			todo = slices.Delete(todo, i, i+1)
			for _, r := range c.resources() {
				busy[r] = true
			}
			running++
			if n.flags.verbose {
				failure = errors.Join(failure, n.call.print(n.flags.shown(n.call, c)+"\n"))
			}
			go func() {
				n.runCell(ctx, c)
				ended <- c
			}()
		}
		if running == 0 {
			return failure
		}
		c := <-ended
		c.done = true
		n.ended++
		running--
		for _, r := range c.resources() {
			delete(busy, r)
		}
		line := fmt.Sprintf("%*d/%d %s\n", len(fmt.Sprint(len(n.cells))), n.ended, len(n.cells), report.CellLine(c.end))
		if err := n.call.print(line); err != nil {
			failure = err // standard output was closed, or the disk is full
			cancel()
		}
	}
}

// resources returns the existing clusters that a cell uses. No two cells may use one at the same time.
func (c *cellRun) resources() (names []string) {
	for _, uri := range []string{c.flags.uri, c.flags.single} {
		names = append(names, deployment.HostsOf(uri)...)
	}
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

func (n *matrixRun) runCell(ctx context.Context, c *cellRun) {
	if c.end.Broken = n.runProcess(ctx, c); c.end.Broken != "" || c.end.Summary.ExitCode() >= ExitBroken {
		return
	}
	if err := os.WriteFile(n.folder.finished(c.Name), []byte(c.identity), 0o644); err != nil {
		c.end.Broken = err.Error()
	}
}

// runProcess runs a cell in its own process and adds its report. It returns why the cell broke, or "".
func (n *matrixRun) runProcess(ctx context.Context, c *cellRun) (broken string) {
	timeout := cmp.Or(c.Timeout, n.flags.timeout, cellTimeout)
	log, err := os.Create(n.folder.log(c.Name))
	if err != nil {
		return err.Error()
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	args := slices.Concat([]string{"run", argumentsFrom + specs.Stdin, "--cell", c.Name, "--json", n.folder.report(c.Name), "--annotations=false", "-v"}, n.flags.extra())
	child := Child{Args: args, More: c.Args(), Output: n.call.secrets.Writer(log), Holds: n.folder.cells}
	pid, code, err := n.call.program.Child(limited, child)
	closing := log.Close()
	past, unreadable := n.folder.earlier(c.Name)
	if past != nil {
		c.addReport(past)
	}
	complete, summary := past != nil && past.Run != nil, &c.end.Summary
	if !complete {
		summary.Duration = time.Since(began)
	}
	switch {
	case ctx.Err() != nil:
		broken, summary.Interrupted = "interrupted", true
	case limited.Err() != nil:
		broken, summary.Interrupted = fmt.Sprintf("timed out after %s", timeout), false
	case err != nil:
		broken = n.call.secrets.Redact(err.Error())
	case unreadable != nil:
		broken = unreadable.Error()
	case !complete, code == ExitBroken && summary.ExitCode() != ExitBroken, code > ExitBroken, code == ExitUsage:
		broken = fmt.Sprintf("exit code %d: %s", code, exitMessage(n.folder.log(c.Name)))
	case closing != nil:
		broken = closing.Error()
	}
	if left := n.leftovers(pid, began); left != "" {
		broken = strings.TrimPrefix(broken+"; ", "; ") + "left for utr clean: " + left
	}
	return broken
}

// leftovers lists what the process of a cell created and did not remove.
func (n *matrixRun) leftovers(pid int, began time.Time) string {
	book, err := n.call.ledger()
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
	c.files = len(files)
	if p.Run != nil {
		c.engineName = p.Run.Engine
		s.Duration, s.Interrupted, s.Problems = p.Run.Duration(), p.Run.Interrupted, p.Run.Problems
	}
}

// report reports all cells as one run. It reads the verdicts again, cell by cell, to save memory.
func (n *matrixRun) report(ctx context.Context, out *outputs) error {
	started, summary, code := n.summary(ctx)
	out.notify(started)
	for _, c := range n.cells {
		past, err := n.folder.earlier(c.Name)
		if err != nil {
			return err
		}
		if past != nil && c.done {
			for _, v := range past.Verdicts {
				v.Test.Cell = c.Name
				if v.Status == result.KnownFailing { // the report of the cell has the details
					v.Clients, v.Operations, v.Attempts = nil, nil, nil
				}
				out.notify(result.TestFinished{Verdict: v})
			}
		}
		out.notify(c.end)
	}
	out.notify(result.RunFinished{Time: time.Now(), Summary: summary})
	for _, r := range out.all {
		if err := r.Err(); err != nil {
			return fmt.Errorf("a report is incomplete: %w", err)
		}
	}
	if ctx.Err() != nil {
		ended := 0
		for _, c := range n.cells {
			if c.done && !c.end.Summary.Interrupted {
				ended++
			}
		}
		n.call.note(fmt.Sprintf("interrupted: %d of %d cells are finished; the same command with --resume runs the rest", ended, len(n.cells)))
	}
	return exit(code)
}

func (n *matrixRun) summary(ctx context.Context) (started result.RunStarted, all result.Summary, code int) {
	started = result.RunStarted{Time: n.started, Jobs: n.flags.jobs, Shard: n.flags.shard.String()}
	var engines []string
	for _, c := range n.cells {
		s := c.end.Summary
		for _, count := range s.Counts() {
			started.Total += count.Tests
		}
		all.Passed += s.Passed
		all.Failed += s.Failed
		all.Skipped += s.Skipped
		all.Broken += s.Broken
		all.KnownFailing += s.KnownFailing
		all.Flaky += s.Flaky
		all.Timings.Add(s.Timings)
		started.Files = max(started.Files, c.files)
		if c.engineName != "" && !slices.Contains(engines, c.engineName) {
			engines = append(engines, c.engineName)
		}
		for _, p := range s.Problems {
			all.Problems = append(all.Problems, "cell "+c.Name+": "+p)
		}
		if c.end.Broken != "" {
			code = ExitBroken
			if ctx.Err() == nil || c.done && !s.Interrupted {
				all.Problems = append(all.Problems, "cell "+c.Name+" broke: "+c.end.Broken)
			}
		}
	}
	started.Engine = strings.Join(engines, " and ")
	all.Duration = time.Since(n.started)
	all.Interrupted = ctx.Err() != nil
	return started, all, max(code, all.ExitCode())
}

// exitMessage returns the line of a log that best explains an exit: a Go panic, the last message of utr, or the
// last line. A message of utr that ends with a colon is followed by the last line, which is from an adapter.
func exitMessage(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	best, ours := "it printed nothing", false // whether best is a message of utr
	last := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
		message, isOurs := strings.CutPrefix(line, "utr: ")
		if message = strings.TrimSpace(message); message != "" && (isOurs || !ours) {
			best, ours = message, isOurs
		}
		last = cmp.Or(message, last)
	}
	if ours && strings.HasSuffix(best, ":") {
		best += " " + last
	}
	return best
}
