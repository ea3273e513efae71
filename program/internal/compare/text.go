package compare

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// Describe lists the differences of a pair: the lines of both sides, and a diff of events.
func (p Pair) Describe(left, right string) string {
	var b strings.Builder
	for _, d := range p.Differences {
		where := d.Aspect
		if d.Where != "" {
			where += " " + d.Where
		}
		if d.Aspect != "events" {
			fmt.Fprintf(&b, "  %s\n    %s: %s\n    %s: %s\n", where, left, d.Left, right, d.Right)
			continue
		}
		fmt.Fprintf(&b, "  %s (- %s, + %s)\n", where, left, right)
		for _, line := range strings.Split(strings.TrimRight(diff(d.Left, d.Right), "\n"), "\n") {
			b.WriteString("    " + line + "\n")
		}
	}
	return b.String()
}

// diff returns all lines of two logs and marks the lines of only one.
func diff(left, right string) string {
	a, b := strings.Split(left, "\n"), strings.Split(right, "\n")
	common := make([][]int, len(a)+1) // lines in the longest sequence that a[i:] and b[j:] have in common
	for i := len(a); i >= 0; i-- {
		common[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0 && i < len(a); j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out.WriteString("  " + a[i] + "\n")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out.WriteString("- " + a[i] + "\n")
			i++
		default:
			out.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return out.String()
}

// Kind is the result of a comparison.
type Kind int

// The kinds, in the order of reports.
const (
	Same Kind = iota
	Different
	Explained // by a deviation, or as a known failure
	NotCompared
)

// Kind returns the result of comparing the pair.
func (p Pair) Kind() Kind {
	switch {
	case p.NotCompared != "":
		return NotCompared
	case p.Known != "" || p.Deviation != nil:
		return Explained
	case len(p.Differences) == 0:
		return Same
	}
	return Different
}

// Counts are numbers of pairs, by kind.
type Counts [NotCompared + 1]int

// Count counts pairs.
func Count(pairs []Pair) (c Counts) {
	for _, p := range pairs {
		c[p.Kind()]++
	}
	return c
}

// String is the last line of a report.
func (c Counts) String() string {
	return fmt.Sprintf("%d same, %d different, %d explained, %d not compared", c[Same], c[Different], c[Explained],
		c[NotCompared])
}

//go:embed deviations.md
var markdownText string

// Markdown returns the text of docs/driver/deviations.md.
func Markdown() string {
	page := template.Must(template.New("").Funcs(template.FuncMap{"differs": Deviation.of}).Parse(markdownText))
	var b strings.Builder
	about := map[string]any{"Engines": tested(), "Deviations": Deviations()}
	if err := page.Execute(&b, about); err != nil {
		panic(err) // the template and its data are embedded
	}
	return b.String()
}
