package adapters

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// adapters lists the adapters. Each test is skipped if the driver is not installed.
var adapters = []struct {
	name    string // of the adapter and of its list of known failures
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
	{"rust", func(t *testing.T) process.Options { return process.Options{Command: []string{testkit.Rust(t)}} }},
}

func start(t *testing.T, options process.Options) *process.Engine {
	t.Helper()
	options.Runner = "test"
	e, err := process.New(options)
	testkit.Check(t, err)
	return e
}

// The adapters have the behaviors that the runner relies on.
func TestBehaviors(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, a.options(t))
			t.Cleanup(func() { testkit.Check(t, e.Close()) })
			d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
			testkit.Check(t, err)
			t.Cleanup(func() { _ = d.Close() })
			suitetest.Behaviors(t, e, d.URI())
		})
	}
}

// A sample of our own suites, and those of spans and states of transactions, pass, except for the known failures of the
// driver, or are skipped. Tests that pass fail when one of their expectations is changed.
func TestSuites(t *testing.T) {
	suites := append(suitetest.Share(t, 200),
		suitetest.Load(t, "../specs/open-telemetry/transactions.yml", "testdata/transaction-state.yml")...)
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := suitetest.With(t, start(t, a.options(t)), deployment.EmbeddedOptions{
				Topologies: []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}})
			b.Config.Jobs = 1 // starting more processes takes longer than the tests
			b.Config.KnownFailing = suitetest.KnownFailing(t, "adapters/"+a.name+"/known-failing.txt", suites)
			verdicts := b.Everywhere(t, suites)
			suitetest.CheckVerdicts(t, verdicts, result.SkipRequirement, result.SkipCapability)
			mutantsFail(t, b, suites, verdicts)
		})
	}
}

// mutantsFail changes one expectation of tests that passed on all topologies, in eight
// tests, or a hundred in make soak. Each must then fail.
func mutantsFail(t *testing.T, b *suitetest.Bench, suites []*specs.Suite, verdicts []*result.Verdict) {
	t.Helper()
	many := 8
	if os.Getenv("UTR_SOAK") == "1" {
		many = 100
	}
	passed := map[result.Position]bool{}
	for _, v := range verdicts {
		if before, seen := passed[v.Position]; v.Status != result.Skipped {
			passed[v.Position] = v.Status == result.Passed && (before || !seen)
		}
	}
	var files []*source.Value // suites with one test that passed
	for _, s := range suites {
		for _, test := range s.Root.Get("tests").Elements() {
			if passed[test.Position] {
				files = append(files, s.Root.With("tests", &source.Value{Kind: source.Array, Items: []*source.Value{test}}))
			}
		}
	}
	random := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	var changed []*specs.Suite
	var of []audit.Mutant
	for tries := 0; len(changed) < many && tries < 100*many; tries++ {
		all, _ := audit.Mutants(files[random.IntN(len(files))])
		if len(all) == 0 {
			continue
		}
		m := all[random.IntN(len(all))]
		if s, err := specs.FromValue(m.Position.File, m.Root); err == nil { // otherwise the schema rejects the change
			changed, of = append(changed, s), append(of, m)
		}
	}
	testkit.Equal(t, "mutants", len(changed), many)
	b.Config.KnownFailing = nil
	for i, s := range changed {
		for _, v := range b.Run(t, []*specs.Suite{s}) {
			if v.Status != result.Failed {
				t.Errorf("%s: %s: %s: the mutant %s", of[i].Position, of[i].Path, of[i].Change, v.Status)
			}
		}
	}
}
