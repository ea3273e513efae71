package sweep

import (
	"math/rand/v2"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
)

// The embedded deployment does what a server must do: a sample on every topology at the recorded version and at
// another, or all at every version with UTR_SOAK=1 in soak/suites.
func TestServerSuites(t *testing.T) {
	suites := suitetest.Load(t, "server")
	versions := embedded.Versions()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, version := range []string{"5.0", versions[random.IntN(len(versions))]} {
		t.Run(version, func(t *testing.T) {
			b := suitetest.New(t, deployment.EmbeddedOptions{Version: version})
			verdicts := b.Everywhere(t, suitetest.Some(suites, testkit.Chance(t, 8)))
			suitetest.CheckVerdicts(t, verdicts, result.SkipRequirement)
		})
	}
}
