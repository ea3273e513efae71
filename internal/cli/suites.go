package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// load reads suites. The end of ctx ends it even while it waits for standard input.
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

// matching keeps what patterns find by name; without any, all of it.
func matching[T any](all []T, patterns []*regexp.Regexp, name func(T) string) []T {
	if len(patterns) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(one T) bool {
		return !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name(one)) })
	})
}

// watchInterval is how often --watch looks for changes.
const watchInterval = 200 * time.Millisecond

// stamps tell versions of all suites at or below paths apart. What cannot be read is not there.
func stamps(paths []string) map[string]string {
	found := map[string]string{}
	for _, p := range paths {
		_ = filepath.WalkDir(p, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			about, err := e.Info()
			if err == nil && about.Mode().IsRegular() && specs.IsSuiteName(name) {
				found[name] = fmt.Sprint(about.ModTime(), about.Size())
			}
			return nil
		})
	}
	maps.DeleteFunc(found, func(name, _ string) bool { // the JSON form of a suite that is there
		stem, isJSON := strings.CutSuffix(name, ".json")
		return isJSON && found[stem+".yml"]+found[stem+".yaml"] != ""
	})
	return found
}

// watch runs the suites, and again those that change, until it is interrupted.
func (r *runFlags) watch(ctx context.Context, c *call) error {
	paths := c.paths
	seen := stamps(paths)
	if len(seen) == 0 {
		return usage("--watch requires suites in files")
	}
	for {
		err := r.act(ctx, c)
		e := (*exitError)(nil)
		switch known := errors.As(err, &e); {
		case ctx.Err() != nil, known && e.hint: // what the user typed does not mend itself
			return err
		case err != nil && !(known && e.err == nil):
			c.note(err.Error())
		}
		c.note("waiting for a suite to change; interrupt to stop")
		var now map[string]string
		for c.paths = nil; len(c.paths) == 0; seen = now {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(watchInterval):
			}
			now = stamps(paths)
			for name, s := range now {
				if s != seen[name] {
					c.paths = append(c.paths, name)
				}
			}
		}
		slices.Sort(c.paths)
		c.note(fmt.Sprintf("changed: %s", strings.Join(c.paths, ", ")))
	}
}
