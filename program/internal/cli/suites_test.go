package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// A mutant that passes is printed with its position and fails the audit. Here it is a suite without a change.
func TestSurvivingMutant(t *testing.T) {
	b := realBench(t)
	lender, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.Single}})
	testkit.Check(t, err)
	defer func() { _ = lender.Close() }()
	e, err := reference.New(reference.Options{})
	testkit.Check(t, err)
	defer func() { _ = e.Close() }()
	loaded, err := specs.Parse("suite.yml", []byte(suite))
	testkit.Check(t, err)
	suites := []*specs.Suite{loaded}
	rec, _, err := runner.Record(t.Context(), suites, runner.Config{Engine: e, Source: lender})
	testkit.Check(t, err)
	var all []mutant
	for id, at := range rec.Passed {
		if id.Description == "second" {
			same := *suites[0]
			same.Tests = same.Tests[1:]
			at.Line++
			all = append(all, mutant{audit.Mutant{Path: "operations[0]",
				Position: source.Position{File: "suite.yml", Line: at.Line, Column: 5},
				Change:   "nothing was changed"}, &same, id})
		}
	}
	c := &invocation{program: &b.Program, secrets: redactor{secret.NewKeeper()}}
	a := &auditing{invalid: 1}
	err = a.judge(t.Context(), c, rec, all, map[string]int{"a rule": 2})
	testkit.Equal(t, "the exit code", codeOf(err), ExitFailed)
	testkit.Equal(t, "the output", b.out.String(), `suite.yml:13:5: passed second: operations[0]: nothing was changed
2 tests: 2 mutants, 1 failed (1 of them as invalid suites), 1 passed
  not changed in 2 places: a rule
`)
}

// docs/suite/rules.md is up to date. specs/testdata/checks.txt has suites that violate each rule, and others.
func TestRulesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Rules

This page is for authors of suites: the rules that ` + "`utr validate` and `utr check`" + ` check. ` + "`utr run`" + `
rejects a file with an error, but not one with a warning. ` + "`--strict`" + ` turns warnings into errors, and ` + "`--disable RULE`" + `
suppresses a warning.

<!-- What follows is made by UTR_UPDATE=1 go test -run TestRulesPage ./program/internal/cli. -->

| rule | severity | what it says |
|---|---|---|
`)
	for _, r := range append(otherRules(), specs.Checks()...) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Name, r.Severity, r.Doc)
	}
	b.WriteString(failPointTables())
	testkit.Golden(t, "../../../docs/suite/rules.md", b.String())
}
