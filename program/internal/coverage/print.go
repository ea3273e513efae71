package coverage

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/unified-test-runner/utr/program/internal/report"
)

// Text formats sections for a terminal: things with their number of tests, then those without.
func Text(sections []Section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "%s: %d of %d\n", s.Subject, s.Exercised(), len(s.Rows))
		only := map[string][]string{}
		for _, r := range s.Rows {
			only[r.Kind()] = append(only[r.Kind()], r.Name)
			if r.Kind() == never {
				continue
			}
			fmt.Fprintf(&b, "%8d", r.Tests)
			if r.Against != nil {
				fmt.Fprintf(&b, "%8d", *r.Against)
			}
			fmt.Fprintf(&b, "  %s\n", r.Name)
		}
		for _, kind := range []string{here, there, never} {
			if names := only[kind]; len(names) > 0 {
				fmt.Fprintf(&b, "  %s: %s\n", kind, strings.Join(names, ", "))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

//go:embed page.html
var page string

// HTML writes sections as a self-contained page. Of and against name the suites; against is "" without a comparison.
func HTML(w io.Writer, sections []Section, of, against string) error {
	return report.Documents(page).Execute(w, map[string]any{"Sections": sections, "Of": of, "Against": against})
}

// Exercised is the number of rows that have tests.
func (s Section) Exercised() (n int) {
	for _, r := range s.Rows {
		if r.Tests > 0 {
			n++
		}
	}
	return n
}

// Kinds of rows that are not exercised, or only by one side.
const (
	never = "never"
	here  = "only here"
	there = "only there"
)

// Kind returns "never" if no test exercises the row, "only here" or "only there" if one side does, and "" for
// other rows.
func (r Row) Kind() string {
	against := r.Against != nil && *r.Against > 0
	switch {
	case r.Tests == 0 && against:
		return there
	case r.Tests == 0:
		return never
	case r.Against != nil && !against:
		return here
	}
	return ""
}

// ID returns the anchor of the section.
func (s Section) ID() string { return strings.ReplaceAll(s.Subject, " ", "-") }
