package report

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// The limits of a job summary. GitHub Actions accepts 1 MiB.
const (
	markdownCauses = 50
	markdownFault  = 8 << 10 // bytes of one failure
	markdownText   = 2000    // characters of one text
	markdownCells  = 500     // of a matrix
	markdownBytes  = 700_000 // after which failures are omitted
)

// Markdown writes a CI job summary at the end of the run: the counts, the cells of a matrix, 50 causes of failures with
// their first test, mismatches and rerun command, new ones first, the reasons of skipped tests, and the slowest tests.
// Suites and servers cannot add markup.
func Markdown(earlier ...*EarlierRun) Generator {
	m := &markdown{causes: NewCauses(earlier), skips: map[string]int{}, slowest: slowest{limit: slowestTests}}
	return hooks{
		start: func(n result.RunStarted) { m.started = n }, test: m.add,
		cell: func(n result.CellFinished) { m.cells = append(m.cells, n) }, finish: m.write,
	}.generator(&m.out)
}

type markdown struct {
	started result.RunStarted
	causes  *Causes
	skips   map[string]int
	slowest slowest
	cells   []result.CellFinished
	warned  warned
	out     bytes.Buffer
}

func (m *markdown) add(v *result.Verdict) {
	if m.causes.Add(v); v.Status == result.Skipped {
		m.skips[skipReason(v)]++
	}
	m.slowest.add(v)
	m.warned.add(v)
}

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(&m.out, format, args...) }

func (m *markdown) write(s result.Summary) {
	mark := "✘"
	if s.ExitCode() == 0 {
		mark = "✔"
	}
	m.printf("## %s utr: %s\n\n", mark, markdownEscape(headline(s)))
	if m.started.Engine != "" {
		m.printf("%s, %s\n\n", markdownEscape(m.started.Engine), extent(m.started))
	}
	m.counts(s)
	m.out.WriteString(cellMarkdown(m.cells))
	problems, others := first(Faults(s), markdownCauses, false)
	m.items("Problems of the run", problems)
	if others > 0 {
		m.printf("- and %d more\n", others)
	}
	m.explain(m.causes.Sorted())
	m.items("Warnings", m.warned.lines(true))
	m.skipped()
	if len(m.slowest.verdicts) > 0 {
		m.printf("\n### Slowest tests\n\n| time | test |\n| ---: | --- |\n")
		for _, v := range m.slowest.verdicts {
			m.printf("| %s | %s |\n", round(v.Duration), markdownEscape(clip(title(v.Test), markdownText)))
		}
	}
}

// items writes a section with a list, unless the list is empty.
func (m *markdown) items(head string, texts []string) {
	if len(texts) > 0 {
		m.printf("\n### %s\n\n", head)
	}
	for _, text := range texts {
		m.printf("- %s\n", markdownEscape(clip(text, markdownText)))
	}
}

func (m *markdown) counts(s result.Summary) {
	head, row := "", ""
	for _, status := range result.Statuses() {
		head += fmt.Sprintf("| %s ", status)
		row += fmt.Sprintf("| %d ", s.Count(status))
	}
	rule := strings.Repeat("| ---: ", len(result.Statuses())+1)
	m.printf("%s| time |\n%s|\n%s| %s |\n", head, rule, row, round(s.Duration.Round(time.Millisecond)))
}

func (m *markdown) explain(causes []*Cause) {
	if len(causes) > 0 {
		m.printf("\n### What went wrong\n\n%s, %s\n", plural.Of(m.causes.tests, "failure"), plural.Of(len(causes), "cause"))
	}
	for i, c := range causes {
		if i == markdownCauses || m.out.Len() > markdownBytes {
			m.printf("\nand %s in the other reports.\n", plural.Of(len(causes)-i, "more cause"))
			break
		}
		f := c.failure
		f.Rerun = ""
		why := html.EscapeString(clipMiddle(c.Why, briefWidth))
		add(&why, why != "", "<br>")
		m.printf("\n<details open><summary><b>%s</b> %s<br>%s%s</summary>\n", c.Status,
			html.EscapeString(oneLine(clip(c.Name, markdownText))), why, c.Scope())
		m.block("text", shorten(strings.Join(f.lines(), "\n")+"\n", markdownFault))
		if c.Rerun != "" {
			m.block("sh", c.Rerun)
		}
		m.printf("\n</details>\n")
	}
}

// block writes a fenced block. The fence is longer than any in the text.
func (m *markdown) block(language, text string) {
	if text = strings.TrimRight(strings.Map(visible, text), "\n"); text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.printf("\n%s%s\n%s\n%s\n", fence, language, text, fence)
}

func (m *markdown) skipped() {
	if len(m.skips) == 0 {
		return
	}
	m.printf("\n### Skipped\n\n| tests | reason |\n| ---: | --- |\n")
	reasons, others := first(byCount(m.skips), skipReasons, false)
	for _, r := range reasons {
		m.printf("| %d | %s |\n", m.skips[r], markdownEscape(clip(r, markdownText)))
	}
	if others > 0 {
		m.printf("| | and %s |\n", plural.Of(others, "other reason"))
	}
}

// markdownEscape returns a text on one line without markup. It escapes @ so that it notifies nobody.
func markdownEscape(s string) string {
	s = oneLine(s)
	rest := strings.TrimLeft(s, "0123456789")
	escaped := markdownMarkup.Replace(rest)
	if strings.IndexAny(rest, "+-.!():") == 0 { // markup only at the beginning of a line or after its number
		escaped = `\` + escaped
	}
	return s[:len(s)-len(rest)] + escaped
}

var markdownMarkup = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "&#64;", `\`, `\\`, "`", "\\`",
	"*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "#", `\#`, "|", `\|`, "~", `\~`)
