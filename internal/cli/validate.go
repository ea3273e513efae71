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
		ValidArgsFunction: completes(specs.BuiltIn, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		asJSON := false
		f.toggle(&asJSON, "json", "print each problem as a line of JSON")
		return func(ctx context.Context, c *call) error { return c.validate(ctx, asJSON) }
	})
}

func (c *call) validate(ctx context.Context, asJSON bool) error {
	loaded, err := c.load(ctx, specs.Options{Twins: true})
	var early *exitError
	if errors.Is(err, errInterrupted) || errors.As(err, &early) {
		return err
	}
	problems := problemsOf(err)
	if loaded == nil {
		loaded = &specs.Loaded{}
	}
	for _, s := range loaded.Suites {
		problems = append(problems, s.Warnings...)
	}
	slices.SortStableFunc(problems, func(a, b specs.Problem) int {
		return cmp.Or(strings.Compare(a.Position.File, b.Position.File), a.Position.Compare(b.Position))
	})
	var out strings.Builder
	faults, invalid := 0, map[string]bool{}
	for _, p := range problems {
		out.WriteString(problemLine(p, asJSON) + "\n")
		if p.Severity == specs.Error {
			faults++
			invalid[p.Position.File] = true
		}
	}
	if !asJSON {
		left := loaded.Left()
		if left != "" {
			left = "; " + left
		}
		fmt.Fprintf(&out, "%d valid, %d invalid: %d errors, %d warnings%s\n", len(loaded.Suites), len(invalid), faults, len(problems)-faults, left)
	}
	if err := c.print(c.secrets.Hide(out.String())); err != nil {
		return err
	}
	if faults > 0 {
		return exit(ExitUsage)
	}
	return nil
}

func problemLine(p specs.Problem, asJSON bool) string {
	if !asJSON {
		return strings.TrimPrefix(p.String(), ": ") // of a problem without a file
	}
	text, err := json.Marshal(struct {
		File     string `json:"file"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Path     string `json:"path,omitempty"`
		Rule     string `json:"rule"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	}{p.Position.File, p.Position.Line, p.Position.Column, p.Path, p.Rule, p.Severity.String(), p.Message})
	if err != nil { // no type of a problem can fail
		return err.Error()
	}
	return string(text)
}

// problemsOf lists the problems in an error of a load.
func problemsOf(err error) (out []specs.Problem) {
	if err == nil {
		return nil
	}
	all := []error{err}
	var loading *specs.LoadError
	if errors.As(err, &loading) {
		all = loading.Errors
	}
	for _, e := range all {
		var bad *specs.InvalidError
		if errors.As(e, &bad) {
			out = append(out, bad.Problems...)
			continue
		}
		p := specs.Problem{Rule: "path", Severity: specs.Error, Message: e.Error()}
		var path *specs.PathError
		if errors.As(e, &path) {
			p.Position.File, p.Message = path.Path, path.Message
		}
		out = append(out, p)
	}
	return out
}
