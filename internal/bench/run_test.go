package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// A subject is an engine, with the file of what is known to fail in it, or "".
type subject struct {
	name  string
	open  func() (engine.Engine, error)
	known string
}

func theReference() subject {
	return subject{"reference", func() (engine.Engine, error) { return reference.New(reference.Options{}) }, ""}
}

func theDriver() subject {
	return subject{"driver", func() (engine.Engine, error) { return driver.New(driver.Options{}), nil }, "../../known-failing/driver.txt"}
}

// knownFailing reads the subject's file.
func (s subject) knownFailing(b *testing.B) []runner.KnownFailure {
	b.Helper()
	if s.known == "" {
		return nil
	}
	f, err := os.Open(s.known)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known, err := runner.ParseKnownFailing(filepath.Base(s.known), f)
	if err != nil {
		b.Fatal(err)
	}
	return known
}

// A run is one run of suites, for the table.
type run struct {
	what    string
	jobs    int
	took    time.Duration
	summary result.Summary
}

// ran counts the tests that were not skipped, where none failed unexpectedly.
func ran(s result.Summary) int { return s.Passed + s.KnownFailing }

// overhead is what a test takes beside the time of its commands and the waits
// that suites ask for: set-up, clean-up, and the engine with its connections
// and handshakes.
func overhead(t result.Timings) time.Duration { return t.Setup + t.Engine + t.Cleanup }

// writeRuns prints the runs: what came of the tests, the time on the clock,
// that of one test that was not skipped, of that the part between the start of
// its commands and their ends and the part that is overhead, and where the time
// of all tests went.
func writeRuns(w io.Writer, runs []run) {
	if len(runs) == 0 {
		return
	}
	fmt.Fprintln(w, "\nrun\tjobs\tpassed\tknown\tskipped\ttime\ta test\tin the server\toverhead\tset-up\tengine\tserver\twaiting\tclean-up\t")
	for _, r := range runs {
		s, t := r.summary, r.summary.Timings
		all := max(1, t.Setup+t.Engine+t.Server+t.Waiting+t.Cleanup)
		tests := time.Duration(max(1, ran(s)))
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t", r.what, r.jobs, s.Passed, s.KnownFailing, s.Skipped,
			short(r.took), short(r.took/tests), short(t.Server/tests), short(overhead(t)/tests))
		for _, part := range []time.Duration{t.Setup, t.Engine, t.Server, t.Waiting, t.Cleanup} {
			fmt.Fprintf(w, "%.0f %%\t", 100*float64(part)/float64(all))
		}
		fmt.Fprintln(w)
	}
}

// BenchmarkRun runs suites of retryable reads through the reference engine: the
// start of deployments is counted, loading is not. No test may fail.
// BenchmarkSpecifications has the official ones on a replica set.
func BenchmarkRun(b *testing.B) {
	topologies := []deployment.Topology{deployment.Sharded, deployment.LoadBalanced, deployment.Single}
	b.Run("official", func(b *testing.B) {
		dir := official(b, "retryable-reads")
		if dir == "" {
			b.Skip("official suites not there")
		}
		suites := load(b, dir)
		for _, t := range topologies {
			for _, jobs := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/jobs=%d", t, jobs), func(b *testing.B) {
					runAll(b, "official reads, "+string(t), suites, jobs, theReference(), fresh(t))
				})
			}
		}
		// The same on a cluster that is there already, with access control.
		for _, t := range []embedded.Topology{embedded.ReplicaSet, embedded.Sharded} {
			b.Run(fmt.Sprintf("cluster/%s", t), func(b *testing.B) {
				runAll(b, fmt.Sprintf("official reads, cluster: %s", t), suites, 1, theReference(), standing(b, t))
			})
		}
	})
	b.Run("own", func(b *testing.B) {
		suites := load(b, filepath.Join(ownSuites, "retryable-reads"))
		for _, jobs := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/jobs=%d", deployment.ReplicaSet, jobs), func(b *testing.B) {
				runAll(b, "own reads, replicaset", suites, jobs, theReference(), fresh(deployment.ReplicaSet))
			})
		}
	})
}

