package report_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
)

// held is how many bytes a report keeps for each verdict while a run goes on,
// beside those that it keeps once. One in ten was skipped, one in a hundred
// failed with events of some ten thousand bytes.
func held(g report.Generator) float64 {
	const few, many = 2000, 12_000
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var first float64
	for i := range many {
		if i == few {
			first = heap()
		}
		v := &result.Verdict{Test: result.TestID{File: fmt.Sprintf("f%d.yml", i/100), Suite: "s", Description: "the same of all", Deployment: "replicaset 8.0"}, Status: result.Passed, Duration: time.Millisecond}
		switch {
		case i%10 == 0:
			v.Status, v.SkipKind, v.Reason = result.Skipped, result.SkipRequirement, fmt.Sprintf("%0300d", i%5)
		case i%100 == 1:
			v.Status, v.Clients = result.Failed, []result.ClientLog{{Client: "c", Events: make([]result.Event, 150)}}
		}
		g(result.TestFinished{Verdict: v})
	}
	last := heap()
	runtime.KeepAlive(g)
	return (last - first) / (many - few)
}

// Reports that are written as the tests end keep nothing of them; the others
// keep little, and no events.
func TestReportsHoldLittle(t *testing.T) {
	earlierRun := earlier(t, "old", generate(report.JSON(), night(3, "ppp")))
	for name, r := range map[string]struct {
		generate report.Generator
		most     float64 // bytes a verdict
	}{
		"text":              {report.Text(report.TextOptions{Timings: true}), 20},
		"JSON":              {report.JSON(), 20},
		"TAP":               {report.TAP(), 20},
		"HTML":              {report.HTML(), 30},
		"HTML with earlier": {report.HTML(earlierRun), 120},
		"Markdown":          {report.Markdown(), 20},
		"badge":             {report.Badge(), 20},
		"JUnit":             {report.JUnit(), 400},
	} {
		got := held(r.generate)
		t.Logf("%s: %.1f bytes a verdict", name, got)
		if got > r.most {
			t.Errorf("%s: %.0f bytes a verdict, at most %.0f should be kept", name, got, r.most)
		}
	}
	kept := []result.Note{}
	leak := held(func(n result.Note) []byte { kept = append(kept, n); return nil })
	if leak < 500 {
		t.Errorf("a report that keeps every verdict keeps %.0f bytes: the measurement measures nothing", leak)
	}
}
