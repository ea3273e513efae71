// Package adapters tests the adapters: programs in other languages that let utr run
// suites through the drivers of those languages.
package adapters

import (
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
)

// adapters lists the adapters. Each test is skipped if the driver is not installed.
var adapters = []struct {
	name    string // also of its list of known failures
	options func(t *testing.T) process.Options
}{
	{"pymongo", func(t *testing.T) process.Options {
		return process.Options{Command: []string{testkit.Python(t, "pymongo", "gridfs"), "pymongo/adapter.py"}}
	}},
	{"node", func(t *testing.T) process.Options {
		node, environment := testkit.Node(t)
		return process.Options{Command: []string{node, "node/adapter.js"}, Environment: environment}
	}},
	{"java", func(t *testing.T) process.Options { return process.Options{Command: testkit.Java(t)} }},
}

func start(t *testing.T, options process.Options) *process.Engine {
	t.Helper()
	options.Runner = "test"
	e, err := process.New(options)
	testkit.Check(t, err)
	return e
}

// TestBehaviours checks what the runner relies on.
func TestBehaviours(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, a.options(t))
			t.Cleanup(func() { testkit.Check(t, e.Close()) })
			d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
			testkit.Check(t, err)
			t.Cleanup(func() { _ = d.Close() })
			bench.Behaviours(t, e, d.URI())
		})
	}
}

// TestSuites runs a share of our own suites. What an adapter does not serve is
// skipped, and the rest passes but for the known failures of its driver. What passes
// fails when an expectation is changed.
func TestSuites(t *testing.T) {
	suites := bench.Share(t, 200)
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := bench.With(t, start(t, a.options(t)), deployment.EmbeddedOptions{
				Topologies: []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}})
			b.Config.Jobs = 1 // a process each: they take longer to start than to run a few tests
			b.Config.KnownFailing = bench.KnownFailing(t, a.name, suites)
			verdicts := b.Everywhere(t, suites)
			bench.AllWell(t, verdicts, result.SkipRequirement, result.SkipCapability)
			mutantsFail(t, b, suites, verdicts)
		})
	}
}
