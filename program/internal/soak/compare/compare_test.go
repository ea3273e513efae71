// Package compare_test compares engines on many schedules.
package compare_test

import (
	"errors"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/compare"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// side runs the reference engine with a policy, "" for the current one.
func side(t *testing.T, policy string) compare.Side {
	t.Helper()
	return sideWith(t, policy, deployment.FailPointsAuto)
}

// sideWith is side with the fail points of a mode.
func sideWith(t *testing.T, policy string, mode deployment.FailPointMode) compare.Side {
	t.Helper()
	// Both sides use the same jitter, because it can determine how many attempts fit into timeoutMS (D18).
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone,
		Random: func() float64 { return 0.5 }})
	testkit.Check(t, err)
	source, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{FailPointMode: mode})
	testkit.Check(t, err)
	t.Cleanup(func() {
		testkit.Check(t, errors.Join(e.Close(), source.Close()))
	})
	return compare.Side{Name: "reference " + policy, Config: runner.Config{Engine: e, Source: source}}
}

// The same engine on both sides behaves the same, also if a proxy executes the fail points of one of them, except for
// differences that randomness explains in any engine, and every schedule is a valid suite.
func TestSameEngine(t *testing.T) {
	for _, c := range []struct {
		mode deployment.FailPointMode
		n    int
	}{{deployment.FailPointsServer, 3000}, {deployment.FailPointsProxy, 5000}} {
		t.Run(string(c.mode), func(t *testing.T) {
			g := compare.NewGenerator(int64(testkit.Seed(t)>>1), "replicaset", "sharded", "load-balanced", "single")
			found, err := compare.Storm(t.Context(), g, c.n, 5, side(t, ""), sideWith(t, "", c.mode), nil)
			testkit.Check(t, err)
			for _, f := range append(found.Findings, found.Flaky...) {
				t.Errorf("%s\n%s", f.Schedule, f.Pair.Describe("one", "other"))
			}
			if counts := found.Counts; counts[compare.Same]+counts[compare.Explained] != c.n ||
				counts[compare.Explained] > c.n/100 {
				t.Errorf("%s: %v", counts, found.Explained)
			}
		})
	}
}

// With any seed, engines that lack a rule are detected, and each generated suite is
// valid.
func TestFindsAndShrinks(t *testing.T) {
	seed := int64(testkit.Seed(t) >> 1)
	for _, policy := range []string{"retryable-reads@2026", "retryable-reads@2024"} {
		found, err := compare.Storm(t.Context(), compare.NewGenerator(seed, "replicaset"), 200, 5, side(t, ""),
			side(t, policy), nil)
		testkit.Check(t, err)
		if len(found.Findings) == 0 {
			t.Errorf("%s: no findings: %s", policy, found.Counts)
		}
		for _, f := range found.Findings {
			if !f.Shrunk { // the limit was reached
				continue
			}
			suite, err := f.Pair.Suite(f.Smallest)
			if err == nil {
				_, err = specs.Parse("found.yml", []byte(suite))
			}
			if err != nil || len(f.Smallest.Faults) > len(f.Schedule.Faults) {
				t.Errorf("%s: %s is shrunk to %s: %v\n%s", policy, f.Schedule, f.Smallest, err, suite)
			}
		}
	}
}
