package site

import "fmt"

// chartView is a chart with a bar for each run, of segments by result.
type chartView struct {
	Width, Height int
	Bars          []barView
}

type barView struct {
	Status, Title string
	X, Width      int
	Y, Height     float64
}

const barWidth, barStep, chartHeight = 14, 18, 72

// leastSegment keeps one failure of thousands visible.
const leastSegment = 2

func chart(runs []*Group) chartView {
	c := chartView{Width: len(runs) * barStep, Height: chartHeight}
	most := 1
	for _, g := range runs {
		most = max(most, g.Ran())
	}
	for i, g := range runs {
		y := float64(chartHeight)
		for _, segment := range []struct {
			status string
			tests  int
		}{{"failed", g.Failed + g.Broken + g.Flaky}, {"known-failing", g.KnownFailing}, {"passed", g.Passed}} {
			if segment.tests == 0 {
				continue
			}
			height := max(leastSegment, float64(segment.tests)/float64(most)*(chartHeight-3*leastSegment))
			y -= height
			c.Bars = append(c.Bars, barView{segment.status,
				fmt.Sprintf("%s: %d %s", when(g.report.Began), segment.tests, segment.status),
				i * barStep, barWidth, y, height})
		}
	}
	return c
}
