package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// BenchmarkRun runs suites, including the start of deployments and backoffs, but
// without loading. Only known failures may fail.
func BenchmarkRun(b *testing.B) {
	set, both := suitetest.Topologies()[:1], []int{1, 2}
	for _, row := range []struct {
		origin, suites, who string
		topologies          []deployment.Topology
		jobs                []int
	}{
		{"official", "retryable-reads", "reference", suitetest.Topologies(), both},
		{"official", "retryable-writes", "reference", set, both},
		{"official", "client-backpressure", "reference", set, both},
		{"official", "retryable-reads", "driver", set, both},
		{"official", "retryable-writes", "driver", set, both},
		{"official", "client-backpressure", "driver", set, both},
		{"own", "retryable-reads", "reference", set, both},
	} {
		for _, topology := range row.topologies {
			for _, jobs := range row.jobs {
				b.Run(fmt.Sprintf("%s-%s/%s/jobs=%d/who=%s", row.origin, row.suites, topology, jobs, row.who), func(b *testing.B) {
					path := filepath.Join(testkit.Root(b), "specs", row.suites)
					if row.origin == "official" {
						path = testkit.Official(b, row.suites)
					}
					runAll(b, suitetest.Load(b, path), jobs, row.who,
						deployment.EmbeddedOptions{Topologies: []deployment.Topology{topology}})
				})
			}
		}
	}
}

// BenchmarkRunGrowth runs a sixteenth, a quarter and all of the files.
func BenchmarkRunGrowth(b *testing.B) {
	suites := suitetest.Load(b, filepath.Join(corpus(b), "retryable-reads"))
	measure(b, "reference", "files", []int{len(suites) / 16, len(suites) / 4, len(suites)}, func(b *testing.B, n int) {
		runAll(b, every(suites, n), 1, "reference",
			deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.ReplicaSet}})
	})
}

// runAll runs suites with an engine on new deployments, and reports the time per test, in
// total, in the server, and in the runner and engine.
func runAll(b *testing.B, suites []*specs.Suite, jobs int, who string, on deployment.EmbeddedOptions) {
	b.Helper()
	var e engine.Engine = driver.New()
	config := runner.Config{Jobs: jobs}
	if who == "driver" {
		config.KnownFailing = suitetest.KnownFailing(b, "engine/driver/known-failing.txt", suites)
	} else {
		var err error
		e, err = reference.New(reference.Options{})
		testkit.Check(b, err)
	}
	config.Engine = e
	b.Cleanup(func() { testkit.Check(b, e.Close()) })
	var last result.Summary
	for b.Loop() {
		var err error
		config.Source, err = deployment.OpenEmbedded(on)
		testkit.Check(b, err)
		last, err = runner.Run(context.Background(), suites, config)
		testkit.Check(b, err)
		testkit.Check(b, config.Source.Close())
		if last.Passed == 0 || last.Failed+last.Broken+len(last.Problems) > 0 {
			b.Fatalf("%d passed, %d failed, %d broken, problems %v", last.Passed, last.Failed, last.Broken, last.Problems)
		}
	}
	tests, spent := float64(last.Passed+last.KnownFailing), last.Timings
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N)/tests, "ms/test")
	server := spent.Server + spent.Blocked
	b.ReportMetric(server.Milliseconds()/tests, "ms-server/test")
	b.ReportMetric((spent.Sum()-server-spent.Waiting).Milliseconds()/tests, "ms-overhead/test")
	b.ReportMetric(tests, "tests")
	b.ReportMetric(float64(last.Skipped), "skipped")
}
