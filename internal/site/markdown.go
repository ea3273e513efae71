package site

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/report"
)

// head is docs/drivers.md up to the first row of its first table.
//
//go:embed head.md
var head string

// Markdown returns docs/drivers.md, which shows the newest release of each driver. It explains every failure, so a red
// test is an error, and so is one that did not run.
func Markdown(r *Report) (string, error) {
	if err := r.explained(); err != nil {
		return "", err
	}
	engines := newest(Engines([]*Report{r}))
	var b strings.Builder
	b.WriteString(head)
	for _, e := range engines {
		for _, t := range e.compared() {
			g := t.newest()
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", e.Name, t.Suites, g.Passed, g.KnownFailing, g.lacking())
		}
	}
	b.WriteString(deviationTable(engines))
	for _, e := range engines {
		different, missing := counts(e.compared(), differs), counts(e.compared(), lacks)
		if len(different)+len(missing) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSpace(e.Name+" "+e.Version))
		table(&b, "does differently", different)
		table(&b, "does not support", missing)
	}
	return b.String(), nil
}

// explained returns an error if a test of the report is red or did not run.
func (r *Report) explained() error {
	if len(r.Groups) == 0 {
		return errors.New("no tests")
	}
	for _, g := range r.Groups {
		if red := g.causes.List(); len(red) > 0 {
			return fmt.Errorf("%s: %s", red[0].Status, red[0].Test)
		}
		if g.ExitCode() != 0 {
			return fmt.Errorf("%s, %s: %s", g.Engine, g.Suites, report.Faults(g.Summary)[0])
		}
	}
	return nil
}

func table(b *strings.Builder, title string, rows []Count) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| tests | %s |\n|---|---|\n", title)
	for _, r := range rows {
		fmt.Fprintf(b, "| %d | %s |\n", r.Tests, strings.ReplaceAll(r.Name, "|", `\|`))
	}
}

// deviationTable returns a table of the suites of specs/deviations and the drivers that differ.
func deviationTable(engines []*Engine) string {
	suites := names(engines, func(e *Engine) []string { return slices.Collect(maps.Keys(e.departs())) })
	if len(suites) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Deviations\n\nThe suites of [deviations.md](driver/deviations.md): a driver does the same as the " +
		"reference engine, *differs* as the text\npermits, or *departs* from the specification.\n\n| suite |")
	for _, e := range engines {
		fmt.Fprintf(&b, " %s |", e.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(engines)) + "\n")
	for _, name := range suites {
		fmt.Fprintf(&b, "| [%s](driver/deviations/%s.md) |", name, name)
		for _, e := range engines {
			fmt.Fprintf(&b, " %s |", e.word(name))
		}
		b.WriteString("\n")
	}
	return b.String()
}
