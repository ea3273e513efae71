package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// failure is what every report says first about a red test: what broke, where, why, and how to run it again.
type failure struct {
	Status     result.Status
	Name       string
	At         result.Position // of the first mismatch, or of the test
	Why        string          // in one line
	Reason     string
	Mismatches []result.Mismatch // the first ones, without those that others show
	Gap        result.Gap        // in Mismatches, if they are all
	More       int               // other mismatches
	Operations []string          // that led to it, each with its outcome
	Warnings   []string
	Since      string // when it began to fail, if earlier runs are given
	Rerun      string
	On         string // the cell of a matrix, otherwise the deployment
	InCell     bool
}

// The limits of a failure; -v and the JSON report have everything.
const (
	shownMismatches = 3
	shownOperations = 3
	shownRows       = 8  // of a list
	shownDiff       = 20 // lines
	shownReason     = 8  // lines
)

func failureOf(v *result.Verdict) failure {
	f := failure{Status: v.Status, Name: title(v.Test), At: v.Position, Why: oneLine(clipMiddle(v.Reason, causeWidth)),
		Reason: v.Reason, Warnings: v.Warnings,
		On: cmp.Or(v.Test.Cell, v.Test.Deployment), InCell: v.Test.Cell != ""}
	for _, m := range v.Mismatches {
		if !m.Position.IsZero() {
			f.At = m.Position
			break
		}
	}
	all := telling(v.Mismatches)
	f.Mismatches = all[:min(len(all), shownMismatches)]
	f.More = len(all) - len(f.Mismatches) + v.OmittedMismatches.Count
	if len(all) > 0 && (v.Status != result.Broken || v.Reason == "") {
		f.Why = whyOf(all[0])
	}
	f.Operations = leadingTo(v, all)
	if len(v.Rerun) > 0 {
		f.Rerun = Quote(v.Rerun)
	}
	return f
}

// telling returns the mismatches that say something new: not those below one with a difference, and not the missing
// and unexpected items of a list that has rows.
func telling(all []result.Mismatch) []result.Mismatch {
	return slices.DeleteFunc(slices.Clone(all), func(m result.Mismatch) bool {
		return slices.ContainsFunc(all, func(other result.Mismatch) bool {
			rest, below := strings.CutPrefix(m.Path, other.Path)
			switch {
			case !below:
				return false
			case other.List != nil && m.List == nil:
				return itemPath.MatchString(rest)
			}
			return other.Diff != "" && rest != "" && strings.ContainsAny(rest[:1], ".[")
		})
	})
}

// itemPath is the path of an item in its list.
var itemPath = regexp.MustCompile(`^(\[\d+\])?$`)

// whyOf returns a mismatch in one line.
func whyOf(m result.Mismatch) string {
	if s := eventsDiffer(m); s != "" {
		return oneLine(s)
	}
	s := clip(strings.TrimPrefix(m.Path+": "+m.Message, ": "), causeWidth)
	row := firstDifference(m.List)
	switch {
	case m.Want != "" || m.Got != "":
		add(&s, true, ", want %s, got %s", clip(cmp.Or(m.Want, nothing), whyWidth), clip(cmp.Or(m.Got, nothing), whyWidth))
	case row.Got == "" && row.Want != "":
		add(&s, true, ": no %s", clip(row.Want, whyWidth))
	case row.Got != "":
		add(&s, true, ": unexpected %s", clip(row.Got, whyWidth))
	}
	return oneLine(s)
}

// eventsDiffer describes a mismatch of two events of different types without their content, such as a reply. It is ""
// for other mismatches.
func eventsDiffer(m result.Mismatch) string {
	row := firstDifference(m.List)
	want, wanted, _ := strings.Cut(row.Want, " ")
	got, observed, _ := strings.Cut(row.Got, " ")
	if want == got || result.EventType(want).Monitor() == "" || result.EventType(got).Monitor() == "" {
		return ""
	}
	if wanted != observed {
		return fmt.Sprintf("want %s, got %s at %s", row.Want, row.Got, m.Path)
	}
	s := fmt.Sprintf("want %s, got %s", want, got)
	add(&s, observed != "", " (%s)", observed)
	return s + " at " + m.Path
}

// The limits of a value in a line, and of a reason in one line, in characters.
const whyWidth, causeWidth = 120, 600

func firstDifference(l *result.List) result.Row {
	if l == nil {
		return result.Row{}
	}
	i := slices.IndexFunc(l.Rows, func(r result.Row) bool { return r.Differs })
	if i < 0 {
		return result.Row{}
	}
	return l.Rows[i]
}

// leadingTo returns the operation that the first mismatch is about, or else the last ones.
func leadingTo(v *result.Verdict, mismatches []result.Mismatch) (lines []string) {
	operations := v.Operations
	if len(mismatches) > 0 && strings.HasPrefix(mismatches[0].Path, "operations") {
		at := mismatches[0].Position
		var its *result.OperationLog
		for i := range operations {
			if o := &operations[i]; o.Position.Compare(at) <= 0 && (its == nil || its.Position.Compare(o.Position) <= 0) {
				its = o
			}
		}
		if operations = nil; its != nil {
			operations = []result.OperationLog{*its}
		}
	}
	for _, o := range operations[max(0, len(operations)-shownOperations):] {
		line := o.Name + " on " + o.Object + " → " + cmp.Or(outcomeLine(o), "no result")
		add(&line, len(o.Decisions) > 0 && attempts(o) > 1, " (%s)", plural.Of(attempts(o), "attempt"))
		lines = append(lines, line)
	}
	return lines
}

