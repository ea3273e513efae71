package sweep

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// A sample of the suites of earlier dates passes with their policies. With the current policy, exactly the tests in
// specs/dated/known-failing.txt fail. soak/suites runs all of them.
func TestDatedSuites(t *testing.T) {
	t.Parallel()
	for folder, policy := range suitetest.Dated() {
		t.Run(folder, func(t *testing.T) {
			suites := slices.DeleteFunc(suitetest.Load(t, filepath.Join(testkit.Root(t), "specs", "dated", folder)),
				func(s *specs.Suite) bool {
					return strings.HasSuffix(s.File, "tokens.yml") // a hundred threads with a time limit of ten seconds
				})
			on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
			if folder == "read-preferences-2014" { // few tests, all on replica sets
				on = on[:1]
			} else {
				suites = suitetest.Some(suites, testkit.Chance(t, 4))
			}
			suitetest.PassOn(t, on, policy, suites)

			current := suitetest.New(t, deployment.EmbeddedOptions{Topologies: on})
			current.Config.KnownFailing = suitetest.KnownFailing(t, "specs/dated/known-failing.txt", suites)
			verdicts := current.Everywhere(t, suites)
			suitetest.CheckVerdicts(t, verdicts, result.SkipRequirement)
			if !slices.ContainsFunc(verdicts, func(v *result.Verdict) bool { return v.Status == result.KnownFailing }) {
				t.Error("all tests pass with the current policy")
			}
		})
	}
}

// A sample of the suites of retryable reads passes with the policy of 2024 as well, as docs/seeds/retryable-reads.md
// says.
func TestReadsOf2024(t *testing.T) {
	t.Parallel()
	suites := suitetest.Some(suitetest.Load(t, suitetest.OwnFolder(t, "retryable-reads")), testkit.Chance(t, 4))
	suitetest.PassOn(t, []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}, "retryable-reads@2024", suites)
}
