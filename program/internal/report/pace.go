package report

import (
	"fmt"
	"math"
	"time"
)

// pace measures how fast tests end, over the last minute, or longer if few ended in it. Suites differ too much to use
// the whole run.
type pace struct {
	ends []time.Time // the beginning of the window, and the ends of the tests in it
}

const (
	paceWindow = time.Minute
	// The minimum for a known pace.
	paceTime  = 3 * time.Second
	paceTests = 5
)

func newPace(at time.Time) pace { return pace{ends: []time.Time{at}} }

func (p *pace) add(at time.Time) {
	p.ends = append(p.ends, at)
	for len(p.ends) > 1+paceTests && at.Sub(p.ends[1]) > paceWindow {
		p.ends = p.ends[1:]
	}
}

// perSecond is the number of tests per second, 0 if not yet known.
func (p *pace) perSecond(now time.Time) float64 {
	took, ended := now.Sub(p.ends[0]), len(p.ends)-1
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
