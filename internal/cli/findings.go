package cli

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/specs"
)

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

// sarif formats problems as a SARIF log (Static Analysis Results Interchange Format 2.1.0) for code scanning.
func sarif(problems []specs.Problem, version string) string {
	type object = map[string]any
	rules := mapSlice(append(otherRules(), specs.Checks()...), func(r specs.Check) object {
		return object{"id": r.Name, "shortDescription": object{"text": r.Doc}}
	})
	results := []object{}
	for _, p := range problems {
		found := object{"ruleId": p.Rule, "level": p.Severity.String(), "message": object{"text": pathAndMessage(p)}}
		if p.Position.File != "" {
			uri := (&url.URL{Path: filepath.ToSlash(p.Position.File)}).String()
			at := object{"artifactLocation": object{"uri": uri}}
			if p.Position.Line > 0 {
				at["region"] = object{"startLine": p.Position.Line, "startColumn": max(1, p.Position.Column)}
			}
			found["locations"] = []object{{"physicalLocation": at}}
		}
		results = append(results, found)
	}
	tool := object{"driver": object{"name": "utr", "version": version, "rules": rules,
		"informationUri": "https://github.com/unified-test-runner/utr"}}
	return jsonPage(object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": tool, "columnKind": "unicodeCodePoints", "results": results}}})
}
