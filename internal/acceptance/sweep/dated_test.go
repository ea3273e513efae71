package sweep

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// A share of the suites of earlier dates passes under their policies. Under the current one exactly those
// tests fail that known-failing/dated.txt lists. soak/suites runs all of them.
func TestDatedSuites(t *testing.T) {
	t.Parallel()
	for folder, policy := range bench.Dated() {
		t.Run(folder, func(t *testing.T) {
			suites := slices.DeleteFunc(bench.Load(t, filepath.Join(testkit.Root(t), "dated", folder)), func(s *specs.Suite) bool {
				return strings.HasSuffix(s.File, "tokens.yml") // a hundred threads, which have ten seconds
			})
			on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
			if folder == "read-preferences-2014" { // few tests, all on replica sets
				on = on[:1]
			} else {
				suites = bench.Some(suites, testkit.Chance(t, 4))
			}
			then := bench.Under(t, policy, deployment.EmbeddedOptions{Topologies: on}).Everywhere(t, suites)
			bench.AllWell(t, then, result.SkipRequirement)
			bench.PassedOn(t, then, on)

			today := bench.New(t, deployment.EmbeddedOptions{Topologies: on})
			today.Config.KnownFailing = bench.KnownFailing(t, "dated", suites)
			now := today.Everywhere(t, suites)
			bench.AllWell(t, now, result.SkipRequirement)
			failed := 0
			for _, v := range now {
				if v.Status == result.KnownFailing {
					failed++
				}
			}
			if failed == 0 {
				t.Error("the current policy passes everything")
			}
		})
	}
}
