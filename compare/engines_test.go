package compare

import (
	"context"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// referenceSide runs the reference engine with a policy, "" for the current
// one, without sleeping its backoffs.
func referenceSide(t testing.TB, policy string) Side {
	t.Helper()
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone})
	if err != nil {
		t.Fatal(err)
	}
	return newSide(t, "reference", e)
}

func driverSide(t testing.TB) Side {
	t.Helper()
	return newSide(t, "driver", driver.New(driver.Options{}))
}

func newSide(t testing.TB, name string, e engine.Engine) Side {
	t.Helper()
	source, err := deployment.OpenEmbedded(context.Background(), deployment.EmbeddedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	})
	return Side{Name: name, Config: runner.Config{Engine: e, Source: source}}
}

// verdicts runs a suite on one side.
func verdicts(t testing.TB, s *specs.Suite, side Side) []*result.Verdict {
	t.Helper()
	var out []*result.Verdict
	config := side.Config
	config.KeepEvents = true
	config.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			out = append(out, f.Verdict)
		}
	}
	if _, err := runner.Run(context.Background(), []*specs.Suite{s}, config); err != nil {
		t.Fatal(err)
	}
	return out
}

var all = []string{"replicaset", "sharded", "load-balanced", "single"}

// Two sides that are the same engine show the same, whatever happens.
func TestSameEngine(t *testing.T) {
	g, err := Storm(context.Background(), NewGenerator(2, all...), 200, 5, referenceSide(t, ""), referenceSide(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(g.Findings, g.Flaky...) {
		t.Errorf("%s\n%s", f.Schedule, f.Pair.Describe("one", "other"))
	}
	if c := g.Counts(); c.Same != 200 || g.Schedules != 200 {
		t.Errorf("%s", c)
	}
}

// An engine that lacks a rule is found out, and the schedule that is left is
// one that a person would write: its suite passes on one side alone.
func TestFindsAndShrinks(t *testing.T) {
	for _, row := range []struct {
		why, policy string
		faults      int // at most, of the smallest schedule
	}{
		{"a policy before backpressure does not retry overload errors", "retryable-reads@2026", 2},
		{"an older one knows fewer codes, too", "retryable-reads@2024", 2},
	} {
		t.Run(row.policy, func(t *testing.T) {
			left, right := referenceSide(t, ""), referenceSide(t, row.policy)
			seen := 0
			g, err := Storm(context.Background(), NewGenerator(1, "replicaset"), 60, 2, left, right, func(p Progress) { seen = p.Done })
			if err != nil {
				t.Fatal(err)
			}
			if len(g.Findings) == 0 || seen != 60 {
				t.Fatalf("%s, %d told", g.Counts(), seen)
			}
			for _, f := range g.Findings[:min(2, len(g.Findings))] {
				if len(f.Smallest.Faults) > row.faults {
					t.Errorf("%s: %s is shrunk to %s", row.why, f.Schedule, f.Smallest)
				}
				suite, err := specs.Parse("found.yml", []byte(f.Suite))
				if err != nil {
					t.Fatalf("%v\n%s", err, f.Suite)
				}
				if v := verdicts(t, suite, left)[0]; v.Status != result.Passed {
					t.Errorf("%s: the left engine %s: %v\n%s", f.Smallest, v.Status, v.Mismatches, f.Suite)
				}
				if v := verdicts(t, suite, right)[0]; v.Status != result.Failed {
					t.Errorf("%s: the right engine %s\n%s", f.Smallest, v.Status, f.Suite)
				}
			}
		})
	}
}

// A deadline within a callback is the transaction's, not the end of the test.
func TestDeadlineOfCallback(t *testing.T) {
	suite, err := Suite("callback.yml", []Schedule{{Operation: "withTransaction", Topology: plainest,
		Options: Options{TimeoutMS: 100}, Faults: []Fault{{BlockMS: 300}}}})
	if err != nil {
		t.Fatal(err)
	}
	v := verdicts(t, suite, referenceSide(t, ""))[0]
	if v.Status != result.Passed {
		t.Fatalf("%s: %s %v", v.Status, v.Reason, v.Mismatches)
	}
	if o := Observe(v); len(o.Operations) < 3 || o.Operations[len(o.Operations)-2] != "session.withTransaction raised time-out, TransientTransactionError" {
		t.Errorf("%q", o.Operations)
	}
}
