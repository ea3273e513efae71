package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/specs"
)

func validateCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "validate PATH...",
		Short: "Check suites without running them",
		Long: `Checks each suite against the schema of the version that it declares, and for
what a schema cannot express: entities that do not exist, duplicate descriptions,
arguments that an operation does not accept, a JSON file that differs from the YAML
file of the same name. Problems are printed by file, line and column.

utr run rejects a suite with an error and runs one with a warning. --rules lists the
rules, as docs/rules.md does.

Exit codes: 0 no suite has an error, or with --strict a warning, 2 otherwise.`,
		Example: `# everything in a directory
utr validate specs/
# in a workflow of GitHub Actions
utr validate --strict --format github specs/
# one problem per line, as JSON
utr validate --json suite.yml`,
		ValidArgsFunction: completes(specs.BuiltIn, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		v := validation{format: formatText}
		choice(f, &v.format, "format", "FORMAT", "output format", formatText, formatJSON, formatGitHub, formatSARIF)
		f.toggle(&v.asJSON, "json", "print a JSON line for each problem, as --format json does")
		f.toggle(&v.strict, "strict", "treat warnings as errors")
		f.texts(&v.disabled, "disable", "RULE", "do not report warnings of this rule", warnings()...)
		f.toggle(&v.rules, "rules", "list the rules, and exit")
		return v.act
	})
}

const (
	formatText   = "text"
	formatJSON   = "json"
	formatGitHub = "github"
	formatSARIF  = "sarif"
)

type validation struct {
	format                string
	asJSON, strict, rules bool
	disabled              []string
}

func warnings() (names []string) {
	for _, check := range specs.Checks() {
		if check.Severity == specs.Warning {
			names = append(names, check.Name)
		}
	}
	return names
}

func (v *validation) act(ctx context.Context, c *call) error {
	for _, rule := range v.disabled {
		if !slices.Contains(warnings(), rule) {
			return usage("--disable %s: not a rule that causes warnings; utr validate --rules lists the rules", rule)
		}
	}
	switch {
	case v.rules:
		return c.print(listRules())
	case len(c.paths) == 0:
		return usage("requires a suite or a directory")
	case v.asJSON:
		v.format = formatJSON
	}
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
	problems = v.applyFlags(problems)
	faults, invalid := 0, map[string]bool{}
	for _, p := range problems {
		if p.Severity == specs.Error {
			faults++
			invalid[p.Position.File] = true
		}
	}
	out := findings(v.format, problems, c.program.Version)
	if v.format == formatText {
		left := loaded.Summary()
		if left != "" {
			left = "; " + left
		}
		valid := slices.DeleteFunc(slices.Clone(loaded.Suites), func(s *specs.Suite) bool { return invalid[s.File] })
		out += fmt.Sprintf("%d valid, %d invalid: %d errors, %d warnings%s\n", len(valid), len(invalid), faults, len(problems)-faults, left)
	}
	err = c.print(c.secrets.Redact(out))
	if err == nil && faults > 0 {
		return exit(ExitUsage)
	}
	return err
}

// applyFlags removes disabled warnings, with --strict changes warnings to errors, and sorts by position.
func (v *validation) applyFlags(problems []specs.Problem) []specs.Problem {
	problems = slices.DeleteFunc(problems, func(p specs.Problem) bool {
		return p.Severity == specs.Warning && slices.Contains(v.disabled, p.Rule)
	})
	for i := range problems {
		if v.strict {
			problems[i].Severity = specs.Error
		}
	}
	slices.SortStableFunc(problems, func(a, b specs.Problem) int {
		return cmp.Or(strings.Compare(a.Position.File, b.Position.File), a.Position.Compare(b.Position))
	})
	return problems
}

func problemsOf(err error) (out []specs.Problem) {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
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

func problemRecord(p specs.Problem) any {
	return struct {
		File     string `json:"file"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Path     string `json:"path,omitempty"`
		Rule     string `json:"rule"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	}{p.Position.File, p.Position.Line, p.Position.Column, p.Path, p.Rule, p.Severity.String(), p.Message}
}
