package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// TAP writes the Test Anything Protocol, version 13: a test point as each test ends, and the
// plan at the end, so that readers detect truncation. Red tests are "not ok" with a YAML block of diagnostics, skipped
// tests SKIP, known-failing tests TODO. Problems of the run and broken cells are additional test points that are "not
// ok". If the run itself broke, the report bails out.
func TAP() Generator {
	t := &tap{}
	return hooks{start: t.start, test: t.verdict, cell: t.cell, finish: t.finish}.generator(&t.Buffer)
}

type tap struct {
	bytes.Buffer
	points int
}

func (t *tap) start(n result.RunStarted) {
	t.WriteString("TAP version 13\n")
	if n.Engine != "" {
		t.comment(n.Engine + ": " + extent(n))
	}
	if n.Seed != nil {
		t.comment(shuffled(n))
	}
}

func (t *tap) cell(n result.CellFinished) {
	if why := ran(n); why != "" {
		t.comment(fmt.Sprintf("cell %s: %s", n.Cell, why))
	}
}

func (t *tap) finish(s result.Summary) {
	for _, p := range s.Problems {
		t.point(false, "utr: "+p, "")
	}
	for _, b := range s.Breaks {
		if b.Cell == "" {
			t.WriteString("Bail out! " + oneLine(b.Reason) + "\n")
		} else {
			t.point(false, "utr: "+b.Subject(), "")
			t.diagnose(&result.Verdict{Status: result.Broken, Reason: b.Reason})
		}
	}
	fmt.Fprintf(t, "1..%d\n", t.points)
}

func (t *tap) comment(text string) { t.WriteString("# " + oneLine(text) + "\n") }

// point writes a test point. It escapes # and \, so that a name is not a directive.
func (t *tap) point(ok bool, what, directive string) {
	t.points++
	if !ok {
		t.WriteString("not ")
	}
	fmt.Fprintf(t, "ok %d - %s", t.points, tapEscape(what))
	if directive != "" {
		t.WriteString(" # " + directive)
	}
	t.WriteByte('\n')
}

func (t *tap) verdict(v *result.Verdict) {
	switch v.Status {
	case result.Skipped:
		t.point(true, title(v.Test), "SKIP "+tapEscape(skipReason(v)))
	case result.KnownFailing:
		t.point(false, title(v.Test), "TODO "+tapEscape(v.Reason))
	case result.Passed:
		t.point(true, title(v.Test), "")
		for _, w := range v.Warnings {
			t.comment("warning: " + w)
		}
	default:
		t.point(false, title(v.Test), "")
		t.diagnose(v)
	}
}

// diagnose writes the YAML block of a red test. All texts are double-quoted on one
// line. Every TAP parser can read that.
func (t *tap) diagnose(v *result.Verdict) {
	line := func(indent int, name, text string) {
		if text != "" {
			fmt.Fprintf(t, "%*s%s: %s\n", indent, "", name, quoted(text))
		}
	}
	t.WriteString("  ---\n")
	severity := string(v.Status)
	if v.Status == result.Failed {
		severity = "fail" // as TAP calls it
	}
	line(2, "severity", severity)
	f := failureOf(v)
	line(2, "message", oneLine(f.Why))
	if p := f.At; !p.IsZero() {
		t.WriteString("  at:\n")
		line(4, "file", p.File)
		fmt.Fprintf(t, "    line: %d\n    column: %d\n", p.Line, p.Column)
	}
	fmt.Fprintf(t, "  duration_ms: %v\n", result.Duration(v.Duration).Milliseconds())
	t.WriteString("  failure:\n")
	for _, l := range f.lines() {
		fmt.Fprintf(t, "    - %s\n", quoted(l))
	}
	line(2, "rerun", f.Rerun)
	t.WriteString("  ...\n")
}

// oneLine puts a text on one line and replaces control characters.
func oneLine(s string) string {
	return strings.Map(visible, joined(s))
}

func tapEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(oneLine(s))
}

// quoted double-quotes a text with the escapes that JSON and YAML share. YAML parsers reject some characters that
// are not printable (YAML 1.2.2, 5.1), and a byte order mark in a text, unless they are escaped.
func quoted(s string) string {
	return strings.NewReplacer("\ufffe", `\ufffe`, "\uffff", `\uffff`, "\ufeff",
		`\ufeff`).Replace(source.Quote(strings.Map(visible, s)))
}
