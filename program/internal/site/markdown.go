package site

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/program/internal/report"
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
	var columns []string
	for _, e := range engines {
		columns = append(columns, e.Name)
	}
	return bySuite("\n## Deviations\n\nThe suites of [deviations.md](driver/deviations.md): a driver does the same as the "+
		"reference engine, *differs* as the\ntext permits, or *departs* from the specification.\n", "driver/deviations/",
		engines, columns, func(i int, suite string) string { return engines[i].word(suite) })
}

// bySuite returns a section with a table of the suites of specs/deviations that the engines ran, "" without any. folder
// has the pages of the suites. cell returns the text for a column.
func bySuite(head, folder string, engines []*Engine, columns []string, cell func(column int, suite string) string) string {
	suites := names(engines, func(e *Engine) []string { return slices.Collect(maps.Keys(e.departs())) })
	if len(suites) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(head + "\n| suite | " + strings.Join(columns, " | ") + " |\n|---|" +
		strings.Repeat("---|", len(columns)) + "\n")
	for _, suite := range suites {
		fmt.Fprintf(&b, "| [%s](%s%s.md) |", suite, folder, suite)
		for i := range columns {
			fmt.Fprintf(&b, " %s |", cell(i, suite))
		}
		b.WriteString("\n")
	}
	return b.String()
}
