package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

func readReport(name string) (*report.SavedRun, error) {
	p, err := fromFile(name, report.Read)
	return p, invalid(err)
}

func readReports(names []string) (all []*report.SavedRun, err error) {
	for _, name := range names {
		p, err := readReport(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func fromFile[T any](name string, read func(name string, from io.Reader) (T, error)) (value T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return value, err
	}
	defer func() { _ = f.Close() }()
	return read(name, f)
}

const slowerBy = 100 * time.Millisecond

func diffCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare the reports of two runs",
		Long: `OLD and NEW are reports that utr run --json wrote. Tests are matched by file,
description, deployment and iteration. Prints new failures, failures of another kind,
fixed tests, changed skips, passing tests that took twice as long, and added or removed
tests.

Exit codes: 0 no new failures, 1 new failures, 2 bad usage or not a report.`,
		Example: `# what changed last night
utr diff yesterday.json today.json`,
		Args: arguments(2, 2, "two reports, the older one first"),
	}, func(f *flags) action {
		var slower time.Duration
		f.duration(&slower, "slower", "smallest increase that counts as slower (default "+slowerBy.String()+")")
		asJSON := false
		f.toggle(&asJSON, "json", "print a JSON line for each change")
		return func(_ context.Context, c *call) error {
			reports, err := readReports(c.paths)
			if err != nil {
				return err
			}
			d := report.Compare(reports[0].Verdicts, reports[1].Verdicts, cmp.Or(slower, slowerBy))
			text := d.Text
			if asJSON {
				text = d.JSON
			}
			return c.conclude(string(text()), len(d[report.NewFailure]) > 0)
		}
	})
}

func mergeCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the reports of several runs",
		Long: `Each FILE is a report that utr run --json wrote, such as that of a shard. They
are reported as one run. Its problems are those of the reports, tests that are in two
reports, and shards that are missing, duplicated or incomplete.

Exit codes: as for utr run.`,
		Example: `# the shards of one run
utr merge --junit all.xml --markdown all.md shard-1.json shard-2.json`,
		Args: arguments(1, unlimited, "at least one report"),
	}, func(f *flags) action {
		var reports reportFlags
		f.reports(&reports, "print a line for every test")
		return func(_ context.Context, c *call) error {
			parts, err := readReports(c.paths)
			if err != nil {
				return err
			}
			return c.report(&reports, report.Merge(parts))
		}
	})
}

func (c *call) report(reports *reportFlags, notes []result.Note) (err error) {
	out, err := reports.open(c, "report", c.paths)
	if err != nil {
		return err
	}
	defer func() { err = out.close(err) }()
	code := ExitOK
	for _, n := range notes {
		out.notify(n)
		if end, ok := n.(result.RunFinished); ok {
			code = end.Summary.ExitCode()
		}
	}
	return cmp.Or(out.all[0].Err(), exit(code))
}
