package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

func mergeCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the reports of several runs",
		Long: `Each FILE is a report that utr run --json wrote, such as the report of a shard. They
are reported as one run. Its problems are the problems of the reports, tests that are in
two reports, and shards that are missing or duplicated. It is broken if a report is cut
off, or its run broke or was interrupted.

Exit codes: as for utr run.`,
		Example: `# the shards of one run
utr merge --junit all.xml --markdown all.md shard-1.json shard-2.json`,
		Args: arguments(1, unlimited, "at least one report"),
	}, func(f *flags) action {
		reports := reportFlags{TextOptions: report.TextOptions{Past: true}}
		f.reports(&reports, "print a line for every test")
		return func(_ context.Context, c *invocation) (err error) {
			parts, err := readReports(c.paths)
			if err != nil {
				return err
			}
			out, err := reports.open(c, "report", c.paths)
			if err != nil {
				return err
			}
			defer func() { err = out.close(err) }()
			code := ExitOK
			for _, n := range report.Merge(parts) {
				out.notify(n)
				if end, ok := n.(result.RunFinished); ok {
					code = end.Summary.ExitCode()
				}
			}
			return cmp.Or(out.err(), exit(code))
		}
	})
}
