// Package acceptance holds the tests of all parts together: suites that run
// through an engine on embedded deployments, as a whole and in processes of
// their own. Package sweep runs more of them without the race detector, soak/suites
// all of them.
package acceptance

import (
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
)

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
			bench.PassedOn(t, verdicts, on)
		})
	}
}

// A small share of our own suites passes, with the race detector. Package sweep runs more of them without it.
func TestOwnSuites(t *testing.T) { bench.OwnPass(t, 64) }
