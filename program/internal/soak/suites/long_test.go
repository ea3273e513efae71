package suites

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
)

// sample is the resource usage of a run at one moment.
type sample struct {
	tests      int
	heap       uint64
	goroutines int
}

// measure returns a sample. Goroutines need a moment to end: it waits until there are
// no more than before, or a deadline has passed.
func measure(tests, before int) sample {
	deadline := time.Now().Add(5 * time.Second)
	for before > 0 && runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // memory that finalizers released
	runtime.ReadMemStats(&m)
	return sample{tests, m.HeapAlloc, runtime.NumGoroutine()}
}

// A long run that writes every report uses no more resources at its end than near its
// beginning.
func TestLongRun(t *testing.T) {
	total := 2000
	b := suitetest.New(t, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet},
		Auth: new(bool)})
	suites := suitetest.Load(t, "retryable-writes/collection-insertOne.yml")
	tests := 0
	for _, s := range suites {
		tests += len(s.Tests)
	}
	var reports []*report.Reporter
	for _, g := range []report.Generator{
		report.Text(report.TextOptions{Verbose: true, Timings: true}), report.JSON(), report.HTML(), report.JUnit(),
		report.TAP(), report.SARIF(), report.Markdown(), report.Badge(),
	} {
		reports = append(reports, report.New("nowhere", g, io.Discard))
	}
	config := b.Config
	config.Jobs, config.Count, config.KeepEvents = 1, (total+tests-1)/tests, true
	total = config.Count * tests
	var samples []sample
	ended := 0
	config.Notify = func(n result.Note) {
		for _, r := range reports {
			r.Note(n)
		}
		if _, ok := n.(result.TestFinished); !ok {
			return
		}
		ended++
		switch ended {
		case total / 10:
			samples = append(samples, measure(ended, 0))
		case total / 2, total:
			samples = append(samples, measure(ended, samples[0].goroutines))
		}
	}
	summary, err := runner.Run(context.Background(), suites, config)
	if err != nil || summary.Passed < total/2 || summary.ExitCode() != 0 {
		t.Fatalf("%v: %+v", err, summary)
	}
	for _, s := range samples {
		t.Logf("after %4d tests: %.2f MB, %d goroutines", s.tests, float64(s.heap)/1e6, s.goroutines)
	}
	if why := grown(samples); why != "" {
		t.Error(why)
	}
}

// The limits of growth after the first tenth of a run. They allow for the deployment's
// bounded log of writes (1.4 kB per test), some hundred bytes per verdict in reports that
// are written at the end, and goroutines that are still ending. A leaked verdict has
// some ten thousand bytes.
const (
	mostGrowth     = 6 << 20
	mostGoroutines = 10
)

// grown describes the growth between samples that exceeds a limit, or returns "".
func grown(samples []sample) string {
	first := samples[0]
	for _, s := range samples[1:] {
		if s.heap > first.heap+mostGrowth {
			return fmt.Sprintf("the heap grew from %d to %d bytes between test %d and %d", first.heap, s.heap,
				first.tests, s.tests)
		}
		if s.goroutines > first.goroutines+mostGoroutines {
			return fmt.Sprintf("goroutines grew from %d to %d between test %d and %d", first.goroutines, s.goroutines,
				first.tests, s.tests)
		}
	}
	return ""
}

// TestLeaksAreDetected checks grown.
func TestLeaksAreDetected(t *testing.T) {
	for _, r := range []struct {
		reason  string
		samples []sample
		want    string
	}{
		{"flat", []sample{{10, 5 << 20, 30}, {50, 6 << 20, 31}, {100, 5 << 20, 28}}, ""},
		{"verdicts are leaked", []sample{{60, 5 << 20, 30}, {300, 9 << 20, 30}, {600, 13 << 20, 30}}, "the heap grew"},
		{"goroutines leak", []sample{{10, 5 << 20, 30}, {50, 5 << 20, 70}, {100, 5 << 20, 120}},
			"goroutines grew from 30 to 70"},
	} {
		if got := grown(r.samples); !strings.HasPrefix(got, r.want) || (got == "") != (r.want == "") {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
