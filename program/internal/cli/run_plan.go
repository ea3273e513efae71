package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/program/internal/otlp"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// runPlan is what a command does with an engine and a deployment: its flags, and the configuration of the runner, which
// is built once and completed as they open.
type runPlan struct {
	run    *runFlags
	inv    *invocation
	config runner.Config
	engine reference.Options
	suites []*specs.Suite // those with tests that may run
}

func (r *runFlags) plan(c *invocation, suites []*specs.Suite) *runPlan {
	return &runPlan{r, c, r.config, r.engine, suites}
}

// complete checks the flags of utr run and completes the plan. It reads files but connects to nothing.
func (p *runPlan) complete() (err error) {
	r, c, cfg := p.run, p.inv, &p.config
	if len(c.paths) == 0 {
		return usage("requires a suite, a folder, or a built-in suite: %s", strings.Join(specs.BuiltIn(), ", "))
	}
	if cfg.KnownFailing, err = r.named.knownFailing(r.knownFailing); err != nil {
		return err
	}
	cfg.Rerun = r.rerun(c)
	if cfg.Cell != "" && cfg.AllTopologies {
		return usage("--cell cannot be used with --topology all: a cell has one verdict for each test")
	}
	if err := r.checkJobs(); err != nil {
		return err
	}
	if cfg.Jobs == 0 {
		cfg.Jobs = r.jobs(c.program.Machine())
	}
	if !r.flags.Changed("min-tests") && cfg.Cell == "" && cfg.Shard.Count == 0 {
		cfg.MinTests = 1
	}
	if r.durations != "" {
		earlier, err := readReport(r.durations)
		if err != nil {
			return err
		}
		cfg.Shard.Durations = report.Durations(ofCell(earlier.Verdicts, cfg.Cell), runner.ShardKey)
	}
	return nil
}

func (r *runFlags) act(ctx context.Context, c *invocation) (err error) {
	p := r.plan(c, nil)
	if err := p.complete(); err != nil {
		return err
	}
	c.verbose = r.reports.Verbose
	loading := context.WithoutCancel(ctx) // so that an interruption is in the reports
	if slices.Contains(c.paths, specs.Stdin) {
		loading = ctx // it may never end
	}
	suites, err := c.loadFiltered(loading, p.config.Filter)
	if err != nil {
		return err
	}
	p.suites = filterSuites(suites, p.config.Filter)
	if r.dryRun {
		return p.print(suites)
	}
	if r.otlp != nil {
		spans, failed := otlp.Open(ctx, r.otlp, c.program.Version)
		if failed != nil {
			return failed
		}
		p.engine.Tracing = reference.Tracing{Provider: spans.Provider(), Enabled: true}
		p.config.Around = spans.Around
		defer func() { err = c.flush(ctx, spans, err) }()
	}
	// Reports are opened before the deployment, because that may take long.
	out, err := r.reports.open(c, "suite", filesOf(suites))
	if err != nil {
		return err
	}
	defer func() { err = p.closeReports(ctx, out, suites, err) }()
	if r.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.deadline,
			fmt.Errorf("the run took longer than --deadline %s", r.deadline))
		defer stop()
	}
	return p.open(ctx, func(ctx context.Context, p *runPlan) error { return p.perform(ctx, out, suites) })
}

// print prints what would run, and fails if a pattern matches no test of all suites.
func (p *runPlan) print(all []*specs.Suite) error {
	if err := p.inv.print(wouldRun(p.suites, p.config.Filter)); err != nil {
		return err
	}
	if unused := runner.Unused(all, p.config, time.Now()); len(unused) > 0 {
		return &exitError{code: ExitFailed, err: errors.New(strings.Join(unused, "\n"))}
	}
	return nil
}

// closeReports closes the reports of a run that ended with err, perhaps before its first test.
func (p *runPlan) closeReports(ctx context.Context, out *outputs, suites []*specs.Suite, err error) error {
	if !out.ended {
		cfg, summary, why := p.config, result.Summary{}, reason(err)
		if ctx.Err() != nil {
			why = runner.Interruption(ctx)
			summary.Interrupt(why)
		} else {
			summary.Breaks = []result.Break{{Reason: why}}
		}
		about := result.RunStarted{Files: len(suites), Jobs: cfg.Jobs, Seed: cfg.Shuffle, Shard: cfg.Shard.String(),
			Cell: cfg.Cell}
		out.broke(summary, about, runner.NotRun(suites, cfg, why))
		out.ended = true
	}
	return out.close(err)
}

