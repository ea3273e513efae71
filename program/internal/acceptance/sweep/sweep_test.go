// Package sweep runs samples of all suites through an engine on embedded deployments. .ci/test runs this package
// without the race detector, because that would take five times as long.
package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// A sixteenth of our own suites passes.
func TestOwnSuites(t *testing.T) {
	t.Parallel()
	suitetest.OwnPass(t, 16)
}

// The suites of read preferences pass on topologies with several members.
func TestReadPreferences(t *testing.T) {
	t.Parallel()
	suites := suitetest.Load(t, suitetest.OwnFolder(t, "read-preferences"))
	on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
	suitetest.PassOn(t, on, "", suites)
}

// A sample of our own suites passes on the oldest version, on the newest, and on the
// version between them that differs most from its neighbors.
func TestVersions(t *testing.T) {
	t.Parallel()
	suites := suitetest.Some(suitetest.OwnSuites(t), testkit.Chance(t, 40))
	for _, version := range []string{"4.2", "5.0", "9.0"} {
		t.Run(version, func(t *testing.T) {
			verdicts := suitetest.New(t, deployment.EmbeddedOptions{Version: version}).Run(t, suites)
			suitetest.CheckVerdicts(t, verdicts, result.SkipRequirement)
		})
	}
}

// The Go driver passes a sample of our own suites, except for its known failures. Tests
// are skipped only for requirements and capabilities. The deployment is load balanced,
// so that the driver waits for no heartbeats. Client backpressure is left out, because
// the driver sleeps during backoffs.
func TestDriver(t *testing.T) {
	t.Parallel()
	suites := slices.DeleteFunc(slices.Clone(suitetest.OwnSuites(t)),
		func(s *specs.Suite) bool { return strings.Contains(s.File, "client-backpressure") })
	b := suitetest.With(t, driver.New(),
		deployment.EmbeddedOptions{Topologies: []deployment.Topology{deployment.LoadBalanced}})
	b.Config.Jobs = 8
	suites = suitetest.Some(suites, testkit.Chance(t, 8))
	b.Config.KnownFailing = suitetest.KnownFailing(t, "engine/driver/known-failing.txt", suites)
	suitetest.CheckVerdicts(t, b.Run(t, suites), result.SkipRequirement, result.SkipCapability)
}
