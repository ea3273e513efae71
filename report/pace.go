package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// pace measures how fast tests end, over the last minute, or longer if few ended
// in it: suites differ so much that the past says little about what comes.
type pace struct {
	ended int
	marks []milestone // the first is where the minute began
}

// milestone is how many tests had ended at a time.
type milestone struct {
	at    time.Time
	ended int
}

const (
	paceWindow = time.Minute
	paceStep   = time.Second // between marks
	// With less than this, the pace is unknown.
	paceTime  = 3 * time.Second
	paceTests = 5
)

func (p *pace) begin(at time.Time) { *p = pace{marks: []milestone{{at: at}}} }

func (p *pace) add(at time.Time) {
	p.ended++
	if len(p.marks) == 0 {
		p.begin(at)
		p.ended = 1
	}
	if last := p.marks[len(p.marks)-1]; at.Sub(last.at) >= paceStep {
		p.marks = append(p.marks, milestone{at, p.ended})
	}
	// Count from the last milestone before the window began, or from an older one
	// if few tests have ended since.
	n := 0
	for n+1 < len(p.marks) && at.Sub(p.marks[n+1].at) > paceWindow && p.ended-p.marks[n+1].ended >= paceTests {
		n++
	}
	p.marks = slices.Delete(p.marks, 0, n)
}

// perSecond is how many tests end in a second, 0 if that is not known yet.
func (p *pace) perSecond(now time.Time) float64 {
	if len(p.marks) == 0 {
		return 0
	}
	first := p.marks[0]
	took, ended := now.Sub(first.at), p.ended-first.ended
	if took < paceTime || ended < paceTests {
		return 0
	}
	return float64(ended) / took.Seconds()
}

// rateText and leftText give the pace and the time left in few characters, no more
// precisely than they are known.
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 9.95:
		return fmt.Sprintf("%.0f/s", perSecond)
	case perSecond >= 0.95:
		return fmt.Sprintf("%.1f/s", perSecond)
	default:
		return fmt.Sprintf("%.0f/min", perSecond*60)
	}
}

func leftText(tests int, perSecond float64) string {
	const longest = 100 * time.Hour
	seconds := math.Ceil(float64(tests) / perSecond)
	switch {
	case tests <= 0 || seconds > longest.Seconds():
		return ""
	case seconds <= 60:
		return fmt.Sprintf("%.0f s left", 5*math.Ceil(seconds/5))
	case seconds <= 90*60:
		return fmt.Sprintf("%.0f min left", math.Ceil(seconds/60))
	default:
		return fmt.Sprintf("%.1f h left", seconds/3600)
	}
}
