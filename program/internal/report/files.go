package report

import (
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// Files adds progress to a report in a log: a line for each file after its last test, with timings also the total
// duration of its tests. It adds no line to a run of one file, nor for a file whose tests were all filtered out.
func Files(inner Generator, timings bool) Generator {
	open := map[string]*fileCount{}
	t := &text{options: TextOptions{Timings: timings}}
	lines := hooks{
		start: func(n result.RunStarted) {
			for file, tests := range n.ByFile {
				if len(n.ByFile) > 1 {
					open[file] = &fileCount{left: tests}
				}
			}
		},
		test: func(v *result.Verdict) {
			c := open[v.Test.File]
			if c == nil {
				return
			}
			c.Add(v)
			c.Duration += v.Duration
			c.selected = c.selected || !v.NotRun()
			if c.left--; c.left == 0 && c.selected {
				t.line(0, "%s: %s%s", strings.ReplaceAll(v.Test.File, "\n", " "),
					counted(c.Summary, func(result.Status) bool { return true }), t.took(" (%s)", c.Duration))
			}
		},
	}.generator(&t.buffer)
	return func(n result.Note) []byte { return append(inner(n), lines(n)...) }
}

// fileCount counts the verdicts of a file.
type fileCount struct {
	result.Summary
	left     int  // verdicts to come
	selected bool // a test was not filtered out
}
