// Package acceptance holds the tests of all parts together: suites that run
// through an engine on embedded deployments, as a whole and in processes of
// their own. Those that sweep everything are in soak/suites.
package acceptance

import (
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// own loads all our own suites.
func own(t *testing.T) (suites []*specs.Suite) {
	t.Helper()
	for _, s := range bench.Specifications() {
		suites = append(suites, bench.Load(t, bench.Own(t, s))...)
	}
	return suites
}

// Every official suite passes on the two topologies that clusters have most,
// with nothing skipped but for requirements.
func TestOfficialSuites(t *testing.T) {
	for _, r := range []struct {
		specification string
		tests         int // at least, so that a folder that moved is noticed
	}{
		{"retryable-reads", 375},
		{"retryable-writes", 142},
		{"client-backpressure", 103},
	} {
		t.Run(r.specification, func(t *testing.T) {
			suites := bench.Load(t, testkit.Official(t, r.specification, "tests"))
			on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
			verdicts := bench.New(t, deployment.EmbeddedOptions{Topologies: on}).Everywhere(t, suites)
			if len(verdicts) < len(on)*r.tests {
				t.Errorf("%d verdicts of at least %d tests", len(verdicts), r.tests)
			}
			bench.AllWell(t, verdicts, result.SkipRequirement)
			passedOn(t, verdicts, on)
		})
	}
}

// A share of our own suites passes on every topology.
func TestOwnSuites(t *testing.T) {
	suites := bench.Some(own(t), testkit.Chance(t, 8))
	verdicts := bench.New(t, deployment.EmbeddedOptions{Topologies: bench.Topologies()}).Everywhere(t, suites)
	bench.AllWell(t, verdicts, result.SkipRequirement)
	passedOn(t, verdicts, bench.Topologies())
}

// passedOn expects that a test passed on each topology.
func passedOn(t *testing.T, verdicts []*result.Verdict, topologies []deployment.Topology) {
	t.Helper()
	for _, topology := range topologies {
		if !slices.ContainsFunc(verdicts, func(v *result.Verdict) bool {
			return v.Status == result.Passed && strings.HasPrefix(v.Test.Deployment, string(topology))
		}) {
			t.Errorf("nothing passed on %s", topology)
		}
	}
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
	suites := append(bench.Load(t, bench.Own(t, "retryable-reads")), bench.Load(t, bench.Own(t, "retryable-writes"))...)
	b := bench.With(t, driver.New(), deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.LoadBalanced}})
	b.Config.Jobs = 8
	suites = bench.Some(suites, testkit.Chance(t, 8))
	b.Config.KnownFailing = bench.KnownFailing(t, "driver", suites)
	bench.AllWell(t, b.Run(t, suites), result.SkipRequirement, result.SkipCapability)
}
