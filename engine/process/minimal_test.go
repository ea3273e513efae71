package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
)

func minimal(t *testing.T) *process.Engine {
	t.Helper()
	command := []string{testkit.Ruby(t), filepath.Join(testkit.Root(t), "adapters", "minimal-ruby", "adapter.rb")}
	e, err := process.New(process.Options{Command: command, Environment: os.Environ(), Runner: "test"})
	testkit.Check(t, err)
	return e
}

// The example of docs/driver/engine-protocol.md performs find and insertOne and reports events
// and errors. Tests that need anything else are skipped.
func TestMinimalAdapter(t *testing.T) {
	for _, topology := range []deployment.Topology{deployment.Single, deployment.ReplicaSet} {
		t.Run(string(topology), func(t *testing.T) {
			b := suitetest.With(t, minimal(t), deployment.EmbeddedOptions{Topologies: []deployment.Topology{topology}})
			verdicts := b.Run(t, suitetest.Load(t, filepath.Join("testdata", "minimal.json")))
			suitetest.CheckVerdicts(t, verdicts, result.SkipCapability)
			for _, v := range verdicts {
				lacks := strings.HasSuffix(v.Test.Description, "is not supported")
				testkit.Equal(t, v.Test.Description+" is skipped", v.Status == result.Skipped, lacks)
			}
		})
	}
}

// The example has eleven behaviors. For all others it lacks an operation or option.
func TestMinimalBehaviors(t *testing.T) {
	t.Parallel()
	d, err := embedded.Start(testkit.Context(t), embedded.Options{Topology: embedded.ReplicaSet})
	testkit.Check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	e := minimal(t)
	t.Cleanup(func() { testkit.Check(t, e.Close()) }) // first: without servers, the driver takes seconds to exit
	shown := 0
	for _, b := range enginetest.Behaviors() {
		err := b.Check(t.Context(), e, d.URI())
		var lacks *result.Error
		switch {
		case err == nil:
			shown++
		case !errors.As(err, &lacks) || lacks.Unsupported == "":
			t.Errorf("%s: %v", b.Name, err)
		}
	}
	testkit.Equal(t, "behaviors", shown, 11)
}
