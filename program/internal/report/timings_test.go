package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
)

// The phases that took any time are shown for the files that took longest, or for all with Verbose.
func TestTimingsByFile(t *testing.T) {
	const ms = result.Duration(time.Millisecond)
	table := func(o report.TextOptions, files int) []string {
		var notes []result.Note
		var s result.Summary
		add := func(file string, status result.Status, spent result.Timings) {
			v := &result.Verdict{Test: result.TestID{File: file, Description: "a"}, Status: status, Timings: spent}
			s.Add(v)
			notes = append(notes, result.TestFinished{Verdict: v})
		}
		for i := range files {
			add(fmt.Sprintf("f%d.yml", i), result.Passed, result.Timings{Setup: ms, Selection: result.Duration(i) * ms})
		}
		add("f1.yml", result.Passed, result.Timings{Cleanup: 50 * ms})
		add("skipped.yml", result.Skipped, result.Timings{})
		text := string(generate(report.Text(o), append(notes, result.RunFinished{Summary: s})))
		_, rows, _ := strings.Cut(text, "clean-up")
		_, rows, _ = strings.Cut(rows, "\n")
		rows, _, _ = strings.Cut(rows, "  slow:")
		return strings.Split(strings.TrimSuffix(rows, "\n"), "\n")
	}
	for _, r := range []struct {
		reason string
		o      report.TextOptions
		files  int
		rows   int
		last   string
	}{
		{"one file", report.TextOptions{Timings: true}, 0, 1, ""},
		{"few files", report.TextOptions{Timings: true}, 3, 4, "1ms 1ms 0s 0s f0.yml"},
		{"many files", report.TextOptions{Timings: true}, 30, 22, "… 10 more files (-v lists all)"},
		{"many files in words", report.TextOptions{Timings: true, Verbose: true}, 30, 31, "1ms 1ms 0s 0s f0.yml"},
	} {
		rows := table(r.o, r.files)
		testkit.Equal(t, r.reason, []any{len(rows), strings.Join(strings.Fields(rows[len(rows)-1]), " ")},
			[]any{r.rows, r.last})
		if r.files == 0 {
			continue
		}
		testkit.Equal(t, r.reason+": the header", rows[0], "        sum     set-up  selection   clean-up  file")
		testkit.Equal(t, r.reason+": the longest", strings.Fields(rows[1])[4], "f1.yml")
	}
}
