package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/coverage"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/runner"
)

func coverageCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "coverage PATH...",
		Short: "Count what suites exercise, and list what they do not",
		Long: `Counts the tests for each operation, error code, error label, command of a fail
point, event type and special operator, and lists what no test exercises. With
--against, it also lists what only one of two sets of suites exercises. With --report,
it counts the rules of the retry core that decided in a run, whose report is written by
utr run --events --json FILE.

Exit codes: 0 the counts were printed, 2 bad usage or invalid suites.`,
		Example: `# what one set of suites exercises and another does not
utr coverage retryable-reads --against dated/retryable-reads-2024
# with the rules that decided
utr run --events --json run.json retryable-reads
utr coverage --report run.json retryable-reads`,
		Args:              arguments(1, unlimited, "a suite or a folder"),
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		var o coverageOptions
		f.texts(&o.against, "against", "PATH", "compare with these suites")
		f.file(&o.report, "report", "count the rules of the retry core in the report of a run")
		f.file(&o.html, "html", "write a page for a browser", ".yml", ".yaml")
		f.toggle(&o.asJSON, "json", "print the counts as JSON")
		return o.run
	})
}

type coverageOptions struct {
	against      []string
	report, html string
	asJSON       bool
}

func (o *coverageOptions) run(ctx context.Context, c *invocation) error {
	suites, err := c.loadFiltered(ctx, runner.Filter{})
	if err != nil {
		return err
	}
	of := strings.Join(c.paths, " ")
	count, against := coverage.Of(suites), coverage.Count(nil)
	if o.report != "" {
		past, err := readReport(o.report)
		if err != nil {
			return err
		}
		if !count.Rules(past.Verdicts) {
			return usage("%s contains no decisions of the retry core: utr run --events --json FILE writes them with the reference engine", o.report)
		}
	}
	if len(o.against) > 0 {
		c.paths = o.against
		others, err := c.loadFiltered(ctx, runner.Filter{})
		if err != nil {
			return err
		}
		against = coverage.Of(others)
	}
	sections := coverage.Sections(count, against)
	if err := reportfile.Write(o.html, func(w io.Writer) error {
		return coverage.HTML(w, sections, of, strings.Join(o.against, " "))
	}); err != nil {
		return err
	}
	if !o.asJSON {
		return c.print(coverage.Text(sections))
	}
	return c.print(jsonPage(sections))
}
