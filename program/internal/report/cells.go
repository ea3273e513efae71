package report

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// Cells adds a table of cells and their total before the summary of a report. Without cells it adds nothing. Of many
// cells, it has only some red ones unless all is set.
func Cells(inner Generator, all bool) Generator {
	var cells []result.CellFinished
	return func(n result.Note) []byte {
		switch n := n.(type) {
		case result.CellFinished:
			cells = append(cells, n)
		case result.RunFinished:
			table, text := cellText(cells, n.Summary, all), inner(n)
			if bytes.HasPrefix(text, []byte("\n")) {
				table = bytes.TrimSuffix(table, []byte("\n"))
			}
			return append(table, text...)
		}
		return inner(n)
	}
}

var cellHead = []string{"cell", "passed", "failed", "broken", "skipped", "known", "flaky", "time", ""}

func cellRow(name string, s result.Summary, remark string) []string {
	row := []string{name}
	for _, n := range []int{s.Passed, s.Failed, s.Broken, s.Skipped, s.KnownFailing, s.Flaky} {
		row = append(row, fmt.Sprint(n))
	}
	return append(row, round(s.Duration).String(), remark)
}

// remark is the last column of a cell.
func remark(c result.CellFinished) string {
	s, problems := "", len(c.Summary.Problems)
	add(&s, c.Broken != "", "; %s", c.Broken)
	add(&s, problems > 0, "; %s", plural.Of(problems, "problem"))
	add(&s, ran(c) != "", "; %s", ran(c))
	return strings.TrimPrefix(s, "; ")
}

// ran says that a cell ran no test, or that it ran earlier. It is "" for other cells.
func ran(c result.CellFinished) (s string) {
	add(&s, sign(c) == "–", "; no test ran")
	add(&s, !c.KeptFrom.IsZero(), "; %s", keptFrom(c))
	return strings.TrimPrefix(s, "; ")
}

// keptFrom names the earlier run that a kept cell comes from.
func keptFrom(c result.CellFinished) string {
	return "kept from an earlier run at " + c.KeptFrom.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// sign is the sign of a cell: red if it makes its matrix red, neutral if no test ran.
func sign(c result.CellFinished) string {
	s := c.Summary
	switch {
	case c.Broken != "" || s.ExitCode() != 0:
		return "✘"
	case s.Passed+s.KnownFailing == 0:
		return "–"
	}
	return "✔"
}

// manyCells are too many for a table on a terminal. It then has shownCells red ones.
const manyCells, shownCells = 12, 6

// cellText returns the table for a terminal.
func cellText(cells []result.CellFinished, sum result.Summary, all bool) []byte {
	if len(cells) == 0 {
		return nil
	}
	shown := cells
	if len(cells) > manyCells && !all {
		shown = slices.DeleteFunc(slices.Clone(cells), func(c result.CellFinished) bool { return sign(c) != "✘" })
		shown = shown[:min(len(shown), shownCells)]
	}
	rows := [][]string{cellHead}
	for _, c := range shown {
		rows = append(rows, cellRow(sign(c)+" "+c.Cell, c.Summary, oneLine(remark(c))))
	}
	rows = append(rows, cellRow("total", sum, ""))
	last := len(rows[0]) - 1
	width := make([]int, last)
	for _, row := range rows {
		for i, word := range row[:last] {
			width[i] = max(width[i], utf8.RuneCountInString(word))
		}
	}
	var t text
	t.buffer.WriteByte('\n')
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, word := range row[1:last] {
			line += fmt.Sprintf("  %*s", width[i+1], word)
		}
		t.line(0, "%s  %s", line, row[last])
	}
	if n := len(cells) - len(shown); n > 0 {
		t.line(0, "… %s (-v shows all)", plural.Of(n, "more cell"))
	}
	t.buffer.WriteByte('\n')
	return t.buffer.Bytes()
}

// cellMarkdown returns the table for a CI job summary.
func cellMarkdown(cells []result.CellFinished) string {
	if len(cells) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n### Cells\n\n| " + strings.Join(cellHead, " | ") + "|\n| --- " + strings.Repeat("| ---: ",
		len(cellHead)-2) + "| --- |\n")
	for i, c := range cells {
		if i == markdownCells {
			fmt.Fprintf(&b, "\nand %s more in the other reports.\n", plural.Of(len(cells)-i, "cell"))
			break
		}
		row := cellRow(sign(c)+" "+markdownEscape(clip(c.Cell, markdownText)), c.Summary,
			markdownEscape(clip(remark(c), briefWidth)))
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// cellSums are the cells of verdicts, in the order of their first verdicts.
type cellSums struct {
	order []string
	of    map[string]*cellSum
}

// cellSum is a cell whose Summary.Duration is the sum of its runs, 0 if unknown.
type cellSum struct {
	result.CellFinished
	tests time.Duration // sum of its tests
}

func (c *cellSums) cell(name string) *cellSum {
	if c.of[name] == nil {
		c.of[name] = &cellSum{CellFinished: result.CellFinished{Cell: name}}
		c.order = append(c.order, name)
	}
	return c.of[name]
}

func (c *cellSums) add(v *result.Verdict) {
	if v.Test.Cell != "" {
		sum := c.cell(v.Test.Cell)
		sum.Summary.Add(v)
		sum.tests += v.Duration
	}
}

// addRun adds the run of a report. p.Run is not nil.
func (c *cellSums) addRun(p *SavedRun) {
	for name, engine := range p.Run.Engines {
		c.cell(name).Engine = engine
	}
	for name, began := range p.Run.Kept {
		if sum := c.cell(name); sum.KeptFrom.IsZero() || began.Before(sum.KeptFrom) {
			sum.KeptFrom = began
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Run.Cells)) {
		c.cell(name).Summary.Duration += time.Duration(p.Run.Cells[name])
	}
	if p.Cell != "" {
		c.cell(p.Cell).Engine = p.Run.Engine
		s := &c.cell(p.Cell).Summary
		s.Duration += time.Duration(p.Run.Duration)
		s.Interrupted = s.Interrupted || p.Run.Interrupted
		s.Problems = append(s.Problems, p.Run.Problems...)
	}
}

func (c *cellSums) notes() (notes []result.Note) {
	for _, name := range c.order {
		sum := c.of[name]
		sum.Summary.Duration = cmp.Or(sum.Summary.Duration, sum.tests)
		notes = append(notes, sum.CellFinished)
	}
	return notes
}

// CellLine summarizes a cell in one line.
func CellLine(c result.CellFinished) string {
	line := fmt.Sprintf("%s %s: %s in %s", sign(c), c.Cell, headline(c.Summary), round(c.Summary.Duration))
	if why := strings.Trim(c.Engine+"; "+remark(c), "; "); why != "" {
		line += " (" + oneLine(why) + ")"
	}
	return strings.Map(visible, line)
}
