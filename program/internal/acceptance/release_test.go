//go:build unix

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// An older release of a driver is installed, and fails what the list of known failures says about it: the suites of
// deviations, and official ones if they are at hand.
func TestOlderRelease(t *testing.T) {
	t.Parallel()
	const release = "4.15.5" // the release of .ci/run
	wheels := testkit.Wheels(t)
	report := filepath.Join(t.TempDir(), "report.json")
	place := utrtest.NewPlace(t, "UTR_PYTHON="+testkit.Python(t, "pip"), "UTR_CACHE_DIR="+t.TempDir(),
		"PIP_NO_INDEX=1", "PIP_FIND_LINKS="+wheels)
	suites := []string{"deviations"}
	if official, found := testkit.FindOfficial(t, "client-backpressure", "tests",
		"backpressure-retry-max-attempts.yml"); found {
		suites = append(suites, official)
	}
	args := append([]string{"run", "--engine", "pymongo@" + release, "--topology", "replicaset", "--jobs", "4", "--json",
		report}, suites...)
	out := place.Run(args...).Want(0).Out
	testkit.Contains(t, out, " known-failing (-v shows why), 0 failed, ")
	text := testkit.Read(t, report)
	testkit.Contains(t, text, `"engine":"pymongo `+release+`"`, "until 4.18.3: departs")
	if len(suites) > 1 {
		testkit.Contains(t, text, "until 4.17.0: sometimes: overload errors are not retried")
	}
	testkit.Equal(t, "a failure of another release", strings.Contains(text, "since 4.18.3"), false)
	place.Empty()
}
