package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// The page of rules is up to date. specs/testdata/checks.txt has suites that violate
// each of the checks, and suites that do not.
func TestRulesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Rules

This page is for authors of suites: the rules that ` + "`utr validate`" + ` checks. An error makes ` + "`utr run`" + ` refuse the
file. A warning does not; ` + "`--strict`" + ` makes an error of it, and ` + "`--disable RULE`" + ` leaves it out.

<!-- What follows is made by UTR_UPDATE=1 go test -run TestRulesPage ./internal/cli. -->

| rule | severity | what it says |
|---|---|---|
`)
	for _, r := range append(otherRules(), specs.Checks()...) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Name, r.Severity, r.Doc)
	}
	testkit.Golden(t, "../../docs/rules.md", b.String())
}
