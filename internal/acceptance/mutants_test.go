package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/mutants"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// A suite in which any one expectation was changed fails, with a mismatch at
// the changed line. The official suites are mutated where they are there, our
// own always.
func TestMutantsFail(t *testing.T) {
	for _, r := range []struct {
		name     string
		dir      func(testing.TB) string
		perSuite int // bounds the mutants of one file, and so the time
	}{
		{"own", func(testing.TB) string { return own("retryable-reads") }, 14},
		{"own writes", func(testing.TB) string { return own("retryable-writes") }, 12},
		{"own backpressure", func(testing.TB) string { return own("client-backpressure") }, 7},
		{"official", func(t testing.TB) string { return official(t, "retryable-reads") }, 12},
	} {
		t.Run(r.name, func(t *testing.T) {
			b := newBench(t, deployment.EmbeddedOptions{Topologies: topologies})
			made, ran := 0, 0
			for _, suite := range load(t, r.dir(t)) {
				all := mutants.Of(suite.Root)
				made += len(all)
				chosen, byID := choose(suite, all, r.perSuite)
				for _, v := range b.run(t, chosen, nil) {
					if v.Status == result.Skipped && v.SkipKind == result.SkipRequirement {
						continue
					}
					ran++
					m := byID[v.Test.File]
					switch {
					case v.Status != result.Failed:
						t.Errorf("%s: %s: %s: the mutant %s", m.Position, m.Path, m.Change, describe(v))
					case !blames(v, m):
						t.Errorf("%s: %s: %s: the failure does not name the line: %s", m.Position, m.Path, m.Change, describe(v))
					}
				}
			}
			t.Logf("%d mutants, %d ran, all wanted to fail", made, ran)
			if ran < 400 && !testing.Short() {
				t.Errorf("only %d mutants ran, want 400 at least", ran)
			}
		})
	}
}

// choose picks mutants spread over a suite, and makes a suite with one test of
// each. The file's name tells them apart.
func choose(suite *specs.Suite, all []mutants.Mutant, perSuite int) ([]*specs.Suite, map[string]mutants.Mutant) {
	step := max(1, len(all)/perSuite)
	if testing.Short() {
		step *= 10
	}
	byID := map[string]mutants.Mutant{}
	var chosen []*specs.Suite
	for i := 0; i < len(all); i += step {
		m := all[i]
		id := fmt.Sprintf("%s mutant %d", filepath.Base(suite.File), i)
		mutated, err := specs.FromValue(id, m.Root, specs.Options{})
		if err != nil {
			// A change can break the schema as well (an empty list where one
			// element must be): that is caught before anything runs.
			continue
		}
		mutated.Tests = mutated.Tests[m.Test : m.Test+1]
		byID[id] = m
		chosen = append(chosen, mutated)
	}
	return chosen, byID
}

// blames reports whether a mismatch names the line of the change, or, where a
// list or document was changed as a whole, something inside it.
func blames(v *result.Verdict, m mutants.Mutant) bool {
	for _, mismatch := range v.Mismatches {
		if mismatch.Position.Line == m.Position.Line || m.Whole && strings.HasPrefix(mismatch.Path, m.Path) {
			return true
		}
	}
	return false
}
