package report

import (
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Progress adds a status line to a report on a terminal: the number of tests that ended and of red ones, the pace, the
// time left, and the current test. It erases the line before the report continues, redraws it below, and removes it at
// the end. width returns the current number of columns of the terminal, and now the time.
func Progress(inner Generator, width func() int, now func() time.Time) Generator {
	s := status{now: now, pace: newPace(now())}
	drawn := false
	return func(n result.Note) []byte {
		out := string(inner(n))
		if drawn {
			out = Wipe + out
		}
		s.note(n)
		_, over := n.(result.RunFinished)
		free := width() - 1 // one column less, so that no terminal wraps the line
		if drawn = !over && free > 1; drawn {
			out += fit(s.line(), free)
		}
		return []byte(out)
	}
}

// RunningCell is a cell of a matrix that is running, with its tests so far. Total is 0 if unknown.
type RunningCell struct {
	Name             string
	Done, Red, Total int
}

// CellsStatus is the status line of a matrix, without a line break: the cells that ended, the red tests, the time left,
// and the running cells. began is how many cells had ended at the beginning, and took the time since then.
func CellsStatus(columns, began, ended, all, red int, running []RunningCell, took time.Duration) string {
	line := fmt.Sprintf("%d/%d cells", ended, all)
	progress, names := float64(ended-began), ""
	for _, c := range running {
		names += "  " + c.Name
		if c.Total > 0 {
			progress += float64(min(c.Done, c.Total)) / float64(c.Total)
			names += fmt.Sprintf(" %d/%d", c.Done, c.Total)
		}
		red += c.Red
	}
	add(&line, red > 0, ", %d failed", red)
	if took >= paceTime && progress > 0 {
		cells := float64(all-began) - progress
		left := leftText(1, progress/max(cells, 1e-3)/took.Seconds())
		add(&line, left != "" && cells > 0, ", %s", left)
	}
	if columns < 2 {
		return ""
	}
	return fit(line+names, columns-1)
}

// Wipe removes a status line.
const Wipe = "\r\x1b[K"

type status struct {
	now         func() time.Time
	total, done int
	red         int
	left        int // tests still to run, not counting those to be skipped
	pace        pace
	current     string
}

func (s *status) note(n result.Note) {
	switch n := n.(type) {
	case result.RunStarted:
		s.total, s.left = n.Total, n.Total-n.Skipped
		s.pace = newPace(s.now())
	case result.TestStarted:
		s.current = title(n.Test)
	case result.TestFinished:
		s.done++
		if n.Verdict.Status.FailsRun() {
			s.red++
		}
		if n.Verdict.Status != result.Skipped || !n.Verdict.Started.IsZero() {
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
