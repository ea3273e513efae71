package report

import (
	"bytes"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// Files adds progress to a report in a log: a line for each file after its last test, with timings also the total
// duration of its tests. It adds no line to a run of one file, nor for a file whose tests were all filtered out.
func Files(inner Generator, timings bool) Generator {
	f := &fileLines{timings: timings}
	lines := hooks{start: f.start, test: f.add}.generator(&f.out)
	return func(n result.Note) []byte { return append(inner(n), lines(n)...) }
}

type fileLines struct {
	timings bool
	open    map[string]*fileCount
	out     bytes.Buffer
}

type fileCount struct {
	left     int // verdicts to come
	summary  result.Summary
	selected bool // a test was not filtered out
}

func (f *fileLines) start(n result.RunStarted) {
	f.open = map[string]*fileCount{}
	if len(n.ByFile) > 1 {
		for file, tests := range n.ByFile {
			f.open[file] = &fileCount{left: tests}
		}
	}
}

func (f *fileLines) add(v *result.Verdict) {
	c := f.open[v.Test.File]
	if c == nil {
		return
	}
	c.summary.Add(v)
	c.summary.Duration += v.Duration
	c.selected = c.selected || v.SkipKind != result.SkipFilter
	if c.left--; c.left > 0 {
		return
	}
	delete(f.open, v.Test.File)
	if !c.selected {
		return
	}
	t := text{options: TextOptions{Timings: f.timings}}
	t.line(0, "%s: %s%s", strings.ReplaceAll(v.Test.File, "\n", " "),
		counted(c.summary, func(result.Status) bool { return true }), t.took(" (%s)", c.summary.Duration))
	f.out.Write(t.buffer.Bytes())
}
