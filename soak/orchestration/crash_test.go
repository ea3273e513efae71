//go:build unix

package orchestration

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// A cluster of which any server has crashed, one behind a router included, is
// deleted and made anew: nobody waits for a repair.
func TestCrash(t *testing.T) {
	for _, preset := range []string{"single", "replicaset", "sharded"} {
		t.Run(preset, func(t *testing.T) {
			o := utrtest.Orchestrate(t)
			configuration, err := orchestration.Preset(preset)
			testkit.Check(t, err)
			source, err := deployment.OpenOrchestration(testkit.Context(t), deployment.OrchestrationOptions{URL: o.URL,
				Clusters: []deployment.OrchestratedCluster{{Configuration: configuration.With(orchestration.Settings{})}}})
			testkit.Check(t, err)
			defer func() { testkit.Check(t, source.Close()) }()
			first, err := source.Acquire(testkit.Context(t), 0)
			testkit.Check(t, err)
			all := o.Processes()
			pid, err := strconv.Atoi(strings.Fields(all[0])[0])
			testkit.Check(t, err)
			testkit.Check(t, syscall.Kill(pid, syscall.SIGKILL))
			testkit.Until(t, "the server is gone", func() bool { return len(o.Processes()) < len(all) })
			begun := time.Now()
			source.Release(first, true)
			second, err := source.Acquire(testkit.Context(t), 0)
			testkit.Check(t, err)
			t.Logf("made anew in %s", time.Since(begun))
			if second == first {
				t.Error("a cluster of which a server has crashed is lent again")
			}
			testkit.Check(t, writes(t, second.URI()))
			source.Release(second, false)
		})
	}
}