// BenchmarkRunGrowth runs a sixteenth of the files, a quarter, all.
func BenchmarkRunGrowth(b *testing.B) {
	suites := load(b, filepath.Join(corpus(b), "retryable-reads"))
	measure(b, "run retryable reads on a replica set", "files", "utr", []int{len(suites) / 16, len(suites) / 4, len(suites)},
		func(b *testing.B, n int) {
			runAll(b, "", every(suites, n), 1, theReference(), fresh(deployment.ReplicaSet))
		})
}

func load(b *testing.B, path string) []*specs.Suite {
	b.Helper()
	loaded, err := specs.Load([]string{path}, specs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return loaded.Suites
}

// fresh opens a source of deployments of one topology, none of which has been
// started.
func fresh(t deployment.Topology) func() (deployment.Source, error) {
	return func() (deployment.Source, error) {
		return deployment.OpenEmbedded(context.Background(), deployment.EmbeddedOptions{Topologies: []deployment.Topology{t}})
	}
}

// standing starts a deployment with access control that runs find as a cluster
// of somebody else.
func standing(b *testing.B, t embedded.Topology) func() (deployment.Source, error) {
	b.Helper()
	d, err := embedded.Start(context.Background(), embedded.Options{Topology: t, Users: []embedded.User{{Name: "bench", Password: "bench"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	return func() (deployment.Source, error) {
		return deployment.OpenCluster(context.Background(), deployment.ClusterOptions{URI: d.URI()})
	}
}

// runAll runs suites on a source, and puts the last run down under what; ""
// does not.
func runAll(b *testing.B, what string, suites []*specs.Suite, jobs int, who subject, open func() (deployment.Source, error)) {
	b.Helper()
	e, err := who.open()
	if err != nil {
		b.Fatal(err)
	}
	known := who.knownFailing(b)
	var last result.Summary
	for b.Loop() {
		source, err := open()
		if err != nil {
			b.Fatal(err)
		}
		if last, err = runner.Run(context.Background(), suites, runner.Config{Engine: e, Source: source, Jobs: jobs, KnownFailing: known}); err != nil {
			b.Fatal(err)
		}
		if err := source.Close(); err != nil {
			b.Fatal(err)
		}
		if last.Passed == 0 || last.Failed+last.Broken+len(last.Problems) > 0 {
			b.Fatalf("%d passed, %d failed, %d broken, problems %v", last.Passed, last.Failed, last.Broken, last.Problems)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N*ran(last)), "ms/test")
	b.ReportMetric(float64(last.Passed), "passed")
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	if what != "" {
		figures.runs = append(figures.runs, run{what, jobs, b.Elapsed() / time.Duration(b.N), last})
	}
}

// BenchmarkSpecifications runs all official tests of the specifications on an
// embedded replica set, with both engines, one and two tests at a time. Backoffs
// are slept. Nothing may fail but what is known to. Beside them stands what the
// Go driver's own runner takes against real servers, which was not measured
// here.
func BenchmarkSpecifications(b *testing.B) {
	dir := official(b)
	if dir == "" {
		b.Skip("official suites not there")
	}
	names := []string{"retryable-reads", "retryable-writes", "client-backpressure"}
	work := group{name: "official tests on a replica set", labels: names}
	for _, who := range []subject{theReference(), theDriver()} {
		for _, jobs := range []int{1, 2} {
			for i, name := range names {
				suites := load(b, filepath.Join(dir, name))
				b.Run(fmt.Sprintf("%s/jobs=%d/%s", who.name, jobs, name), func(b *testing.B) {
					runAll(b, fmt.Sprintf("official %s, %s, %s", name, deployment.ReplicaSet, who.name), suites, jobs, who, fresh(deployment.ReplicaSet))
					figures.note(work, fmt.Sprintf("%s, jobs: %d", who.name, jobs), false, point{size: i, time: b.Elapsed() / time.Duration(b.N)})
				})
			}
		}
	}
	if !slices.ContainsFunc(figures.groups, func(g *group) bool { return g.name == work.name }) {
		return // none of them was run
	}
	for i, seconds := range []time.Duration{33, 20, 17} {
		figures.note(work, "not measured here: the Go driver's own runner, real servers", true, point{size: i, time: seconds * time.Second})
	}
}
