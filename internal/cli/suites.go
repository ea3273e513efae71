package cli

import (
	"context"
	"errors"
	"regexp"
	"slices"

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

// matching keeps what patterns find by name; without any, all of it.
func matching[T any](all []T, patterns []*regexp.Regexp, name func(T) string) []T {
	if len(patterns) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(one T) bool {
		return !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name(one)) })
	})
}
