package cli

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/specs"
)

// findings formats problems for validate --format.
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
			out.WriteString(strings.TrimPrefix(p.String(), ": ") + "\n") // a problem may have no position
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

// otherRules are the rules for which a file is rejected before the checks of package specs.
func otherRules() []specs.Check {
	return []specs.Check{
		{Name: "path", Doc: "A path exists, is readable, and contains suites."},
		{Name: "parse", Doc: "A file is well-formed YAML or JSON, with plain values."},
		{Name: "suite", Doc: "A file named on the command line is a unified suite."},
		{Name: "schemaVersion", Doc: "schemaVersion is a known version."},
		{Name: "schema", Doc: "A suite conforms to the JSON schema of its schemaVersion."},
		{Name: "twin", Doc: "The JSON file of the same name has the same values."},
		{Name: "corpus", Doc: "A suite in a folder of invalid suites is invalid."},
	}
}

func listRules() string {
	var b strings.Builder
	for _, r := range append(otherRules(), specs.Checks()...) {
		fmt.Fprintf(&b, "%-22s%-9s%s\n", r.Name, r.Severity, r.Doc)
	}
	return b.String()
}

// The parts of a SARIF log (Static Analysis Results Interchange Format 2.1.0) that code scanning reads.
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
