package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// pace measures how fast tests end, over the last minute, or longer if few ended in
// it. Suites differ too much to use the whole run.
type pace struct {
	ended int
	marks []milestone // the first is the beginning of the window; never empty
}

// milestone is the number of tests that had ended at a time.
type milestone struct {
	at    time.Time
	ended int
}

const (
	paceWindow = time.Minute
	paceStep   = time.Second // between marks
	// The minimum for a known pace.
	paceTime  = 3 * time.Second
	paceTests = 5
)

func newPace(at time.Time) pace { return pace{marks: []milestone{{at: at}}} }

func (p *pace) add(at time.Time) {
	p.ended++
	if last := p.marks[len(p.marks)-1]; at.Sub(last.at) >= paceStep {
		p.marks = append(p.marks, milestone{at, p.ended})
	}
	// Count from the last milestone before the window, or from an older one if few tests have ended since.
	n := 0
	for n+1 < len(p.marks) && at.Sub(p.marks[n+1].at) > paceWindow && p.ended-p.marks[n+1].ended >= paceTests {
		n++
	}
	p.marks = slices.Delete(p.marks, 0, n)
}

// perSecond is the number of tests per second, 0 if not yet known.
func (p *pace) perSecond(now time.Time) float64 {
	first := p.marks[0]
	took, ended := now.Sub(first.at), p.ended-first.ended
	if took < paceTime || ended < paceTests {
		return 0
	}
	return float64(ended) / took.Seconds()
}

// rateText and leftText format the pace and the time left, with the precision that they have.
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
