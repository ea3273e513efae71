package night

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/unified-test-runner/utr/result"
)

// Log writes the output of a cell to a file and keeps what explains its exit, because the file may be incomplete:
// a full disk must not end the cell, nor hide the reason.
type Log struct {
	File io.Writer
	Err  error  // of the first failed write
	line []byte // incomplete
	last string // the last line
	ours string // the last message of utr
	died string // a Go panic

	Total, Done, Red atomic.Int32 // tests, for the status line
}

// testsLine is the first line of a cell, and verdictLine the first line of a test.
var (
	testsLine   = regexp.MustCompile(`: (\d+) tests? in \d+ files?, \d+ at once$`)
	verdictLine = regexp.MustCompile(`^(passed|failed|broken|flaky|known-failing|skipped) (\d+: |for \d)?`)
)

// Write never fails.
func (l *Log) Write(p []byte) (int, error) {
	if l.Err == nil {
		_, l.Err = l.File.Write(p)
	}
	lines := bytes.SplitAfter(append(l.line, p...), []byte("\n"))
	for _, line := range lines[:len(lines)-1] {
		l.note(string(line))
	}
	l.line = lines[len(lines)-1]
	return len(p), nil
}

func (l *Log) note(line string) {
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		l.died = cmp.Or(l.died, strings.TrimSpace(line))
	}
	if found := testsLine.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
		total, _ := strconv.Atoi(found[1])
		l.Total.Store(int32(total))
	} else if found := verdictLine.FindStringSubmatch(line); found != nil && found[2] == "" {
		l.Done.Add(1)
		if result.Status(found[1]).FailsRun() {
			l.Red.Add(1)
		}
	}
	message, ours := strings.CutPrefix(line, "utr: ")
	message = strings.TrimSpace(message)
	if ours {
		l.ours = cmp.Or(message, l.ours)
	}
	l.last = cmp.Or(message, l.last)
}

// Message returns the line that best explains an exit: a Go panic, the last message of utr, or the last line. A message
// of utr that ends with a colon is followed by the last line, from an adapter.
func (l *Log) Message() string {
	l.note(string(l.line))
	ours := l.ours
	if strings.HasSuffix(ours, ":") {
		ours += " " + l.last
	}
	return cmp.Or(l.died, ours, l.last, "it printed nothing")
}
