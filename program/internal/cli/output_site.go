package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/program/internal/compare"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/program/internal/site"
)

func siteCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "site DIR REPORT...",
		Short: "Write static pages of results, with their history",
		Long: `Each REPORT is one that utr run --json or utr matrix --json wrote, or a folder of such
.json files. Writes into DIR: an index of engines and suites; a page for each engine
with its failures, its known failures with their reasons, what it does not support, and
its history; the HTML report of each newest run; badges as JSON for shields.io.

The cell of a test names its engine and its suites. A test without a cell counts for the
engine of the run and the last two folders of its suite. Of each engine and its suites,
the newest report counts, and all reports are the history. Merge the shards of a run
first.

Exit codes: 0 the site was written, whatever its results are, 2 bad usage or not a
report, 3 a file cannot be written.`,
		Example: `# all nights that were kept, then: open site/index.html
utr site site nights`,
		Args: arguments(2, unlimited, "a folder for the site, and reports"),
	}, func(*flags) action {
		return func(_ context.Context, c *invocation) error { return writeSite(c, c.paths[0], c.paths[1:]) }
	})
}

func writeSite(c *invocation, dir string, names []string) error {
	var inputs []string
	var reports []*site.Report
	for _, name := range names {
		for _, file := range reportfile.In(name) {
			r, err := reportfile.ReadWritten(file, site.Read)
			if err != nil {
				return invalid(err)
			}
			inputs, reports = append(inputs, file), append(reports, r)
		}
	}
	if !slices.ContainsFunc(reports, func(r *site.Report) bool { return r.Tests() > 0 }) {
		return usage("no report has a test")
	}
	pages := site.New(reports, compare.BySuite())
	files := pages.Files(func(to io.Writer, r *site.Report, earlier []*site.Report) error {
		return writeDetail(to, r.Name, earlier)
	})
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if reportfile.Among(name, inputs) {
			return usage("the site would overwrite the report %s", name)
		}
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("cannot write the site: %w", err)
		}
		if err := reportfile.Write(name, f.Write); err != nil {
			return err
		}
	}
	return c.print(fmt.Sprintf("%s: %s\n", filepath.Join(dir, "index.html"), pages))
}

// writeDetail writes the HTML report of a run.
func writeDetail(to io.Writer, name string, before []*site.Report) error {
	run, err := readReport(name)
	if err != nil {
		return err
	}
	var earlier []*report.EarlierRun
	for _, r := range before {
		e, err := reportfile.ReadWritten(r.Name, report.ReadEarlier)
		if err != nil {
			return err
		}
		earlier = append(earlier, e)
	}
	return report.Write(name, report.HTML(earlier...), to, report.Merge([]*report.SavedRun{run})...)
}
