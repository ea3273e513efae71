//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit/bench"
)

// TestLocalRelease has utr start clusters of the binaries of a release, which
// are itself, and run suites on all topologies: nothing fails, nothing is
// skipped but for requirements, and no folder is left.
func TestLocalRelease(t *testing.T) {
	utr := build(t)
	for _, row := range []struct {
		reason, version string
		args            []string
	}{
		{"the oldest, which has no load balancing", "4.2", nil},
		{"load balancing is to be switched on", "5.0", nil},
		{"the newest, with everything on", "8.2", []string{"--auth", "on", "--tls", "--local-shards", "2", "--mongoses", "3"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			release := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), utr, "release", release, "--server-version", row.version).CombinedOutput(); err != nil {
				t.Fatalf("utr release: %v\n%s", err, out)
			}
			runLocal(t, utr, release, append(row.args, "smoke")...)
		})
	}
}

// envReleases names folders with real binaries, separated as $PATH is.
const envReleases = "UTR_LOCAL_RELEASES"

// TestRealReleases does a little of that on real binaries, where there are any.
func TestRealReleases(t *testing.T) {
	releases := filepath.SplitList(os.Getenv(envReleases))
	if len(releases) == 0 {
		t.Skipf("not proved: %s names no folder with mongod and mongos", envReleases)
	}
	utr := build(t)
	own := filepath.Join(bench.Own(t, "retryable-reads"), "collection-find.yml")
	for _, release := range releases {
		for _, args := range [][]string{{"--auth", "off", "smoke"}, {"--auth", "on", "--tls", "smoke"}, {"--jobs", "2", own}} {
			t.Run(filepath.Base(release)+" "+strings.Join(args[:2], " "), func(t *testing.T) { runLocal(t, utr, release, args...) })
		}
	}
}

// runLocal runs suites on clusters of a release, on all topologies.
func runLocal(t *testing.T, utr, release string, args ...string) {
	t.Helper()
	runWell(t, utr, append([]string{"--local", release, "--topology", "all", "--backoff", "none"}, args...)...)
}
