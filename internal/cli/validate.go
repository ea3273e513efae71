package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/specs"
)

func validateCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "validate PATH...",
		Short: "Check suites without running them",
		Long: `Checks each suite against the schema of the version that it declares, and for
what a schema cannot express: entities that do not exist, duplicate descriptions,
arguments that an operation does not take, a JSON file that differs from the YAML
file of the same name. Problems are printed by file, line and column.

A file with an error is refused by utr run; one with a warning runs. --rules lists the
rules that can be violated, as docs/rules.md does.

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
		choice(f, &v.format, "format", "FORMAT", "form of the output", formatText, formatJSON, formatGitHub, formatSARIF)
		f.toggle(&v.asJSON, "json", "print each problem as a line of JSON, as --format json does")
		f.toggle(&v.strict, "strict", "a warning is an error")
		f.texts(&v.disabled, "disable", "RULE", "do not report warnings of this rule", warnings()...)
		f.toggle(&v.rules, "rules", "list the rules, and stop")
		return v.act
	})
}

// The values of validate --format.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatGitHub = "github"
	formatSARIF  = "sarif"
)

// validation is utr validate.
type validation struct {
	format                string
	asJSON, strict, rules bool
	disabled              []string
}

// warnings names the rules whose violation is a warning.
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
			return usage("--disable %s: is not a rule of warnings; utr validate --rules lists them", rule)
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
	problems = v.judged(problems)
	faults, invalid := 0, map[string]bool{}
	for _, p := range problems {
		if p.Severity == specs.Error {
			faults++
			invalid[p.Position.File] = true
		}
	}
	out := findings(v.format, problems, c.program.Version)
	if v.format == formatText {
		left := loaded.Left()
		if left != "" {
			left = "; " + left
		}
		valid := slices.DeleteFunc(slices.Clone(loaded.Suites), func(s *specs.Suite) bool { return invalid[s.File] })
		out += fmt.Sprintf("%d valid, %d invalid: %d errors, %d warnings%s\n", len(valid), len(invalid), faults, len(problems)-faults, left)
	}
	err = c.print(c.secrets.Hide(out))
	if err == nil && faults > 0 {
		return exit(ExitUsage)
	}
	return err
}

// judged leaves out what is disabled, makes errors of warnings if they are to be, and
// orders all by file and place.
func (v *validation) judged(problems []specs.Problem) []specs.Problem {
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

// findings writes problems in a format of validate.
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
			out.WriteString(jsonLine(problemRecord(p)))
		default:
			out.WriteString(strings.TrimPrefix(p.String(), ": ") + "\n") // a problem may have no file
		}
	}
	return out.String()
}

func pathAndMessage(p specs.Problem) string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// problemRecord is a problem in JSON.
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

// otherRules are those that refuse a file before the checks look at it.
func otherRules() []specs.Check {
	return []specs.Check{
		{Name: "path", Doc: "What is named exists, can be read, and has suites."},
		{Name: "parse", Doc: "A file is well-formed YAML or JSON, with plain values."},
		{Name: "suite", Doc: "A file that is named is a unified suite."},
		{Name: "schemaVersion", Doc: "schemaVersion is a version that is known."},
		{Name: "schema", Doc: "A suite fits the JSON schema of its schemaVersion."},
		{Name: "twin", Doc: "The JSON file of the same name has the same values."},
		{Name: "corpus", Doc: "A suite in a folder of invalid ones is invalid."},
	}
}

func listRules() string {
	var b strings.Builder
	for _, r := range append(otherRules(), specs.Checks()...) {
		fmt.Fprintf(&b, "%-22s%-9s%s\n", r.Name, r.Severity, r.Doc)
	}
	return b.String()
}

// The parts of a SARIF log that utr writes (Static Analysis Results Interchange Format
// 2.1.0), as code scanning reads it.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
)

func sarif(problems []specs.Problem, version string) string {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "utr", Version: version, InformationURI: "https://github.com/unified-test-runner/utr"}
	for _, r := range append(otherRules(), specs.Checks()...) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.Name, sarifText{r.Doc}})
	}
	for _, p := range problems {
		found := sarifResult{RuleID: p.Rule, Level: p.Severity.String(), Message: sarifText{pathAndMessage(p)}}
		if p.Position.File != "" {
			var at sarifLocation
			at.PhysicalLocation.ArtifactLocation.URI = (&url.URL{Path: filepath.ToSlash(p.Position.File)}).String()
			if p.Position.Line > 0 {
				at.PhysicalLocation.Region = &sarifRegion{p.Position.Line, max(1, p.Position.Column)}
			}
			found.Locations = []sarifLocation{at}
		}
		run.Results = append(run.Results, found)
	}
	return jsonPage(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
