package experiment

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/unified-test-runner/utr/program/internal/report"
)

//go:embed overload.html
var page string

// HTML writes the report as a self-contained page.
func (r *Report) HTML(w io.Writer) error {
	table := r.table()
	return report.Documents(page).Execute(w, map[string]any{
		"Title": r.title(), "Settings": r.set(), "Groups": groups(), "Names": table[0], "Rows": table[1:], "Runs": r.Runs,
		"Plots": template.HTML(r.svg()), // svg escapes all text
	})
}

// groups returns the groups of adjacent columns.
func groups() (all []group) {
	for _, c := range columns {
		if n := len(all); n > 0 && all[n-1].Name == c.group {
			all[n-1].Span++
		} else {
			all = append(all, group{c.group, 1})
		}
	}
	return all
}

// group is columns with a common heading.
type group struct {
	Name string
	Span int
}
