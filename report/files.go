package report

import (
	"bytes"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Files adds a line for each file to a report that goes to a log, when the last
// of its tests has ended, to show how far a run is. It adds none to a run of one
// file, nor for a file whose tests were all filtered out. With timings the line
// says how long the tests of the file took together.
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
	left    int // verdicts to come
	summary result.Summary
	took    time.Duration
	wanted  bool // a test was not filtered out
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
	c.took += v.Duration
	c.wanted = c.wanted || v.SkipKind != result.SkipFilter
	if c.left--; c.left > 0 {
		return
	}
	delete(f.open, v.Test.File)
	if !c.wanted {
		return
	}
	t := text{options: TextOptions{Timings: f.timings}}
	t.line(0, "%s: %s%s", strings.ReplaceAll(v.Test.File, "\n", " "),
		counted(c.summary, func(result.Status) bool { return true }), t.took(" (%s)", c.took))
	f.out.Write(t.buffer.Bytes())
}
