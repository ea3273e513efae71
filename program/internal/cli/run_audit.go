package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/process/parallel"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func auditCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:         "audit PATH...",
		Short:       "Change one expectation at a time, and check that the test then fails",
		Annotations: map[string]string{usedMost: "run engine topology as-files json"},
		Long: `Runs the tests once. Then changes each expectation of the tests that passed, one at a
time, and matches the recorded run against it: a changed test, called a mutant, must
fail. A mutant that passes is printed with its line and change: there the test checks
less than it seems to. Values that the format lets vary are left alone,
and counted by rule.

With --as-files, the mutants are written to files for another test runner, which must
fail them.

Exit codes: 0 all mutants failed, 1 some passed, 2 bad usage, invalid suites, or no test
passed, 3 broken, or interrupted.`,
		Example: `# a suite that was just written
utr audit my-suite.yml
# mutants for another test runner
utr audit --as-files /tmp/mutants retryable-reads/collection-find.yml`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
		Args:              arguments(1, unlimited, "a suite or a folder"),
	}, func(f *flags) action {
		a := &auditing{run: newRun(f)}
		a.run.declareWhere(f)
		f.group = "Which tests"
		f.filter(&a.run.config.Filter, "audit")
		f.group = "How to run them"
		a.run.declareEngine(f)
		a.run.engine.Backoff = "none"
		f.duration(&a.run.config.Timeout, "timeout", "time limit for one test (default "+runner.DefaultTimeout.String()+")")
		f.group = "Output"
		f.text(&a.folder, "as-files", "DIR", "write the mutants as JSON suites into this folder, and do not run them")
		f.toggle(&a.out.asJSON, "json", "print a JSON line for each mutant")
		return a.act
	})
}

type auditing struct {
	run     *runFlags
	folder  string
	out     lines
	invalid int // mutants that are invalid suites
}

// mutant is a suite of one changed test.
type mutant struct {
	audit.Mutant
	suite *specs.Suite
	id    result.TestID // of the unchanged test
}

func (a *auditing) act(ctx context.Context, c *invocation) error {
	suites, err := c.loadFiltered(ctx, a.run.config.Filter)
	if err != nil {
		return err
	}
	return a.run.plan(c, suites).open(ctx, a.auditSuites)
}

// auditSuites records a run of the suites, and judges or writes their mutants.
func (a *auditing) auditSuites(ctx context.Context, p *runPlan) error {
	c := p.inv
	stopAnnouncing := c.announceInterruption(ctx)
	rec, summary, err := runner.Record(ctx, p.suites, p.config)
	stopAnnouncing()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(summary.Problems) > 0:
		return errors.New(strings.Join(summary.Problems, "; "))
	}
	all, unchanged := a.mutants(p.suites, rec)
	switch {
	case len(all) == 0:
		return usage("nothing to change: no test with expectations passed")
	case a.folder != "":
		return a.write(c, all)
	}
	if len(rec.Racing) > 0 {
		c.note(fmt.Sprintf("left out %s: threads send the same request concurrently, so its responses are ambiguous",
			plural.Of(len(rec.Racing), "test")))
	}
	return a.judge(ctx, c, rec, all, unchanged)
}

// mutants returns the mutants of passed tests, and counts unchanged values by rule. Invalid suites count as failed.
func (a *auditing) mutants(suites []*specs.Suite, rec *runner.Recording) (all []mutant, unchanged map[string]int) {
	unchanged = map[string]int{}
	ids := map[result.Position][]result.TestID{} // on each deployment
	for id, at := range rec.Passed {
		ids[at] = append(ids[at], id)
	}
	for _, same := range ids {
		slices.SortFunc(same, func(a, b result.TestID) int { return cmp.Compare(a.Deployment, b.Deployment) })
	}
	for _, s := range suites {
		changed, kept := audit.Mutants(s.Root)
		for _, p := range kept {
			unchanged[p.Rule] += len(ids[p.TestPosition])
		}
		for _, m := range changed {
			on := ids[m.TestPosition]
			if len(on) == 0 {
				continue
			}
			suite, err := specs.FromValue(s.File, m.Root)
			if err != nil {
				a.invalid += len(on)
				continue
			}
			for _, id := range on {
				all = append(all, mutant{m, suite, id})
			}
		}
	}
	maps.DeleteFunc(unchanged, func(_ string, n int) bool { return n == 0 })
	return all, unchanged
}

func (a *auditing) write(c *invocation, all []mutant) error {
	if err := os.MkdirAll(a.folder, 0o777); err != nil {
		return err
	}
	all = slices.CompactFunc(all, func(a, b mutant) bool { return a.suite == b.suite }) // on other deployments
	for i, m := range all {
		base := filepath.Base(m.id.File)
		stem := strings.TrimSuffix(base, filepath.Ext(base))
		about := fmt.Sprintf("%s: mutant of %s:%d: %s: %s", m.suite.Description, base, m.Position.Line, m.Path, m.Change)
		root := m.Root.With("description", &source.Value{Kind: source.String, String: about})
		name := filepath.Join(a.folder, fmt.Sprintf("%s-%05d.json", stem, i+1))
		if err := reportfile.Write(name, reportfile.Text(root.JSONTwin())); err != nil {
			return err
		}
	}
	return c.print(fmt.Sprintf("wrote %s to %s; each must fail\n", plural.Of(len(all), "mutant"), a.folder))
}

func (a *auditing) judge(ctx context.Context, c *invocation, rec *runner.Recording, all []mutant,
	unchanged map[string]int) error {
	verdicts := make([]*result.Verdict, len(all))
	err := parallel.Each(0, all, func(i int, m mutant) (err error) {
		verdicts[i], err = rec.Judge(ctx, m.suite, m.id)
		return err
	})
	if err != nil || ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	count := map[result.Status]int{}
	for i, v := range verdicts {
		count[v.Status]++
		m, line, reason := all[i], "", ""
		if v.Reason != "" {
			reason = ": " + v.Reason
		}
		if v.Status != result.Failed {
			line = fmt.Sprintf("%s: %s %s: %s: %s%s\n", m.Position, v.Status, m.id.Description, m.Path, m.Change, reason)
		}
		a.out.add(mutantRecord{m.Position, m.id.Description, m.id.Deployment, m.Path, m.Change, v.Status}, "%s", line)
	}
	a.out.add(nil, "%s: %s, %d failed", plural.Of(len(rec.Passed), "test"),
		plural.Of(len(all)+a.invalid, "mutant"), count[result.Failed]+a.invalid)
	if a.invalid > 0 {
		a.out.add(nil, " (%d of them as invalid suites)", a.invalid)
	}
	for _, status := range []result.Status{result.Passed, result.Broken, result.Skipped} {
		if n := count[status]; n > 0 {
			a.out.add(nil, ", %d %s", n, status)
		}
	}
	a.out.add(nil, "\n")
	rules := slices.SortedFunc(maps.Keys(unchanged), func(a, b string) int {
		return cmp.Or(cmp.Compare(unchanged[b], unchanged[a]), cmp.Compare(a, b))
	})
	for _, rule := range rules {
		a.out.add(nil, "  not changed in %s: %s\n", plural.Of(unchanged[rule], "place"), rule)
	}
	return c.conclude(c.secrets.Redact(a.out.String()), count[result.Failed] < len(all))
}

type mutantRecord struct {
	source.Position
	Test       string        `json:"test"`
	Deployment string        `json:"deployment"`
	Path       string        `json:"path"`
	Change     string        `json:"change"`
	Status     result.Status `json:"status"`
}
