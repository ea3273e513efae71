package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func engineGroup(c *invocation) *cobra.Command {
	return group("engine COMMAND", "Begin an engine, check it, or record its messages", "a command: init, check or record",
		initCommand(c), checkCommand(c), recordCommand(c))
}

func checkCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "check ENGINE [PATH...]",
		Short: "Check the behavior of an engine, and list what it lacks",
		Long: `Checks each behavior that every engine must have, on an embedded replica set, until the
first message that breaks the protocol, or a behavior that the others need. Then runs
tests at PATH (default: the built-in suites), one of those that need the same, and counts
how many would run. It lists what the engine does not support in the order of what it
would unlock.

Exit codes: 0 the engine has all behaviors, 1 it does not, 2 bad usage or invalid
suite, 3 the engine cannot be used, or the check was interrupted.`,
		Example: `# an adapter under development
utr engine check 'exec:ruby adapter.rb'
# one behavior
utr engine check --run 'waits for events' pymongo`,
		Args:              arguments(1, unlimited, "an engine"),
		ValidArgsFunction: completesFirst(c.completeEngines, c.completeSuites),
	}, func(f *flags) action {
		var only []*regexp.Regexp
		f.patterns(&only, "run", "check only behaviors that match")
		f.enginesFlag()
		return func(ctx context.Context, c *invocation) error { return c.checkEngine(ctx, only) }
	})
}

// engineAndSuites opens the engine of the first argument. The others are paths, by default the built-in suites for the
// current policy.
func (c *invocation) engineAndSuites() (engine.Engine, error) {
	named, err := c.engineNamed(c.paths[0])
	if err != nil {
		return nil, err
	}
	if c.paths = c.paths[1:]; len(c.paths) == 0 {
		c.paths = specs.Current()
	}
	e, err := named.open(reference.Options{})
	if err != nil {
		return nil, usage("%w", err)
	}
	return e, nil
}

func (c *invocation) checkEngine(ctx context.Context, only []*regexp.Regexp) error {
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
		err = fmt.Errorf("the engine cannot be used: %w", err)
		if broke, _ := findingsOf(e); broke != nil {
			err = withAdvice(err, workingMessages)
		}
		return err
	}
	if err := c.print(fmt.Sprintf("%s %s: schema version %s, %s, features: %s\n\n", about.Name, about.Version,
		about.SchemaVersion, plural.Of(len(about.Operations), "operation"),
		cmp.Or(strings.Join(about.Features, ", "), "none"))); err != nil {
		return err
	}
	server, err := c.program.Serve(ctx, embedded.Options{Topology: embedded.ReplicaSet})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	count := map[string]int{} // by mark
	for _, b := range behaviors {
		mark, text := resultOf(b, b.Check(ctx, e, server.URI()))
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.print(mark + " " + text + "\n"); err != nil {
			return err
		}
		count[mark]++
		if broke, _ := findingsOf(e); broke != nil {
			return withAdvice(fmt.Errorf("the check ends here, because the adapter broke the protocol: %w", broke),
				workingMessages)
		}
		if mark == "✘" && b.Vital {
			return &exitError{code: ExitFailed, err: withAdvice(
				errors.New("the check ends here, because all other behaviors need this one"), workingMessages)}
		}
	}
	if err := c.print(fmt.Sprintf("%d of %s\n\n", count["✔"], plural.Of(len(behaviors), "behavior"))); err != nil {
		return err
	}
	text, err := c.blockers(ctx, e, suites.Suites, about)
	if err != nil {
		return err
	}
	_, hints := findingsOf(e)
	for _, h := range hints {
		text += "hint: " + h + "\n"
	}
	return c.conclude(text, count["✘"] > 0)
}

// workingMessages says where to look for what an adapter should have sent.
const workingMessages = "utr engine record reference smoke prints the messages of a working engine, and " +
	"docs/driver/engine-protocol.md describes them."

