package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// A deployment that somebody else runs serves several workers, one after the
// other; initial data is read rather than made again, with the same verdicts as
// by the letter of the format.
func TestCluster(t *testing.T) {
	loaded, err := specs.Load([]string{official(t, "retryable-reads/tests/unified/find.yml"), official(t, "retryable-reads/tests/unified/handshakeError.yml")}, specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, topology := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded} {
		embedded, err := deployment.OpenEmbedded(ctx, deployment.EmbeddedOptions{Topologies: []deployment.Topology{topology}})
		if err != nil {
			t.Fatal(err)
		}
		lent, err := embedded.Acquire(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := deployment.OpenCluster(ctx, deployment.ClusterOptions{URI: lent.URI()})
		if err != nil {
			t.Fatal(err)
		}
		e, err := reference.New(reference.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, reseed := range []runner.Reseed{runner.ReseedAuto, runner.ReseedAlways} {
			summary, err := runner.Run(ctx, loaded.Suites, runner.Config{Engine: e, Source: cluster, Jobs: 4, Count: 2, Reseed: reseed, Notify: func(n result.Note) {
				if f, ok := n.(result.TestFinished); ok && (f.Verdict.Status == result.Failed || f.Verdict.Status == result.Broken) {
					t.Error(explain(f.Verdict))
				}
			}})
			if err != nil || summary.Passed == 0 {
				t.Errorf("%+v, %v", summary, err)
			}
			t.Logf("%s, reseed %q: %d passed in %s (%+v)", topology, reseed, summary.Passed, summary.Duration, summary.Timings)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
		embedded.Release(lent, false)
		if err := embedded.Close(); err != nil {
			t.Error(err)
		}
	}
}
