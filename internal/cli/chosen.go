package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// chosen loads suites, of which the filter must let a test through.
func (c *call) chosen(ctx context.Context, filter runner.Filter) ([]*specs.Suite, error) {
	loaded, err := c.load(ctx, specs.Options{})
	if err != nil {
		return nil, invalid(err)
	}
	if left := loaded.Left(); left != "" {
		c.note(left)
	}
	if len(chosen(loaded.Suites, filter)) == 0 {
		return nil, usage("%s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: filter}), "; "))
	}
	return loaded.Suites, nil
}

// ofCell keeps the verdicts of a cell, if it has any: those of other engines or
// deployments may have taken another time.
func ofCell(verdicts []*result.Verdict, cell string) []*result.Verdict {
	own := slices.DeleteFunc(slices.Clone(verdicts), func(v *result.Verdict) bool { return v.Test.Cell != cell })
	if len(own) == 0 {
		return verdicts
	}
	return own
}

// chosen keeps the suites that have a test which the filter lets through.
func chosen(suites []*specs.Suite, f runner.Filter) []*specs.Suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s *specs.Suite) bool {
		return !slices.ContainsFunc(s.Tests, func(t *specs.Test) bool { return f.Allows(s, t) })
	})
}

// plan is the output of --dry-run.
func plan(suites []*specs.Suite, f runner.Filter) string {
	var b strings.Builder
	tests := 0
	for _, s := range suites {
		for _, t := range s.Tests {
			if f.Allows(s, t) {
				tests++
				fmt.Fprintf(&b, "  %s: %s\n", s.File, t.Description)
			}
		}
	}
	head := fmt.Sprintf("%d tests of %d files would run, as far as their requirements are met:\n", tests, len(suites))
	dropped := runner.DropPlan(suites)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}
