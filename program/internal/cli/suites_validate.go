package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/specs"
)

func validateCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "validate PATH...",
		Short: "Check suites without running them",
		Long: `Checks each suite against the schema of the version that it declares, and for
what a schema cannot express: entities that do not exist, duplicate descriptions,
arguments that an operation does not accept, a JSON file that differs from the YAML
file of the same name. Problems are printed by file, line and column.

utr run rejects a suite with an error and runs one with a warning. A message says if
a test cannot pass because of the problem: use --strict in hooks and in CI, so that
such a suite is rejected, too. --rules lists the rules, as docs/suite/rules.md does.

Exit codes: 0 no suite has an error, or with --strict a warning, 2 otherwise.`,
		Example: `# everything in a folder
utr validate all
# in a workflow of GitHub Actions
utr validate --strict --format github suites/
# one problem per line, as JSON
utr validate --json suite.yml`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		v := validation{}
		v.declare(f)
		return v.act
	})
}

func (v *validation) declare(f *flags) {
	v.flags, v.format = f, formatText
	choice(f, &v.format, "format", "FORMAT", "output format", formatText, formatJSON, formatGitHub, formatSARIF)
	f.toggle(&v.asJSON, "json", "print a JSON line for each problem, as --format json does")
	f.toggle(&v.strict, "strict", "treat warnings as errors")
	list(f, &v.disabled, "disable", "RULE", "suppress warnings of this rule", v.optionalRule, v.optional()...)
	f.toggle(&v.rules, "rules", "list the rules, and exit")
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
	flags                 *flags
	upkeep                []upkeep // more rules, of utr check
	fix                   bool
}

// optional returns the rules that can be disabled.
func (v *validation) optional() []string {
	return append(warnings(), mapSlice(v.upkeep, upkeep.name)...)
}

func warnings() (names []string) {
	for _, check := range specs.Checks() {
		if check.Severity == specs.Warning {
			names = append(names, check.Name)
		}
	}
	return names
}

// optionalRule checks a value of --disable.
func (v *validation) optionalRule(name string) (string, error) {
	if !slices.Contains(v.optional(), name) {
		return name, errors.New("not a rule that causes warnings; utr validate --rules lists the rules")
	}
	return name, nil
}

func (v *validation) act(ctx context.Context, c *invocation) error {
	switch {
	case v.rules:
		return c.print(listRules())
	case len(c.paths) == 0:
		return usage("requires a suite or a folder")
	case len(v.upkeep) > 0 && slices.Contains(c.paths, specs.Stdin):
		return usage("standard input is not a file: utr validate checks it")
	case v.asJSON:
		v.format = formatJSON
	}
	defer shortLived()()
	stale, changed, err := v.keepUp(c)
	if err != nil {
		return err
	}
	loaded, err := c.load(ctx, specs.Options{Twins: !v.keeps(ruleJSON), OnlyCheck: true})
	if exitOf(err) != nil || errors.Is(err, context.Canceled) {
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
	faults := slices.DeleteFunc(slices.Clone(problems), func(p specs.Problem) bool { return p.Severity != specs.Error })
	out := findings(v.format, inOrder(append(slices.Clone(problems), stale...)), c.program.Version)
	if v.format == formatText {
		out = strings.Join(append(changed, out), "\n") + counts(loaded, faults, len(problems)-len(faults), len(stale))
		if len(stale) > 0 && !v.fix {
			out += fmt.Sprintf("to correct %d of them: %s\n", len(stale), report.Quote(slices.Concat(
				[]string{"utr", "check", "--fix"}, v.flags.args("disable"), c.paths)))
		}
	}
	if err := c.print(c.secrets.Redact(out)); err != nil {
		return err
	}
	switch {
	case len(faults) > 0:
		return exit(ExitUsage)
	case len(stale) > 0:
		return exit(ExitFailed)
	}
	return nil
}

// counts returns the last line of a validation: valid and invalid suites, errors, warnings, and what else there was.
func counts(loaded *specs.Loaded, faults []specs.Problem, warnings, stale int) string {
	invalid, cannotPass, left := map[string]bool{}, 0, loaded.Summary(false)
	for _, p := range faults {
		invalid[p.Position.File] = true
	}
	delete(invalid, "")
	valid := 0
	for _, s := range loaded.Suites {
		cannotPass += s.CannotPass
		if !invalid[s.File] {
			valid++
		}
	}
	if left != "" {
		left = "; " + left
	}
	if cannotPass > 0 {
		left = "; " + plural.Of(cannotPass, "test") + " cannot pass" + left
	}
	if valid+len(invalid) == 0 && left == "" {
		return ""
	}
	return fmt.Sprintf("%d valid, %d invalid: %s, %s%s\n", valid, len(invalid), plural.Of(len(faults)+stale, "error"),
		plural.Of(warnings, "warning"), left)
}

// applyFlags removes disabled warnings, and with --strict changes warnings to errors.
func (v *validation) applyFlags(problems []specs.Problem) []specs.Problem {
	problems = slices.DeleteFunc(problems, func(p specs.Problem) bool {
		return p.Severity == specs.Warning && slices.Contains(v.disabled, p.Rule)
	})
	for i := range problems {
		if v.strict {
			problems[i].Severity = specs.Error
		}
	}
	return problems
}

func inOrder(problems []specs.Problem) []specs.Problem {
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
		if bad := (*specs.InvalidError)(nil); errors.As(e, &bad) {
			out = append(out, bad.Problems...)
			continue
		}
		p := specs.Problem{Rule: "path", Severity: specs.Error, Message: e.Error()}
		if path := (*specs.PathError)(nil); errors.As(e, &path) {
			p.Position.File, p.Message = path.Path, path.Message
		}
		out = append(out, p)
	}
	return out
}