// open opens the engine and the deployment, calls act, and closes them.
func (p *runPlan) open(ctx context.Context, act func(context.Context, *runPlan) error) (err error) {
	if err := p.limitFiles(nil); err != nil {
		return err
	}
	cfg := &p.config
	if cfg.Engine, err = p.run.named.open(p.engine); err != nil {
		return usage("%w", err)
	}
	defer func() { _ = cfg.Engine.Close() }()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	if cfg.Source, err = p.source(ctx, lose); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer func() { err = p.inv.stop(cfg.Source, err) }() // also after a panic, so that the lock is released
	if err := p.limitFiles(cfg.Source.Offers()); err != nil {
		return err
	}
	if p.run.usesExistingCluster() && p.run.lock != nil {
		if err := p.claim(ctx, p.suites); err != nil {
			return err
		}
	}
	return act(ctx, p)
}

// shownCollections is the number of collections that claim prints without --verbose.
const shownCollections = 8

// claim prints the collections that suites name, and refuses those with documents that no run wrote.
func (p *runPlan) claim(ctx context.Context, suites []*specs.Suite) error {
	if all := runner.Namespaces(suites); len(all) > 0 {
		hosts := slices.Concat(mapSlice(p.config.Source.Offers(),
			func(o deployment.Description) []string { return o.Servers })...)
		if more := len(all) - shownCollections; more > 1 && !p.inv.verbose {
			all = append(all[:shownCollections], fmt.Sprintf("… %d more (-v lists all)", more))
		}
		_, _ = fmt.Fprintf(p.inv.errors, "utr will drop or change these collections on %s: %s\n",
			strings.Join(hosts, ","), strings.Join(all, ", "))
	}
	return overwritable(p.inv.program.Claim(ctx, suites, p.config, p.run.overwrite))
}

// overwritable adds to an error how to allow what Claim refuses.
func overwritable(err error) error {
	if foreign := new(runner.ForeignError); errors.As(err, &foreign) {
		return fmt.Errorf("%w\nnothing was changed; --overwrite allows utr to replace them, from now on", err)
	}
	return err
}

// flush sends the last spans of a command that ended with err. If both fail, it prints the error of sending.
func (c *invocation) flush(ctx context.Context, spans *otlp.Exporter, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runner.InterruptedEnd)
	defer cancel()
	switch sending := spans.Close(ctx); {
	case sending == nil:
		return err
	case err == nil:
		return &exitError{code: ExitBroken, err: sending}
	default:
		c.note(sending.Error())
		return err
	}
}

// stop closes the deployment of a command that ended with err. If both fail, it prints the error of closing.
func (c *invocation) stop(source deployment.Source, err error) error {
	closing := source.Close()
	switch {
	case closing == nil:
		return err
	case err == nil:
		return fmt.Errorf("stopping the deployment: %w", closing)
	}
	c.note(fmt.Sprintf("stopping the deployment: %s", closing))
	return err
}

// perform runs the suites and writes the reports. It interrupts the run if standard output fails, and keeps the logs of
// servers if a test did.
func (p *runPlan) perform(ctx context.Context, out *outputs, suites []*specs.Suite) error {
	hint := policyHint{p.engine.Policy, map[string]int{}}
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.config.Notify = func(n result.Note) {
		out.notify(n)
		hint.notify(n)
		if err := out.err(); err != nil {
			cancel(err)
		}
	}
	stopAnnouncing := p.inv.announceInterruption(ctx)
	summary, err := p.inv.program.Run(reading, suites, p.config)
	stopAnnouncing()
	if err == nil {
		err = cmp.Or(out.err(), exit(summary.ExitCode()))
	}
	hint.print(p.inv)
	if code := codeOf(err); ctx.Err() == nil && (code == ExitBroken || code == ExitFailed) {
		p.config.Source.KeepLogs()
	}
	return err
}

// announceInterruption prints an interruption at once, since cleaning up may take long, until stop is called.
func (c *invocation) announceInterruption(ctx context.Context) (stop func()) {
	printed := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(printed)
		c.note(fmt.Sprintf("%s: cleaning up (fail points, sessions, clients); this takes up to %s if a deployment does not answer, "+
			"and up to %s if a service removes clusters; a second signal quits at once", runner.Interruption(ctx),
			runner.InterruptedEnd+lock.ReleaseLimit, deployment.CloseLimit))
	})
	return func() {
		if !cancel() {
			<-printed
		}
	}
}