func findingsOf(e engine.Engine) (*process.ProtocolError, []string) {
	if adapter, is := e.(*process.Engine); is {
		return adapter.Findings()
	}
	return nil, nil
}

// resultOf returns the mark of the result of a check, and a text: it passed, failed, or the engine does not support it.
func resultOf(b enginetest.Behavior, why error) (mark, text string) {
	lacking := (*result.Error)(nil)
	switch {
	case why == nil:
		return "✔", b.Name
	case errors.As(why, &lacking) && lacking.Unsupported != "":
		return "–", fmt.Sprintf("%s\n    The engine does not support %s.", b.Name, lacking.Unsupported)
	}
	return "✘", fmt.Sprintf("%s\n    %s\n    It matters because %s.", b.Name,
		strings.ReplaceAll(why.Error(), "\n", "\n    "), b.Reason)
}

func recordCommand(c *invocation) *cobra.Command {
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
		ValidArgsFunction: completesFirst(c.completeEngines, c.completeSuites),
	}, func(f *flags) action {
		var d deploymentFlags
		var filter runner.Filter
		f.deployment(&d, topologyAuto, topologyAuto)
		f.filter(&filter, "run")
		f.enginesFlag()
		return func(ctx context.Context, c *invocation) error { return c.recordEngine(ctx, &d, filter) }
	})
}

func (c *invocation) recordEngine(ctx context.Context, d *deploymentFlags, filter runner.Filter) error {
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
	verdicts := report.New("standard error", report.Text(report.TextOptions{}), c.errors)
	summary, err := c.runEmbedded(ctx, suites, d, runner.Config{Filter: filter, Engine: e, Jobs: 1,
		Notify: func(n result.Note) { verdicts.Note(c.secrets.note(n)) }})
	if err != nil {
		return err
	}
	return exit(summary.ExitCode())
}

// runEmbedded runs suites on embedded deployments with an open engine.
func (c *invocation) runEmbedded(ctx context.Context, suites []*specs.Suite, d *deploymentFlags,
	cfg runner.Config) (summary result.Summary, err error) {
	if err := c.limitFiles(d.openFiles(suites), &cfg.Jobs, false, 1); err != nil {
		return summary, err
	}
	if cfg.Source, err = c.program.Open(ctx, d.options()); err != nil {
		return summary, err
	}
	defer func() { _ = cfg.Source.Close() }()
	return c.program.Run(ctx, suites, cfg)
}

// referenceEngine is the default engine, and the only one with policies and backoff delays.
const referenceEngine = "reference"

const (
	engineCommand = "exec:"
	engineAddress = "tcp://"
)

// AddEngine adds a driver under test to the built-in ones. It returns an error if the name is taken or not valid.
func (p *Program) AddEngine(name string, open func() (engine.Engine, error)) error {
	switch _, taken := p.Engines[name]; {
	case taken:
		return fmt.Errorf("there is already an engine %q", name)
	case open == nil:
		return fmt.Errorf("the engine %q has no New", name)
	case !matrix.ValidName(name):
		return fmt.Errorf("the name of the engine %q must consist of letters, digits, and between them dots, plus and minus signs", name)
	}
	p.Engines[name] = withoutOptions(name, open)
	return nil
}

// withoutOptions returns a NewEngine of a driver without policies and backoff delays.
func withoutOptions(name string, open func() (engine.Engine, error)) NewEngine {
	return func(o reference.Options) (engine.Engine, error) {
		switch {
		case o.Policy != "":
			return nil, fmt.Errorf("policies are for the engine %s, not for %s", referenceEngine, name)
		case o.Tracing.Enabled:
			return nil, fmt.Errorf("--otlp is for the engine %s, not for %s", referenceEngine, name)
		case o.Backoff == reference.BackoffNone:
			return nil, fmt.Errorf("--backoff none is for the engine %s, not for %s", referenceEngine, name)
		}
		return open()
	}
}
