package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// load loads suites. Cancelling ctx ends it even while it reads standard input.
func (c *call) load(ctx context.Context, o specs.Options) (*specs.Loaded, error) {
	if slices.Contains(c.paths, "") {
		return nil, usage("a path is empty")
	}
	o.Stdin = c.program.Stdin
	var loaded *specs.Loaded
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		loaded, err = specs.Load(c.paths, o)
	}()
	select {
	case <-read:
		return loaded, err
	case <-ctx.Done():
		return nil, errInterrupted
	}
}

// errInterrupted ends a command that has nothing to report yet.
var errInterrupted = errors.New("interrupted")

// matching returns the elements whose name matches a pattern, or all if there are no patterns.
func matching[T any](all []T, patterns []*regexp.Regexp, name func(T) string) []T {
	if len(patterns) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(one T) bool {
		return !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name(one)) })
	})
}

// loadFiltered loads suites. It is a usage error if the filter excludes all tests.
func (c *call) loadFiltered(ctx context.Context, filter runner.Filter) ([]*specs.Suite, error) {
	loaded, err := c.load(ctx, specs.Options{})
	if err != nil {
		return nil, invalid(err)
	}
	if left := loaded.Summary(); left != "" {
		c.note(left)
	}
	if len(filterSuites(loaded.Suites, filter)) == 0 {
		return nil, usage("%s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: filter}, time.Now()), "; "))
	}
	return loaded.Suites, nil
}

// ofCell returns the verdicts of a cell, or else all verdicts: durations of other cells are better than none.
func ofCell(verdicts []*result.Verdict, cell string) []*result.Verdict {
	own := slices.DeleteFunc(slices.Clone(verdicts), func(v *result.Verdict) bool { return v.Test.Cell != cell })
	if len(own) == 0 {
		return verdicts
	}
	return own
}

func filterSuites(suites []*specs.Suite, f runner.Filter) []*specs.Suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s *specs.Suite) bool {
		return !slices.ContainsFunc(s.Tests, func(t *specs.Test) bool { return f.Allows(s, t) })
	})
}

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
	head := fmt.Sprintf("%d tests of %d files would run if their requirements are met:\n", tests, len(suites))
	dropped := runner.DropPlan(suites)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}
