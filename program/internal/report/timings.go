package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/result"
)

// timedFiles is the number of files that a table of timings has without Verbose.
const timedFiles = 20

func (t *text) addTimings(v *result.Verdict) {
	if t.byFile == nil {
		return
	}
	if t.byFile[v.Test.File] == nil {
		t.byFile[v.Test.File] = new(result.Timings)
	}
	t.byFile[v.Test.File].Add(v.Timings)
}

// timings lists totals by phase. They are sums over all tests, so with several jobs they exceed the duration of the
// run. If there are several files, a table follows.
func (t *text) timings(s result.Summary) {
	sum := s.Timings.Sum()
	line := fmt.Sprintf("time: %s on the clock, %s over all tests", round(s.Duration), round(time.Duration(sum)))
	add(&line, s.CPU > 0, " (CPU %s, waiting %s)", round(s.CPU), round(s.Waiting()))
	t.line(0, "%s", line)
	for _, p := range s.Timings.Phases() {
		t.line(2, "%-10s %10s %5.1f %%", p.Name, round(time.Duration(*p.Took)), 100*float64(*p.Took)/float64(max(sum, 1)))
	}
	if len(t.byFile) > 1 {
		t.fileTimings(s.Timings)
	}
}

// fileTimings lists the phases that took any time by file, the longest first.
func (t *text) fileTimings(total result.Timings) {
	files := slices.SortedFunc(maps.Keys(t.byFile), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.byFile[b].Sum(), t.byFile[a].Sum()), cmp.Compare(a, b))
	})
	row := func(sum, file string, cell func(i int) string) {
		var line strings.Builder
		for i, p := range total.Phases() {
			if *p.Took > 0 {
				fmt.Fprintf(&line, " %10s", cell(i))
			}
		}
		t.line(1, "%10s%s  %s", sum, line.String(), file)
	}
	row("sum", "file", func(i int) string { return total.Phases()[i].Name })
	shown, others := first(files, timedFiles, t.options.Verbose)
	for _, file := range shown {
		of := t.byFile[file]
		row(round(time.Duration(of.Sum())).String(), file,
			func(i int) string { return round(time.Duration(*of.Phases()[i].Took)).String() })
	}
	if others > 0 {
		t.line(2, "… %s (-v lists all)", plural.Of(others, "more file"))
	}
}