func attempts(o result.OperationLog) (n int) {
	for _, d := range o.Decisions {
		n = max(n, d.Attempt)
	}
	return n
}

// lines returns the failure without its headline. A mark in the first column of a line, "-" or "+", is for colors.
func (f *failure) lines() []string {
	t := &text{}
	t.failure(f)
	return strings.Split(strings.TrimSuffix(t.buffer.String(), "\n"), "\n")
}

// failure writes a failure without its headline.
func (t *text) failure(f *failure) {
	if f.Reason != "" {
		t.clipped(2, f.Reason, shownReason)
	}
	if len(f.Mismatches) == 0 && !f.At.IsZero() {
		t.line(2, "%s", f.At)
	}
	withGap(t, 2, f.Mismatches, f.Gap, "mismatch", t.mismatch)
	if f.More > 0 {
		t.line(2, "… %s (-v shows all)", plural.Of(f.More, "more mismatch"))
	}
	for _, o := range f.Operations {
		t.line(2, "operation %s", o)
	}
	for _, w := range f.Warnings {
		t.line(2, "warning: %s", w)
	}
	if f.Since != "" {
		t.line(2, "%s", f.Since)
	}
	if f.Rerun != "" {
		t.line(2, "rerun: %s", f.Rerun)
	}
}

// mismatch writes a mismatch, with what differs marked.
func (t *text) mismatch(m result.Mismatch) {
	about := cmp.Or(eventsDiffer(m), strings.TrimPrefix(m.Path+": "+m.Message, ": "))
	t.line(2, "%s", strings.TrimSpace(m.Position.String()+"  "+about))
	switch {
	case m.Diff != "":
		lines := strings.Split(m.Diff, "\n")
		if !t.options.Verbose && len(lines) > shownDiff {
			first := max(0, slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(l, " ") }))
			from := max(0, min(first-shownDiff/4, len(lines)-shownDiff))
			lines = slices.Concat(lines[from:from+shownDiff], []string{fmt.Sprintf("  … %d more lines", len(lines)-shownDiff)})
		}
		for _, l := range lines {
			t.marked(l[:min(1, len(l))], cut(l, briefWidth))
		}
	case m.Want != "" || m.Got != "":
		t.marked("-", "- want "+cut(cmp.Or(m.Want, nothing), briefWidth))
		t.marked("+", "+ got  "+cut(cmp.Or(m.Got, nothing), briefWidth))
	}
	if m.List != nil {
		t.rows(m.List)
	}
}

// rows writes what was observed beside what was expected, around the first difference.
func (t *text) rows(l *result.List) {
	first := max(0, slices.IndexFunc(l.Rows, func(r result.Row) bool { return r.Differs }))
	rows := l.Rows
	if from := max(0, min(first-shownRows/2, len(rows)-shownRows)); !t.options.Verbose && len(rows) > shownRows {
		rows, first = rows[from:from+shownRows], first-from
	}
	const column = 44
	width := len("expected")
	for _, r := range rows {
		width = max(width, min(column, len([]rune(cmp.Or(r.Want, nothing)))))
	}
	t.line(4, "%s", l.Name)
	t.line(4, "    %-*s   observed", width, "expected")
	for i, r := range rows {
		sign := " "
		switch {
		case !r.Differs:
		case r.Got == "":
			sign = "-"
		case r.Want == "":
			sign = "+"
		default:
			sign = "!"
		}
		arrow := " "
		if r.Differs && i == first {
			arrow = ">"
		}
		t.marked(sign, fmt.Sprintf("%s %s %-*s   %s", arrow, sign, width, clip(cmp.Or(r.Want, nothing), column),
			clip(cmp.Or(r.Got, nothing), 2*column)))
	}
	if n := len(l.Rows) - len(rows); n > 0 {
		t.line(4, "    … %d more (-v shows them)", n)
	}
}

// clipped writes at most so many lines of a text, the first and the last, all if verbose.
func (t *text) clipped(indent int, s string, most int) {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = cut(l, briefWidth)
	}
	if n := len(lines) - most; n > 0 && !t.options.Verbose {
		gap := fmt.Sprintf("… %s (-v shows them)", plural.Of(n, "more line"))
		lines = slices.Concat(lines[:most/2], []string{gap}, lines[len(lines)-most/2:])
	}
	for _, l := range lines {
		t.line(indent, "%s", l)
	}
}

// marks are the SGR parameters of marked lines.
var marks = map[string]int{"-": 31, "+": 32, "!": 33}

// marked writes an indented line, in color if it has a mark.
func (t *text) marked(mark, line string) {
	color := marks[mark]
	if !t.options.Color || color == 0 {
		t.line(4, "%s", line)
		return
	}
	before := t.buffer.Len()
	t.line(4, "%s", line)
	written := strings.TrimSuffix(t.buffer.String()[before:], "\n")
	t.buffer.Truncate(before)
	fmt.Fprintf(&t.buffer, "\x1b[%dm%s\x1b[0m\n", color, written)
}
