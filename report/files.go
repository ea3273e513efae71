package report

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Files adds a line for each file to a report that goes to a log, when the
// last of its tests has ended, so that one sees how far a run is. There is none
// for a run of one file, nor for a file of which no test was wanted. timings
// says whether it tells how long the tests of the file took, all together.
func Files(inner Generator, timings bool) Generator {
	f := &fileLines{timings: timings, open: map[string]*fileCount{}}
	return func(n result.Note) []byte {
		return append(inner(n), f.note(n)...)
	}
}

type fileLines struct {
	timings bool
	left    map[string]int // verdicts to come
	open    map[string]*fileCount
}

type fileCount struct {
	summary result.Summary
	took    time.Duration
	wanted  bool
}

func (f *fileLines) note(n result.Note) []byte {
	switch n := n.(type) {
	case result.RunStarted:
		f.left = map[string]int{}
		if len(n.ByFile) > 1 {
			for file, tests := range n.ByFile {
				f.left[file] = tests
			}
		}
	case result.TestFinished:
		return f.add(n.Verdict)
	}
	return nil
}

func (f *fileLines) add(v *result.Verdict) []byte {
	file := v.Test.File
	if f.left[file] == 0 {
		return nil
	}
	c := f.open[file]
	if c == nil {
		c = &fileCount{}
		f.open[file] = c
	}
	c.summary.Add(v)
	c.took += v.Duration
	c.wanted = c.wanted || v.SkipKind != result.SkipFilter
	if f.left[file]--; f.left[file] > 0 {
		return nil
	}
	delete(f.left, file)
	delete(f.open, file)
	if !c.wanted {
		return nil
	}
	var parts []string
	for _, s := range c.summary.Counts() {
		if s.Tests > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.Tests, s.Status))
		}
	}
	var t text
	took := ""
	if f.timings {
		took = fmt.Sprintf(" (%s)", round(c.took))
	}
	t.line(0, "%s: %s%s", strings.ReplaceAll(file, "\n", " "), strings.Join(parts, ", "), took)
	return bytes.Clone(t.buffer.Bytes())
}
