package report

import (
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// ProgressOptions are what a status line needs.
type ProgressOptions struct {
	// Width gives the current columns of the terminal.
	Width func() int
	// Now is the time; nil means time.Now.
	Now func() time.Time
}

// Progress adds a status line to a report that goes to a terminal: how many tests
// have ended, how many of them are red, how fast they end, how long the rest will
// take, and which test runs. The report erases the line, continues, and draws it
// again below; at the end it is gone.
func Progress(inner Generator, o ProgressOptions) Generator {
	const wipe = "\r\x1b[K"
	if o.Now == nil {
		o.Now = time.Now
	}
	s := status{now: o.Now}
	drawn := false
	return func(n result.Note) []byte {
		out := string(inner(n))
		if drawn {
			out = wipe + out
		}
		s.note(n)
		_, over := n.(result.RunFinished)
		width := o.Width() - 1 // one column stays free, so that no terminal wraps the line
		if drawn = !over && width > 1; drawn {
			out += fit(s.line(), width)
		}
		return []byte(out)
	}
}

type status struct {
	now         func() time.Time
	total, done int
	red         int
	left        int // tests still to run, without those to be skipped
	pace        pace
	current     string
}

func (s *status) note(n result.Note) {
	switch n := n.(type) {
	case result.RunStarted:
		s.total, s.left = n.Total, n.Total-n.Skipped
		s.pace.begin(s.now())
	case result.TestStarted:
		s.current = title(n.Test)
	case result.TestFinished:
		s.done++
		if n.Verdict.Status.Red() {
			s.red++
		}
		if n.Verdict.Status != result.Skipped || !n.Verdict.Began.IsZero() {
			s.left--
			s.pace.add(s.now())
		}
	}
}

func (s *status) line() string {
	line := fmt.Sprintf("%d/%d", s.done, s.total)
	add(&line, s.red > 0, ", %d failed", s.red)
	if rate := s.pace.perSecond(s.now()); rate > 0 {
		left := leftText(s.left, rate)
		line += ", " + rateText(rate)
		add(&line, left != "", ", %s", left)
	}
	return line + "  " + s.current
}
