// Package acceptance holds the tests of all parts together: suites that run
// through the reference engine on embedded deployments, and broken suites that
// must not pass.
package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/shared"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// official is the folder of the official suites, or skips the test.
func official(t testing.TB, elements ...string) string {
	t.Helper()
	return shared.Path(t, append([]string{"specifications"}, elements...)...)
}

// load loads suites that must be valid.
func load(t testing.TB, paths ...string) []*specs.Suite {
	t.Helper()
	loaded, err := specs.Load(paths, specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Suites
}

// bench is what suites are run on: the reference engine and a source of
// embedded deployments.
type bench struct {
	config runner.Config
}

func newBench(t testing.TB, o deployment.EmbeddedOptions) *bench {
	t.Helper()
	source, err := deployment.OpenEmbedded(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	// Delays are decided and not slept. None is so short that a test which
	// wants one to outlast timeoutMS could go on to the end.
	engine, err := reference.New(reference.Options{Backoff: reference.BackoffNone,
		Random: func() float64 { return 0.25 + 0.75*rand.Float64() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{config: runner.Config{Engine: engine, Source: source, Jobs: 2, Timeout: 30 * time.Second}}
}

// run runs suites and gives the verdicts in the order in which they came.
func (b *bench) run(t testing.TB, suites []*specs.Suite, change func(*runner.Config)) []*result.Verdict {
	t.Helper()
	var mu sync.Mutex
	var verdicts []*result.Verdict
	config := b.config
	config.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			mu.Lock()
			defer mu.Unlock()
			verdicts = append(verdicts, f.Verdict)
		}
	}
	if change != nil {
		change(&config)
	}
	summary, err := runner.Run(context.Background(), suites, config)
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Problems) > 0 {
		t.Errorf("problems of the run: %v", summary.Problems)
	}
	return verdicts
}

// wantAllWell fails the test for every verdict but passed and skips for a
// requirement.
func wantAllWell(t *testing.T, verdicts []*result.Verdict) {
	t.Helper()
	count := map[result.Status]int{}
	for _, v := range verdicts {
		count[v.Status]++
		if v.Status == result.Passed || v.Status == result.Skipped && v.SkipKind == result.SkipRequirement {
			continue
		}
		t.Errorf("%s\n%s", v.Position, describe(v))
	}
	t.Logf("%v", count)
}

// describe tells a verdict in short.
func describe(v *result.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s %s %s", v.Test.Description, v.Test.Deployment, v.Status, v.SkipKind, v.Reason)
	for _, m := range v.Mismatches {
		fmt.Fprintf(&b, "\n  %s: %s: %s\n    want %s\n    got  %s", m.Position, m.Path, m.Message, m.Want, m.Got)
	}
	return b.String()
}

// topologies are all that can be embedded.
var topologies = []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced, deployment.Single}

// specifications are those with suites of our own, and the size of the
// official suites.
var specifications = []struct {
	name         string
	files, tests int
}{
	{"retryable-reads", 45, 375},
	{"retryable-writes", 35, 142},
	{"client-backpressure", 4, 103},
}

// Every official suite passes on every topology, and every one of ours on the
// first topology that allows it, in a random order, with nothing skipped but
// for requirements. A share of ours runs on every topology too; those of the
// reads do as a whole.
func TestSuitesPass(t *testing.T) {
	for _, s := range specifications {
		t.Run("official/"+s.name, func(t *testing.T) {
			suites := load(t, official(t, s.name))
			verdicts := shuffled(t, suites, true)
			tests := map[string]bool{}
			for _, v := range verdicts {
				tests[v.Test.File+v.Test.Description] = true
			}
			if len(suites) < s.files || len(tests) < s.tests {
				t.Errorf("%d files with %d tests, want %d with %d at least", len(suites), len(tests), s.files, s.tests)
			}
			if s.name == "retryable-reads" {
				wantEveryTopology(t, verdicts)
			}
		})
		t.Run("own/"+s.name, func(t *testing.T) {
			suites := load(t, own(s.name))
			if s.name == "retryable-reads" {
				wantEveryTopology(t, shuffled(t, suites, true))
				return
			}
			shuffled(t, suites, false)
			wantEveryTopology(t, shuffled(t, share(suites, 0, 4), true))
		})
	}
}

func own(specification string) string { return "../../specs/" + specification }

// shuffled runs suites in a random order, and wants all well.
func shuffled(t *testing.T, suites []*specs.Suite, everywhere bool) []*result.Verdict {
	t.Helper()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	verdicts := newBench(t, deployment.EmbeddedOptions{Topologies: topologies}).run(t, suites, func(c *runner.Config) {
		c.AllTopologies = everywhere
		c.Shuffle = &seed
	})
	wantAllWell(t, verdicts)
	return verdicts
}

func wantEveryTopology(t *testing.T, verdicts []*result.Verdict) {
	t.Helper()
	for _, s := range topologies {
		if !slices.ContainsFunc(verdicts, func(v *result.Verdict) bool {
			return v.Status == result.Passed && strings.HasPrefix(v.Test.Deployment, string(s))
		}) {
			t.Errorf("nothing passed on %s", s)
		}
	}
}

// Every version profile runs the suites too: what a version does not have is a
// requirement of the suite, not a failure. The oldest and the newest run those
// of the reads whole; all others run a share each, which together are the whole.
func TestSuitesOnEveryVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("each version takes seconds: left out of short runs")
	}
	reads := load(t, own("retryable-reads"))
	others := load(t, own("retryable-writes"), own("client-backpressure"))
	versions := []string{"4.4", "4.9", "5.0", "6.0", "7.0", "8.2", "4.2", "9.0"}
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			suites := share(reads, i, 6)
			if version == "4.2" || version == "9.0" {
				suites = reads
			}
			b := newBench(t, deployment.EmbeddedOptions{Version: version})
			wantAllWell(t, b.run(t, append(suites, share(others, i, len(versions))...), nil))
		})
	}
}

// share is the i-th of n shares of the tests of all suites: every n-th test.
func share(suites []*specs.Suite, i, n int) []*specs.Suite {
	var out []*specs.Suite
	at := 0
	for _, s := range suites {
		part := *s
		part.Tests = nil
		for _, test := range s.Tests {
			if at%n == i {
				part.Tests = append(part.Tests, test)
			}
			at++
		}
		if len(part.Tests) > 0 {
			out = append(out, &part)
		}
	}
	return out
}
