package report

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/unified-test-runner/utr/result"
)

// Cells adds to a report for people what matters first where a run has several
// cells: a table of them with a total, before the closing words. Without cells
// it adds nothing.
func Cells(inner Generator) Generator {
	var table cellTable
	return func(n result.Note) []byte {
		switch n := n.(type) {
		case result.CellFinished:
			table.add(n)
		case result.RunFinished:
			return append(table.text(n.Summary), inner(n)...)
		}
		return inner(n)
	}
}

// cellTable collects how cells went, in the order in which they were told.
type cellTable struct{ cells []result.CellFinished }

func (t *cellTable) add(n result.CellFinished) { t.cells = append(t.cells, n) }

// cellNumbers are the numbers of a row, in the order of cellHeads.
func cellNumbers(s result.Summary) []string {
	row := []string{}
	for _, n := range []int{s.Passed, s.Failed, s.Broken, s.Skipped, s.KnownFailing, s.Flaky} {
		row = append(row, fmt.Sprint(n))
	}
	return append(row, round(s.Duration).String())
}

func cellHeads() []string {
	return []string{"passed", "failed", "broken", "skipped", "known", "flaky", "time"}
}

// remark says what a row of numbers does not.
func remark(c result.CellFinished) string {
	var all []string
	if c.Broken != "" {
		all = append(all, c.Broken)
	}
	if sign(c) == "–" {
		all = append(all, "no test ran")
	}
	if n := len(c.Summary.Problems); n > 0 {
		all = append(all, plural(n, "problem"))
	}
	if !c.Kept.IsZero() {
		all = append(all, keptFrom(c))
	}
	return strings.Join(all, "; ")
}

// keptFrom says from when the result of a cell is that was not run now.
func keptFrom(c result.CellFinished) string {
	return "kept from an earlier run, of " + c.Kept.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// sign shows how a cell went: red if it makes its matrix red, and not green if no
// test ran in it.
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

// text is the table for a terminal.
func (t *cellTable) text(all result.Summary) []byte {
	if len(t.cells) == 0 {
		return nil
	}
	rows := [][]string{append(append([]string{"cell"}, cellHeads()...), "")}
	for _, c := range t.cells {
		rows = append(rows, append(append([]string{sign(c) + " " + c.Cell}, cellNumbers(c.Summary)...), remark(c)))
	}
	rows = append(rows, append(append([]string{"total"}, cellNumbers(all)...), ""))
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, word := range row {
			width[i] = max(width[i], utf8.RuneCountInString(word))
		}
	}
	var out bytes.Buffer
	out.WriteByte('\n')
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i := 1; i < len(row)-1; i++ {
			line += fmt.Sprintf("  %*s", width[i], row[i])
		}
		line = strings.TrimRight(line+"  "+oneLine(row[len(row)-1]), " ")
		out.WriteString(strings.Map(visible, line) + "\n")
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// markdown is the table for the page of a CI job.
func (t *cellTable) markdown() string {
	if len(t.cells) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n### Cells\n\n| cell | " + strings.Join(cellHeads(), " | ") + " | |\n| --- " + strings.Repeat("| ---: ", len(cellHeads())) + "| --- |\n")
	for i, c := range t.cells {
		if i == markdownCells {
			fmt.Fprintf(&b, "\nand %s more, which the other reports have.\n", plural(len(t.cells)-i, "cell"))
			break
		}
		fmt.Fprintf(&b, "| %s %s | %s | %s |\n", sign(c), markdownEscape(clip(c.Cell, markdownText)), strings.Join(cellNumbers(c.Summary), " | "), markdownEscape(clip(remark(c), briefWidth)))
	}
	return b.String()
}

// cellSums adds up cells from their verdicts, in the order of their first ones.
type cellSums struct {
	order []string
	of    map[string]*cellSum
}

type cellSum struct {
	summary result.Summary
	tests   time.Duration // all its tests
	runs    time.Duration // its runs, where reports tell it
	kept    time.Time     // when it began, if that was before the run told of
}

func (c *cellSums) cell(name string) *cellSum {
	if c.of == nil {
		c.of = map[string]*cellSum{}
	}
	if c.of[name] == nil {
		c.of[name] = &cellSum{}
		c.order = append(c.order, name)
	}
	return c.of[name]
}

func (c *cellSums) add(v *result.Verdict) {
	if v.Test.Cell != "" {
		sum := c.cell(v.Test.Cell)
		sum.summary.Add(v)
		sum.tests += v.Duration
	}
}

// took notes what the report of one cell, or of a shard of it, says of its run.
func (c *cellSums) took(p *Past) {
	for name, began := range p.Run.Kept {
		if sum := c.cell(name); sum.kept.IsZero() || began.Before(sum.kept) {
			sum.kept = began
		}
	}
	if p.Cell != "" {
		sum := c.cell(p.Cell)
		sum.runs += p.Run.Duration
		sum.summary.Interrupted = sum.summary.Interrupted || p.Run.Interrupted
		sum.summary.Problems = append(sum.summary.Problems, p.Run.Problems...)
	}
}

func (c *cellSums) notes() (notes []result.Note) {
	for _, name := range c.order {
		sum := c.of[name]
		sum.summary.Duration = sum.tests
		if sum.runs > 0 {
			sum.summary.Duration = sum.runs
		}
		notes = append(notes, result.CellFinished{Cell: name, Summary: sum.summary, Kept: sum.kept})
	}
	return notes
}

// CellLine tells in one line how a cell went.
func CellLine(c result.CellFinished) string {
	line := fmt.Sprintf("%s %s: %s in %s", sign(c), c.Cell, headline(c.Summary), round(c.Summary.Duration))
	if why := remark(c); why != "" {
		line += " (" + oneLine(why) + ")"
	}
	return strings.Map(visible, line)
}
