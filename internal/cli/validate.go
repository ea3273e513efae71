package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/specs"
)

func validateCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "validate PATH...",
		GroupID: suitesGroup,
		Short:   "Check suites without running them",
		Long: `Checks each suite against the schema of the version that it declares, and for
what a schema cannot express: entities that do not exist, duplicate descriptions,
arguments that an operation does not take, a JSON file that differs from the YAML
file of the same name. Problems are printed by file, line and column.

Exit codes: 0 no suite has an error, 2 otherwise.`,
		Example: `# everything in a directory
utr validate specs/
# one problem per line, as JSON
utr validate --json suite.yml`,
		Args:              arguments(1, math.MaxInt, "a suite or a directory"),
		ValidArgsFunction: completes(builtIn, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		asJSON := false
		f.toggle(&asJSON, "json", "print each problem as a line of JSON")
		return func(ctx context.Context, c *call) error { return c.validate(ctx, asJSON) }
	})
}

// problem is a line of validate --json.
type problem struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

func (c *call) validate(ctx context.Context, asJSON bool) error {
	loaded, err := c.load(ctx, specs.Options{Twins: true})
	var early *exitError
	if errors.Is(err, errInterrupted) || errors.As(err, &early) {
		return err
	}
	problems := problemsOf(err)
	if loaded != nil {
		for _, s := range loaded.Suites {
			problems = append(problems, inSuite(s.Warnings)...)
		}
	}
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	var out strings.Builder
	for _, p := range problems {
		out.WriteString(p.line(asJSON))
	}
	if !asJSON {
		out.WriteString(verdict(loaded, problems))
	}
	if err := c.print(c.secrets.Hide(out.String())); err != nil {
		return err
	}
	if slices.ContainsFunc(problems, func(p problem) bool { return p.Severity == specs.Error.String() }) {
		return exit(ExitUsage)
	}
	return nil
}

func (p problem) line(asJSON bool) string {
	if asJSON {
		text, err := json.Marshal(p)
		if err != nil { // no type of a problem can fail
			return err.Error() + "\n"
		}
		return string(text) + "\n"
	}
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
	if at != "" {
		at += ": "
	}
	if p.Path != "" {
		p.Path += ": "
	}
	return fmt.Sprintf("%s%s: %s%s (%s)\n", at, p.Severity, p.Path, p.Message, p.Rule)
}

// problemsOf lists the problems in an error of a load.
func problemsOf(err error) []problem {
	if err == nil {
		return nil
	}
	all := []error{err}
	var loading *specs.LoadError
	if errors.As(err, &loading) {
		all = loading.Errors
	}
	var out []problem
	for _, e := range all {
		var bad *specs.InvalidError
		var path *specs.PathError
		switch {
		case errors.As(e, &bad):
			out = append(out, inSuite(bad.Problems)...)
		case errors.As(e, &path):
			out = append(out, problem{File: path.Path, Rule: "path", Severity: specs.Error.String(), Message: path.Message})
		default:
			out = append(out, problem{Rule: "path", Severity: specs.Error.String(), Message: e.Error()})
		}
	}
	return out
}

func inSuite(problems []specs.Problem) []problem {
	var out []problem
	for _, p := range problems {
		out = append(out, problem{File: p.Position.File, Line: p.Position.Line, Column: p.Position.Column,
			Path: p.Path, Rule: p.Rule, Severity: p.Severity.String(), Message: p.Message})
	}
	return out
}

// verdict is the last line.
func verdict(loaded *specs.Loaded, problems []problem) string {
	failed, errors, warnings := map[string]bool{}, 0, 0
	for _, p := range problems {
		if p.Severity == specs.Error.String() {
			failed[p.File] = true
			errors++
		} else {
			warnings++
		}
	}
	if loaded == nil {
		loaded = &specs.Loaded{}
	}
	left := loaded.Left()
	if left != "" {
		left = "; " + left
	}
	return fmt.Sprintf("%d valid, %d invalid: %d errors, %d warnings%s\n", len(loaded.Suites), len(failed), errors, warnings, left)
}