// problemRecord returns the JSON form of a problem, or nil for nil.
func problemRecord(p *specs.Problem) any {
	if p == nil {
		return nil
	}
	return struct {
		File     string `json:"file"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Path     string `json:"path,omitempty"`
		Rule     string `json:"rule"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	}{p.Position.File, p.Position.Line, p.Position.Column, p.Path, p.Rule, p.Severity.String(), p.Text()}
}

func findings(format string, problems []specs.Problem, version string) string {
	if format == formatSARIF {
		return sarif(problems, version)
	}
	var out strings.Builder
	for _, p := range problems {
		switch format {
		case formatGitHub:
			out.WriteString(report.Annotation(p.Severity.String(), p.Position, p.Rule, pathAndMessage(p)))
		case formatJSON:
			out.WriteString(jsonLine(problemRecord(&p)))
		default:
			out.WriteString(strings.TrimPrefix(p.String(), ": ") + "\n") // a problem may have no position
		}
	}
	return out.String()
}

func pathAndMessage(p specs.Problem) string {
	if p.Path == "" {
		return p.Text()
	}
	return p.Path + ": " + p.Text()
}

// otherRules are the rules for which a file is rejected before the checks of package specs, and the rules of upkeep.
func otherRules() []specs.Check {
	rules := []specs.Check{
		{Name: "path", Doc: "A path exists, is readable, and contains suites."},
		{Name: "parse", Doc: "A file is well-formed YAML or JSON, with plain values."},
		{Name: "suite", Doc: "A file named on the command line is a unified suite."},
		{Name: "schemaVersion", Doc: "schemaVersion is a known version."},
		{Name: "schema", Doc: "A suite conforms to the JSON schema of its schemaVersion."},
		{Name: "twin", Doc: "The JSON file of the same name has the same values."},
		{Name: "corpus", Doc: "A suite in a folder of invalid suites is invalid."},
	}
	return append(rules, mapSlice(upkeeps(), func(u upkeep) specs.Check { return u.Check })...)
}

func listRules() string {
	var b strings.Builder
	for _, r := range append(otherRules(), specs.Checks()...) {
		fmt.Fprintf(&b, "%-22s%-9s%s\n", r.Name, r.Severity, r.Doc)
	}
	return b.String()
}

// sarif formats problems as a log for code scanning.
func sarif(problems []specs.Problem, version string) string {
	log := report.SARIFLog{Version: version}
	for _, r := range append(otherRules(), specs.Checks()...) {
		log.Rules = append(log.Rules, report.SARIFRule{ID: r.Name, Doc: r.Doc})
	}
	for _, p := range problems {
		log.Results = append(log.Results,
			report.SARIFResult{Rule: p.Rule, Level: p.Severity.String(), Text: pathAndMessage(p),
				At: p.Position})
	}
	return string(log.JSON())
}
