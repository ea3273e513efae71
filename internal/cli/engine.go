package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func engineGroup(c *call) *cobra.Command {
	return group("engine COMMAND", "Check an engine, or record its messages", "a command: check or record",
		checkCommand(c), recordCommand(c))
}

func checkCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "check ENGINE [PATH...]",
		Short: "Check the behavior of an engine, and list what it lacks",
		Long: `Checks each behavior that every engine must have, on an embedded replica set. Then
lists what the tests at PATH (default: the built-in suites) need and the engine does not
support. Unsupported arguments and options are not listed; utr run reports them.

Exit codes: 0 the engine has all behaviors, 1 it does not, 2 bad usage or invalid
suite, 3 the engine cannot be used, or the check was interrupted.`,
		Example: `# an adapter under development
utr engine check 'exec:ruby adapter.rb'
# one behavior
utr engine check --run 'waits for events' pymongo`,
		Args:              arguments(1, unlimited, "an engine"),
		ValidArgsFunction: c.engineThenSuites,
	}, func(f *flags) action {
		var only []*regexp.Regexp
		f.patterns(&only, "run", "check only behaviors that match")
		f.enginesFlag()
		return func(ctx context.Context, c *call) error { return c.checkEngine(ctx, only) }
	})
}

func (c *call) engineThenSuites(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.completeEngines(), cobra.ShellCompDirectiveNoFileComp
	}
	return specs.BuiltIn(), cobra.ShellCompDirectiveDefault
}

// engineAndSuites opens the engine of the first argument. The others are paths, by default the built-in suites.
func (c *call) engineAndSuites() (engine.Engine, error) {
	named, err := c.engineNamed(c.paths[0])
	if err != nil {
		return nil, err
	}
	if c.paths = c.paths[1:]; len(c.paths) == 0 {
		c.paths = specs.BuiltIn()
	}
	e, err := named.open(reference.Options{})
	if err != nil {
		return nil, usage("%w", err)
	}
	return e, nil
}

func (c *call) checkEngine(ctx context.Context, only []*regexp.Regexp) error {
	behaviors := matching(enginetest.Behaviors(), only, func(b enginetest.Behavior) string { return b.Name })
	if len(behaviors) == 0 {
		return usage("--run matches no behavior")
	}
	e, err := c.engineAndSuites()
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	suites, err := c.load(ctx, specs.Options{})
	if err != nil {
		return invalid(err)
	}
	about, err := e.Describe(ctx)
	if err != nil {
		return fmt.Errorf("the engine cannot be used: %w", err)
	}
	if err := c.print(fmt.Sprintf("%s %s: schema version %s, %d operations, features: %s\n\n", about.Name, about.Version,
		about.SchemaVersion, len(about.Operations), cmp.Or(strings.Join(about.Features, ", "), "none"))); err != nil {
		return err
	}
	passed, failed, err := c.checkBehaviors(ctx, e, behaviors)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d of %d behaviors\n\n%s", passed, len(behaviors), unsupported(suites.Suites, about))
	return c.conclude(text, failed > 0)
}

// checkBehaviors checks behaviors and prints each result: passed, failed, or not supported by the engine.
func (c *call) checkBehaviors(ctx context.Context, e engine.Engine, all []enginetest.Behavior) (passed, failed int, err error) {
	server, err := c.program.Serve(ctx, embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = server.Close() }()
	for _, b := range all {
		why := b.Check(ctx, e, server.URI())
		if ctx.Err() != nil {
			return passed, failed, errInterrupted
		}
		var lacking *result.Error
		line := ""
		switch {
		case why == nil:
			passed++
			line = "✔ " + b.Name + "\n"
		case errors.As(why, &lacking) && lacking.Unsupported != "":
			line = fmt.Sprintf("– %s\n    It needs what the engine does not support: %s.\n", b.Name, lacking.Unsupported)
		default:
			failed++
			line = fmt.Sprintf("✘ %s\n    %s\n    It matters because %s.\n", b.Name, strings.ReplaceAll(why.Error(), "\n", "\n    "), b.Reason)
		}
		if err := c.print(line); err != nil {
			return passed, failed, err
		}
	}
	return passed, failed, nil
}

// unsupported lists what tests need and an engine does not support.
func unsupported(suites []*specs.Suite, about engine.Description) string {
	tests, lacking := 0, 0
	by := map[string]int{}
	for _, s := range suites {
		for _, t := range s.Tests {
			tests++
			lacks := runner.Missing(s, t, about)
			if len(lacks) > 0 {
				lacking++
			}
			for _, name := range lacks {
				by[name]++
			}
		}
	}
	names := slices.Sorted(maps.Keys(by))
	slices.SortStableFunc(names, func(a, b string) int { return by[b] - by[a] })
	var b strings.Builder
	if lacking > 0 {
		b.WriteString("tests  need\n")
	}
	for _, name := range names {
		fmt.Fprintf(&b, "%5d  %s\n", by[name], name)
	}
	fmt.Fprintf(&b, "%d of %d tests cannot run\n", lacking, tests)
	return b.String()
}

func recordCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "record ENGINE PATH...",
		Short: "Print the messages exchanged with an engine while suites run",
		Long: `Runs suites on embedded deployments, and prints all messages of the engine protocol:
"->" marks what utr sends, "<-" what the adapter sends. A built-in engine answers as an
adapter would. Verdicts are printed to standard error.

Exit codes: as for utr run.`,
		Example: `# what an adapter should answer for a suite
utr engine record reference --run 'the name of a test' suite.yml > expected.txt
# what it answers
utr engine record 'exec:ruby adapter.rb' --run 'the name of a test' suite.yml`,
		Args:              arguments(2, unlimited, "an engine and a suite"),
		ValidArgsFunction: c.engineThenSuites,
	}, func(f *flags) action {
		var d deploymentFlags
		var filter runner.Filter
		f.deployment(&d, topologyAuto, topologyAuto)
		f.filter(&filter, "run")
		f.enginesFlag()
		return func(ctx context.Context, c *call) error { return c.recordEngine(ctx, &d, filter) }
	})
}

func (c *call) recordEngine(ctx context.Context, d *deploymentFlags, filter runner.Filter) error {
	c.transcript = c.secrets.Writer(c.out())
	e, err := c.engineAndSuites()
	if err != nil {
		return err
	}
	if _, adapter := e.(*process.Engine); !adapter {
		if e, err = process.New(process.Options{Engine: e, Transcript: c.transcript, Runner: c.runner()}); err != nil {
			return err
		}
	}
	defer func() { _ = e.Close() }()
	suites, err := c.loadFiltered(ctx, filter)
	if err != nil {
		return err
	}
	cfg := runner.Config{Filter: filter, Engine: e}
	if cfg.Source, err = c.program.Open(ctx, d.options()); err != nil {
		return err
	}
	defer func() { _ = cfg.Source.Close() }()
	verdicts := report.New("standard error", report.Text(report.TextOptions{}), c.errors)
	cfg.Notify = func(n result.Note) { verdicts.Note(c.secrets.note(n)) }
	summary, err := c.program.Run(ctx, suites, cfg)
	if err != nil {
		return err
	}
	return exit(summary.ExitCode())
}
