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
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
)

// sample is what a run holds at one moment.
type sample struct {
	tests      int
	heap       uint64
	goroutines int
}

// take takes one. What has ended may need a moment to be gone: goroutines are
// counted until they are no more than before, or a deadline has passed.
func take(tests, before int) sample {
	deadline := time.Now().Add(5 * time.Second)
	for before > 0 && runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers let go of
	runtime.ReadMemStats(&m)
	return sample{tests, m.HeapAlloc, runtime.NumGoroutine()}
}

// A long run holds no more at its end than after its beginning, with every
// report being written.
func TestLongRun(t *testing.T) {
	total := 2000
	b := bench.New(t, deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet}, Auth: new(bool)})
	suites := bench.Load(t, "retryable-writes/collection-insertOne.yml")
	tests := 0
	for _, s := range suites {
		tests += len(s.Tests)
	}
	var reports []*report.Reporter
	for _, g := range []report.Generator{
		report.Text(report.TextOptions{Verbose: true, Timings: true}), report.JSON(), report.HTML(), report.JUnit(), report.TAP(), report.Markdown(), report.Badge(),
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
			samples = append(samples, take(ended, 0))
		case total / 2, total:
			samples = append(samples, take(ended, samples[0].goroutines))
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

// What a run may hold more at its end than after a tenth of it: the deployment's
// bounded log of writes (1.4 kB for each of these tests), some hundred bytes for
// each verdict in reports that are written at the end, and what has not ended
// yet. A verdict that is kept has some ten thousand bytes.
const (
	mostGrowth     = 6 << 20
	mostGoroutines = 10
)

// grown says what has grown between samples, "" if nothing has.
func grown(samples []sample) string {
	first := samples[0]
	for _, s := range samples[1:] {
		if s.heap > first.heap+mostGrowth {
			return fmt.Sprintf("the heap grew from %d to %d bytes between test %d and %d", first.heap, s.heap, first.tests, s.tests)
		}
		if s.goroutines > first.goroutines+mostGoroutines {
			return fmt.Sprintf("goroutines grew from %d to %d between test %d and %d", first.goroutines, s.goroutines, first.tests, s.tests)
		}
	}
	return ""
}

// A run that holds more than it should is found.
func TestGrown(t *testing.T) {
	for _, r := range []struct {
		reason  string
		samples []sample
		want    string
	}{
		{"flat", []sample{{10, 5 << 20, 30}, {50, 6 << 20, 31}, {100, 5 << 20, 28}}, ""},
		{"verdicts are kept", []sample{{60, 5 << 20, 30}, {300, 9 << 20, 30}, {600, 13 << 20, 30}}, "the heap grew"},
		{"a goroutine for each test stays", []sample{{10, 5 << 20, 30}, {50, 5 << 20, 70}, {100, 5 << 20, 120}}, "goroutines grew from 30 to 70"},
	} {
		if got := grown(r.samples); !strings.HasPrefix(got, r.want) || (got == "") != (r.want == "") {
			t.Errorf("%s: %q, want %q", r.reason, got, r.want)
		}
	}
}
