package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
)

func recordCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "record ENGINE PATH...",
		Short: "Print the conversation with an engine while suites run",
		Long: `Runs suites on embedded deployments, and prints all messages of the engine protocol:
"->" marks what utr sends, "<-" what the adapter sends. An engine of utr answers as
an adapter would. The verdicts are printed to standard error.

Exit codes: as those of utr run.`,
		Example: `# what an adapter should answer to a suite
utr engine record reference --run 'the name of a test' suite.yml > expected.txt
# what it answers
utr engine record 'exec:ruby adapter.rb' --run 'the name of a test' suite.yml`,
		Args:              arguments(2, unlimited, "an engine and a suite"),
		ValidArgsFunction: c.engineThenSuites,
	}, func(f *flags) action {
		r := &recording{}
		f.deployment(&r.deployment, topologyAuto, topologyAuto)
		f.filter(&r.config.Filter, "run")
		f.enginesFlag()
		return r.act
	})
}

// recording is utr engine record.
type recording struct {
	deployment deploymentFlags
	config     runner.Config
}

func (r *recording) act(ctx context.Context, c *call) error {
	if err := r.deployment.check(); err != nil {
		return err
	}
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
	suites, err := c.chosen(ctx, r.config.Filter)
	if err != nil {
		return err
	}
	cfg := r.config
	cfg.Engine = e
	if cfg.Source, err = c.program.Open(ctx, r.deployment.options()); err != nil {
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
