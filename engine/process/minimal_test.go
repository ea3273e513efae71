package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/bench"
	"github.com/unified-test-runner/utr/result"
)

// The example of docs/engine-protocol.md does what it is said to: it performs find and
// insertOne, reports events and errors, and has a test skipped for what it lacks.
func TestMinimalAdapter(t *testing.T) {
	command := []string{testkit.Ruby(t), filepath.Join(testkit.Root(t), "adapters", "minimal-ruby", "adapter.rb")}
	for _, topology := range []deployment.Topology{deployment.Single, deployment.ReplicaSet} {
		t.Run(string(topology), func(t *testing.T) {
			e, err := process.New(process.Options{Command: command, Environment: os.Environ(), Runner: "test"})
			testkit.Check(t, err)
			b := bench.With(t, e, deployment.EmbeddedOptions{Topologies: []deployment.Topology{topology}})
			verdicts := b.Run(t, bench.Load(t, filepath.Join("testdata", "minimal.json")))
			bench.AllWell(t, verdicts, result.SkipCapability)
			for _, v := range verdicts {
				lacks := strings.HasSuffix(v.Test.Description, "is not supported")
				testkit.Equal(t, v.Test.Description+" is skipped", v.Status == result.Skipped, lacks)
			}
		})
	}
}
