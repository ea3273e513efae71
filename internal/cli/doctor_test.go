package cli

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// A deployment that a run holds can be looked at, and a run cannot begin there.
func TestDoctorTakesNoLock(t *testing.T) {
	b := realBench(t)
	d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	defer func() { _ = d.Close() }()
	held, err := deployment.OpenCluster(t.Context(), deployment.ClusterOptions{URI: d.URI(), Lock: &lock.Options{Name: "another run"}, Note: func(string) {}})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, held.Close()) }()
	testkit.Equal(t, "the exit code of a run", b.utr("run --uri "+d.URI()+" smoke"), ExitBroken)
	testkit.Equal(t, "the exit code of doctor", b.utr("doctor --uri "+d.URI()+" smoke"), 0)
	if out := b.out.String(); !strings.Contains(out, "replicaset 8.0: 8.0.12; no access control; test commands; "+d.Hosts()[0]) {
		t.Errorf("it says %s", out)
	}
}
