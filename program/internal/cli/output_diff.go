package cli

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
)

const slowerBy = 100 * time.Millisecond

func diffCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare the reports of two runs",
		Long: `OLD and NEW are reports that utr run --json wrote. Tests are matched by file,
description, deployment and iteration. Prints the counts, and then new failures, failures of
another kind, fixed tests, changed skips, added or removed tests, and tests that did not run
because the newer run broke or was interrupted. Failures with the same cause are one entry,
as in utr run.

Slower tests are counted, and listed with --slower or -v. They passed in both runs, took more
than 100ms in both, at least twice as long and 100ms more in the newer one, and with
--earlier longer than the mean of the earlier runs by three standard deviations.

Exit codes: 0 no change for the worse, 1 new failures, removed tests, or tests that did
not run, 2 bad usage or not a report.`,
		Example: `# what changed last night
utr diff yesterday.json today.json
# after tests were removed on purpose
utr diff --allow-removed yesterday.json today.json`,
		Args: arguments(2, 2, "two reports, the older one first"),
	}, func(f *flags) action {
		var slower time.Duration
		f.duration(&slower, "slower", "list tests that are slower by at least this (default: count those slower by "+
			slowerBy.String()+")")
		asJSON, allowed, verbose := false, false, false
		var earlier []string
		f.texts(&earlier, "earlier", "FILE|DIR", "JSON reports of earlier runs, to know the noise of durations")
		f.toggle(&verbose, "verbose", "list every test")
		f.toggle(&allowed, "allow-removed", "do not fail because of removed tests")
		f.toggle(&asJSON, "json", "print a JSON line for each change")
		return func(_ context.Context, c *invocation) error {
			reports, err := readReports(c.paths)
			if err != nil {
				return err
			}
			noise, err := readNoise(earlier, c.paths)
			if err != nil {
				return err
			}
			d := report.Compare(reports[0], reports[1], cmp.Or(slower, slowerBy), noise)
			text := d.Text(report.DifferenceOptions{Verbose: verbose, Slower: slower > 0})
			if asJSON {
				text = d.JSON()
			}
			worse := len(d[report.NewFailure])+len(d[report.NotRun]) > 0 || len(d[report.Removed]) > 0 && !allowed
			return c.conclude(string(text), worse)
		}
	})
}

// readNoise reads the durations in reports of earlier runs, except the compared ones.
func readNoise(names, compared []string) (report.Noise, error) {
	noise := report.Noise{}
	return noise, eachEarlier(names, compared, func(file string) error {
		_, err := reportfile.Read(file, func(name string, from io.Reader) (any, error) { return nil, noise.Read(name, from) })
		return err
	})
}
