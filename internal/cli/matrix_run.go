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

// night is one run of a matrix.
type night struct {
	call    *call
	flags   *matrixFlags
	folder  *resultsFolder
	cells   []*cellRun
	started time.Time
}

// cellRun is a cell, the run that it is, and how it went.
type cellRun struct {
	matrix.Cell
	call   *call     // as in its process
	flags  *runFlags // checked
	engine namedEngine

	identity string
	done     bool // it has ended, whatever the way
	end      result.CellFinished
	files    int
	ranOn    string // the engine that its report names
}

// run runs cells and reports on all of them.
func (m *matrixFlags) run(ctx context.Context, c *call, cells []*cellRun) (err error) {
	n := &night{call: c, flags: m, cells: cells, started: time.Now()}
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
	if err := n.keep(ctx); err != nil {
		return err
	}
	told := c.announceInterruption(ctx)
	err = n.all(ctx)
	told()
	if err != nil {
		return err
	}
	return n.report(ctx, out)
}

// identify computes an identity for each cell: a digest of its definition, its suites,
// its engine, the part of the tests, and this program. It returns the names of all files
// that the matrix reads, which no report may overwrite.
func (n *night) identify(ctx context.Context) (files []string, err error) {
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
		knownFailing := cmp.Or(cell.flags.knownFailing, cell.engine.adapter.KnownFailing)
		files = append(files, knownFailing)
		sum := sha256.New()
		fmt.Fprintf(sum, "%s\n%q\n%s\n", program, n.call.secrets.texts(slices.Concat(n.flags.extra(), cell.Args(), cell.engine.definition())), digests[key])
		for _, name := range append([]string{n.flags.durations, knownFailing}, cell.flags.orchestration.clusters...) {
			text, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // no file is named, or a preset
				return nil, invalid(err)
			}
			fmt.Fprintf(sum, "%q\n", text)
		}
		cell.identity = fmt.Sprintf("sha256:%x", sum.Sum(nil))
	}
	return files, nil
}

// keep finds the cells that --resume does not repeat, and prints how many there are.
// It removes the earlier results of all others before the first of them runs.
func (n *night) keep(ctx context.Context) error {
	kept := 0
	found := map[string][]string{} // servers by cluster
	for _, c := range n.cells {
		if n.finished(ctx, c, found) {
			c.done = true
			kept++
			continue
		}
		if ctx.Err() != nil { // its servers may not have answered
			return errInterrupted
		}
		if err := n.folder.forget(c.Name); err != nil {
			return fmt.Errorf("cannot keep results: %w", err)
		}
	}
	line := fmt.Sprintf("%s, results in %s\n", cellsOf(len(n.cells)), n.folder.path)
	if kept > 0 {
		line = fmt.Sprintf("%s, %d of them already finished in %s\n", cellsOf(len(n.cells)), kept, n.folder.path)
	}
	return n.call.print(line)
}

// finished reports whether a cell need not run, and takes its earlier results: its
// identity and the versions of its servers have not changed.
func (n *night) finished(ctx context.Context, c *cellRun, found map[string][]string) bool {
	if !n.flags.resume || !n.folder.has(c.Name, c.identity) {
		return false
	}
	past, damage := n.folder.past(c.Name)
	if damage != nil || past == nil || past.Run == nil {
		return false
	}
	cluster := c.Cluster() + " " + c.Position.String()
	if _, known := found[cluster]; !known {
		servers, err := c.servers(ctx)
		if err != nil { // the cell will report it
			n.call.note(fmt.Sprintf("the cell %s runs again: cannot get the version of its servers: %s", c.Name, n.call.secrets.Hide(err.Error())))
		}
		found[cluster] = servers
	}
	if len(found[cluster]) == 0 || !slices.Equal(found[cluster], past.Run.Servers) {
		return false
	}
	c.end.Broken, c.end.Kept = "", past.Run.Started
	c.take(past)
	return true
}

// servers opens the target of a cell, and returns the versions of its servers.
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

// all runs the remaining cells, several at once. Cells that share an existing cluster
// run one after the other.
func (n *night) all(ctx context.Context) error {
	var todo []*cellRun
	for _, c := range n.cells {
		if !c.done {
			todo = append(todo, c)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *cellRun)
	busy := map[string]bool{} // by resource
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
				n.one(ctx, c)
				ended <- c
			}()
		}
		if running == 0 {
			return failure
		}
		c := <-ended
		c.done = true
		running--
		for _, r := range c.resources() {
			delete(busy, r)
		}
		if err := n.tell(c); err != nil {
			failure = err // the reader of the progress went away, or the disk is full
			cancel()
		}
	}
}

