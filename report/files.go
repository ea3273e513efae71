package report

import (
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
	return func(n result.Note) []byte {
		return append(inner(n), f.note(n)...)
	}
}

type fileLines struct {
	timings bool
	open    map[string]*fileCount
}

type fileCount struct {
	left    int // verdicts to come
	summary result.Summary
	took    time.Duration
	wanted  bool // a test was not filtered out
}

func (f *fileLines) note(n result.Note) []byte {
	switch n := n.(type) {
	case result.RunStarted:
		f.open = map[string]*fileCount{}
		if len(n.ByFile) > 1 {
			for file, tests := range n.ByFile {
				f.open[file] = &fileCount{left: tests}
			}
		}
	case result.TestFinished:
		return f.add(n.Verdict)
	}
	return nil
}

func (f *fileLines) add(v *result.Verdict) []byte {
	c := f.open[v.Test.File]
	if c == nil {
		return nil
	}
	c.summary.Add(v)
	c.took += v.Duration
	c.wanted = c.wanted || v.SkipKind != result.SkipFilter
	if c.left--; c.left > 0 {
		return nil
	}
	delete(f.open, v.Test.File)
	if !c.wanted {
		return nil
	}
	t := text{options: TextOptions{Timings: f.timings}}
	t.line(0, "%s: %s%s", strings.ReplaceAll(v.Test.File, "\n", " "),
		counted(c.summary, func(result.Status) bool { return true }), t.took(" (%s)", c.took))
	return t.buffer.Bytes()
}
