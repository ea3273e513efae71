package compare

import (
	"regexp"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// referenceSide is the reference engine with a policy ("" for the current one) and
// without backoff.
func referenceSide(t testing.TB, policy string) Side {
	t.Helper()
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone})
	testkit.Check(t, err)
	return newSide(t, "reference", e)
}

func newSide(t testing.TB, name string, e engine.Engine) Side {
	t.Helper()
	config := suitetest.With(t, e, deployment.EmbeddedOptions{}).Config
	config.Jobs, config.KeepEvents = 1, true
	return Side{Name: name, Config: config}
}

// of runs a suite of one test on one side.
func (s Side) of(t testing.TB, suite *specs.Suite) *result.Verdict {
	t.Helper()
	return (&suitetest.Bench{Config: s.Config}).Run(t, []*specs.Suite{suite})[0]
}

var all = []string{"replicaset", "sharded", "load-balanced", "single"}

// Two sides with the same engine do not differ, except for random differences that deviations explain. soak/compare
// runs more schedules, also with time limits. A busy machine can exceed these on one side only.
func TestSameEngine(t *testing.T) {
	left, right := referenceSide(t, ""), referenceSide(t, "")
	g, err := Storm(t.Context(), NewGenerator(5, all...), 20, 5, left, right, nil)
	testkit.Check(t, err)
	for _, f := range append(g.Findings, g.Flaky...) {
		t.Errorf("%s\n%s", f.Schedule, f.Pair.Describe("one", "other"))
	}
	if c := g.Counts; c[Same]+c[Explained] != 20 {
		t.Errorf("%s", c)
	}
	// A problem of either side is an error.
	right.Config.KnownFailing = []runner.KnownFailure{{Pattern: regexp.MustCompile("no such test"), Reason: "x"}}
	_, err = Storm(t.Context(), NewGenerator(2, plainest), 1, 1, left, right, nil)
	testkit.ErrorContains(t, err, "no such test")
}

// Storm finds an engine that lacks a rule and shrinks the schedule. Only the left engine
// passes the suite of the finding.
func TestFindsAndShrinks(t *testing.T) {
	left, right := referenceSide(t, ""), referenceSide(t, "retryable-reads@2026") // before backpressure
	seen := 0
	g, err := Storm(t.Context(), NewGenerator(1, "replicaset"), 12, 1, left, right, func(done, _ int) { seen = done })
	testkit.Check(t, err)
	if len(g.Findings) == 0 || seen != 12 {
		t.Fatalf("%s, progress until %d", g.Counts, seen)
	}
	f := g.Findings[0]
	if len(f.Smallest.Faults) > 2 {
		t.Errorf("%s is shrunk to %s", f.Schedule, f.Smallest)
	}
	text, err := f.Pair.Suite(f.Smallest)
	testkit.Check(t, err)
	suite, err := specs.Parse("found.yml", []byte(text))
	testkit.Check(t, err)
	if l, r := left.of(t, suite), right.of(t, suite); l.Status != result.Passed || r.Status != result.Failed {
		t.Errorf("%s: the left engine %s: %v, the right one %s\n%s", f.Smallest, l.Status, l.Mismatches, r.Status, text)
	}
}

// A timeout in a callback ends the transaction, not the test.
func TestDeadlineOfCallback(t *testing.T) {
	s := Schedule{Operation: "withTransaction", Topology: plainest, Options: Options{"timeoutMS": someTimeMS},
		Faults: []Fault{{BlockMS: blockedMS}}}
	root, err := parsed(suite("callback", s.test("deadline", nil)))
	testkit.Check(t, err)
	suite, err := specs.FromValue("callback", root)
	testkit.Check(t, err)
	v := referenceSide(t, "").of(t, suite)
	suitetest.CheckVerdicts(t, []*result.Verdict{v})
	if o := observe(v); len(o.Operations) < 3 ||
		o.Operations[len(o.Operations)-2] != "session.withTransaction raised timeout, TransientTransactionError" {
		t.Errorf("%q", o.Operations)
	}
}
