// Package embedded_test sweeps what the tests of the embedded deployment take
// samples of.
package embedded_test

import (
	"testing"
	"testing/synctest"

	"github.com/unified-test-runner/utr/embedded/hostile"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// TestMillion sends a million hostile messages, while other clients work on
// undisturbed.
func TestMillion(t *testing.T) {
	seed := testkit.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := hostile.ReplicaSet(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := hostile.Storm(c, seed, 500_000); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
