package cli

import (
	"context"
	"os"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// readReport reads a report that --json wrote.
func readReport(name string) (*report.Past, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, invalid(err)
	}
	defer func() { _ = f.Close() }()
	p, err := report.Read(name, f)
	if err != nil {
		return nil, invalid(err)
	}
	return p, nil
}

const slowerBy = 100 * time.Millisecond

func diffCommand() *command {
	return &command{
		name:      "diff",
		summary:   "compare the reports of two runs",
		arguments: "OLD NEW",
		details: `OLD and NEW are reports that utr run --json wrote. A test is the same in both if
its file, description, deployment and iteration are. Told are new failures,
failures of another kind, mended tests, skips that changed, tests that passed
and took twice as long, and tests that came and went.

Exit codes: 0 nothing failed that did not fail before, 1 new failures, 2 bad
usage or no report.`,
		examples: []example{{"utr diff yesterday.json today.json", "what the night brought"}},
		declare: func(f *flags) action {
			slower := f.duration("slower", "least difference by which a test is slower (default "+slowerBy.String()+")")
			return func(_ context.Context, c *call) error {
				if len(c.paths) != 2 {
					return usage("diff: name two reports, the older one first")
				}
				before, err := readReport(c.paths[0])
				if err != nil {
					return err
				}
				after, err := readReport(c.paths[1])
				if err != nil {
					return err
				}
				least := *slower
				if least == 0 {
					least = slowerBy
				}
				d := report.Compare(before.Verdicts, after.Verdicts, least)
				if err := c.print(string(d.Text())); err != nil {
					return err
				}
				if len(d.NewFailures) > 0 {
					return exit(ExitFailed)
				}
				return nil
			}
		},
	}
}

func mergeCommand() *command {
	return &command{
		name:      "merge",
		summary:   "make one report of several",
		arguments: "FILE…",
		details: `Each FILE is a report that utr run --json wrote, such as that of a shard. What
they tell is reported as of one run. Problems of the whole are the problems of
each, a test that is in two reports, and a shard that is missing, is there twice
or was cut off.

Exit codes are those of utr run, of which this would be the run.`,
		examples: []example{{"utr merge --junit all.xml --markdown all.md shard-1.json shard-2.json", "the shards of one run"}},
		declare: func(f *flags) action {
			text, reports := f.people(), f.reports()
			return func(_ context.Context, c *call) error {
				if len(c.paths) == 0 {
					return usage("merge: name the reports")
				}
				if err := reports.check("merge"); err != nil {
					return err
				}
				var parts []*report.Past
				for _, name := range c.paths {
					p, err := readReport(name)
					if err != nil {
						return err
					}
					parts = append(parts, p)
				}
				return c.report(text, reports, report.Merge(parts))
			}
		},
	}
}

// report writes the reports of a run that is over.
func (c *call) report(text *peopleFlags, reports reportFlags, notes []result.Note) (err error) {
	files, done, err := reports.open(c.command, "report", c.paths)
	if err != nil {
		return err
	}
	defer func() { err = c.closed(err, done()) }()
	all := append([]*report.Reporter{report.New("standard output", c.text(text), c.out())}, files...)
	code := ExitOK
	for _, n := range notes {
		n = c.secrets.note(n)
		for _, r := range all {
			r.Note(n)
		}
		if end, ok := n.(result.RunFinished); ok {
			code = end.Summary.ExitCode()
		}
	}
	if err := all[0].Err(); err != nil {
		return err
	}
	return exit(code)
}
