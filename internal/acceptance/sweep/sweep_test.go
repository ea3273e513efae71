// Package sweep runs samples of all suites through an engine on embedded deployments. The race detector makes that
// take five times as long, and finds what it finds in package acceptance: .ci/test runs this package without it.
package sweep

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// own gives all our own suites, which are loaded once and never changed.
func own(t *testing.T) []*specs.Suite {
	t.Helper()
	loaded, err := ownOnce()
	testkit.Check(t, err)
	return loaded.Suites
}

var ownOnce = sync.OnceValues(func() (*specs.Loaded, error) { return specs.Load(bench.Specifications(), specs.Options{}) })

// A sixteenth of our own suites passes on two topologies, another on the other two.
func TestOwnSuites(t *testing.T) {
	picked := testkit.Chance(t, 16)
	for _, on := range [][]deployment.Topology{{deployment.ReplicaSet, deployment.LoadBalanced}, {deployment.Sharded, deployment.Single}} {
		verdicts := bench.New(t, deployment.EmbeddedOptions{Topologies: on}).Everywhere(t, bench.Some(own(t), picked))
		bench.AllWell(t, verdicts, result.SkipRequirement)
		bench.PassedOn(t, verdicts, on)
	}
}

// The suites of read preferences pass on the topologies that have members to choose from.
func TestReadPreferences(t *testing.T) {
	suites := bench.Load(t, bench.Own(t, "read-preferences"))
	on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
	verdicts := bench.New(t, deployment.EmbeddedOptions{Topologies: on}).Everywhere(t, suites)
	bench.AllWell(t, verdicts, result.SkipRequirement)
	bench.PassedOn(t, verdicts, on)
}

// A share of our own suites passes on the oldest version, on one in between
// that differs most from its neighbours, and on the newest.
func TestVersions(t *testing.T) {
	suites := bench.Some(own(t), testkit.Chance(t, 40))
	for _, version := range []string{"4.2", "5.0", "9.0"} {
		t.Run(version, func(t *testing.T) {
			verdicts := bench.New(t, deployment.EmbeddedOptions{Version: version}).Run(t, suites)
			bench.AllWell(t, verdicts, result.SkipRequirement)
		})
	}
}

// The Go driver passes a share of our own suites but for what its list names,
// and skips for requirements and for what it lacks alone. Load balanced, where
// it has no heartbeats to wait for. Of client backpressure, whose delays the
// driver sleeps, nothing.
func TestDriver(t *testing.T) {
	suites := slices.DeleteFunc(slices.Clone(own(t)), func(s *specs.Suite) bool { return strings.Contains(s.File, "client-backpressure") })
	b := bench.With(t, driver.New(), deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.LoadBalanced}})
	b.Config.Jobs = 8
	suites = bench.Some(suites, testkit.Chance(t, 8))
	b.Config.KnownFailing = bench.KnownFailing(t, "driver", suites)
	bench.AllWell(t, b.Run(t, suites), result.SkipRequirement, result.SkipCapability)
}
