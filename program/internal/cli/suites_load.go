package cli

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/process/official"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// load loads suites. Canceling ctx ends it even while it reads standard input.
func (c *invocation) load(ctx context.Context, o specs.Options) (*specs.Loaded, error) {
	if slices.Contains(c.paths, "") {
		return nil, usage("a path is empty")
	}
	o.Stdin, o.Official = c.program.Stdin, c.official()
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
		return nil, ctx.Err()
	}
}

// official returns the folder of the official suites, or "" if there is neither one nor a cache folder.
func (c *invocation) official() string {
	dir, _ := official.Dir(c.env) // without a folder, paths of official suites are errors
	return dir
}

// completeSuites returns the names of built-in suites, and of official ones if they are there.
func (c *invocation) completeSuites() []string {
	return append(specs.BuiltIn(), specs.OfficialSuites(c.official())...)
}

// shortLived makes garbage collection rare until the returned function is called. It took a quarter of the time of
// commands that only read suites.
func shortLived() func() {
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// matching returns the elements whose name matches a pattern, or all if there are no patterns.
func matching[T any](all []T, patterns []*regexp.Regexp, name func(T) string) []T {
	matches := func(one T) bool {
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name(one)) })
	}
	return slices.DeleteFunc(all, func(one T) bool { return len(patterns) > 0 && !matches(one) })
}

// loadFiltered loads suites, if the command line names some. It is a usage error if the filter excludes all tests.
func (c *invocation) loadFiltered(ctx context.Context, filter runner.Filter) ([]*specs.Suite, error) {
	if len(c.paths) == 0 {
		return nil, nil
	}
	loaded, err := c.load(ctx, specs.Options{})
	if err != nil {
		return nil, invalid(err)
	}
	if left := loaded.Summary(c.verbose); left != "" {
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

// wouldRun describes a run that does not take place.
func wouldRun(suites []*specs.Suite, f runner.Filter) string {
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
	head := fmt.Sprintf("%s in %s would run if the requirements are met:\n",
		plural.Of(tests, "test"), plural.Of(len(suites), "file"))
	dropped := runner.Namespaces(suites)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped or changed:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}