// resources names the existing clusters that a cell uses, independently of how flags
// spell them: no two cells may use one at the same time.
func (c *cellRun) resources() (names []string) {
	for _, uri := range []string{c.flags.uri, c.flags.single} {
		names = append(names, deployment.HostsOf(uri)...)
	}
	o := &c.flags.orchestration
	service, err := orchestration.New(o.URL, orchestration.Limits{})
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

// one runs a cell.
func (n *night) one(ctx context.Context, c *cellRun) {
	if c.end.Broken = n.process(ctx, c); c.end.Broken != "" || c.end.Summary.ExitCode() >= ExitBroken {
		return
	}
	if err := os.WriteFile(n.folder.finished(c.Name), []byte(c.identity), 0o644); err != nil {
		c.end.Broken = err.Error()
	}
}

// process runs a cell in a process of its own, takes its report, and says how it broke.
func (n *night) process(ctx context.Context, c *cellRun) (broken string) {
	timeout := cmp.Or(c.Timeout, n.flags.timeout, cellTimeout)
	log, err := os.Create(n.folder.log(c.Name))
	if err != nil {
		return err.Error()
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	args := slices.Concat([]string{"run", argumentsFrom + specs.Stdin, "--cell", c.Name, "--json", n.folder.report(c.Name), "--annotations=false", "-v"}, n.flags.extra())
	pid, code, err := n.call.program.Child(limited, Child{
		Args: args, More: c.Args(), Output: n.call.secrets.Writer(log), Holds: n.folder.cells,
	})
	closing := log.Close()
	past, damage := n.folder.past(c.Name)
	if past != nil {
		c.take(past)
	}
	whole, summary := past != nil && past.Run != nil, &c.end.Summary
	if !whole {
		summary.Duration = time.Since(began)
	}
	switch {
	case ctx.Err() != nil:
		broken, summary.Interrupted = "interrupted", true
	case limited.Err() != nil:
		broken, summary.Interrupted = fmt.Sprintf("timed out after %s", timeout), false
	case err != nil:
		broken = n.call.secrets.Hide(err.Error())
	case damage != nil:
		broken = damage.Error()
	case !whole, code == ExitBroken && summary.ExitCode() != ExitBroken, code > ExitBroken, code == ExitUsage:
		broken = fmt.Sprintf("exit code %d: %s", code, lastWords(n.folder.log(c.Name)))
	case closing != nil:
		broken = closing.Error()
	}
	if left := n.left(pid, began); left != "" {
		broken = strings.TrimPrefix(broken+"; ", "; ") + "left for utr clean: " + left
	}
	return broken
}

// left lists what the process of a cell made and did not remove.
func (n *night) left(pid int, began time.Time) string {
	book, err := n.call.ledger()
	if err != nil {
		return "" // the process had no ledger either
	}
	dead, _, _ := book.Leftovers() // utr clean reports what cannot be read
	var names []string
	for _, l := range dead {
		if l.Run.PID == pid && !l.At.Before(began.Truncate(time.Second)) {
			names = append(names, l.Entry.String())
		}
	}
	return strings.Join(names, ", ")
}

// take adds up the verdicts of a report.
func (c *cellRun) take(p *report.Past) {
	s, files := &c.end.Summary, map[string]bool{}
	for _, v := range p.Verdicts {
		s.Add(v)
		files[v.Test.File] = true
	}
	c.files = len(files)
	if p.Run != nil {
		c.ranOn = p.Run.Engine
		s.Duration, s.Interrupted, s.Problems = p.Run.Duration(), p.Run.Interrupted, p.Run.Problems
	}
}

// tell prints a line about a cell that has ended.
func (n *night) tell(c *cellRun) error {
	ended := 0
	for _, other := range n.cells {
		if other.done {
			ended++
		}
	}
	return n.call.print(fmt.Sprintf("%*d/%d %s\n", len(fmt.Sprint(len(n.cells))), ended, len(n.cells), report.CellLine(c.end)))
}

// report reports all cells as one run. Verdicts are read again, one cell after the
// other, to save memory.
func (n *night) report(ctx context.Context, out *outputs) error {
	started, summary, code := n.summary(ctx)
	out.notify(started)
	for _, c := range n.cells {
		past, err := n.folder.past(c.Name)
		if err != nil {
			return err
		}
		if past != nil && c.done {
			for _, v := range past.Verdicts {
				v.Test.Cell = c.Name
				if v.Status == result.KnownFailing { // many nights, always the same: the cell's own report has it
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
		_, _ = fmt.Fprintf(n.call.errors, "utr: interrupted: %d of %d cells are finished; the same command with --resume runs the others\n", ended, len(n.cells))
	}
	return exit(code)
}

// summary adds the cells up.
func (n *night) summary(ctx context.Context) (started result.RunStarted, all result.Summary, code int) {
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
		if c.ranOn != "" && !slices.Contains(engines, c.ranOn) {
			engines = append(engines, c.ranOn)
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

// lastWords gives the line of a log that best explains its end: the first line of a crash
// of a Go program, the last message of this program, or else the last line. A message
// that ends with a colon introduces last words of an adapter, whose last line is added.
func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	best, ours := "it printed nothing", false // whether it is a message of this program
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
