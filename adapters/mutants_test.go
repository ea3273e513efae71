package adapters

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/unified-test-runner/utr/internal/mutants"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// mutantsFail changes one expectation of tests that passed everywhere: eight of them, a
// hundred in the soak. Each must fail.
func mutantsFail(t *testing.T, b *bench.Bench, suites []*specs.Suite, verdicts []*result.Verdict) {
	t.Helper()
	many := 8
	if os.Getenv("UTR_SOAK") == "1" {
		many = 100
	}
	passed := map[source.Position]bool{}
	for _, v := range verdicts {
		if before, seen := passed[v.Position]; v.Status != result.Skipped {
			passed[v.Position] = v.Status == result.Passed && (before || !seen)
		}
	}
	var files []*source.Value // suites of one test that passed
	for _, s := range suites {
		for _, test := range s.Root.Get("tests").Elements() {
			if passed[test.Position] {
				files = append(files, s.Root.With("tests", &source.Value{Kind: source.Array, Items: []*source.Value{test}}))
			}
		}
	}
	random := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	var changed []*specs.Suite
	var of []mutants.Mutant
	for tries := 0; len(changed) < many && tries < 100*many; tries++ {
		all, _ := mutants.Of(files[random.IntN(len(files))])
		if len(all) == 0 {
			continue
		}
		m := all[random.IntN(len(all))]
		if s, err := specs.FromValue(m.Position.File, m.Root); err == nil { // else the schema refuses the change
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
