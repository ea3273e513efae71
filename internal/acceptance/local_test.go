//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/shared"
)

// TestLocalRelease has utr start clusters of the binaries of a release, which
// are itself, and run suites on all topologies: nothing fails, nothing is
// skipped but for requirements, and no folder is left.
func TestLocalRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("whole suites on all topologies: left out of short runs")
	}
	utr := build(t)
	official := []string{}
	for _, name := range []string{"transactions", "load-balancers", "change-streams"} {
		if path, found := shared.Find(t, "specifications", name); found {
			official = append(official, path)
		}
	}
	if len(official) == 0 {
		t.Log("official suites not there: only our own")
	}
	smoke := []string{filepath.Join("..", "..", "specs", "smoke")}
	for _, row := range []struct {
		reason, version string
		args, suites    []string
	}{
		{"the default", "8.0", []string{"--jobs", "2"}, append(official, smoke...)},
		{"the oldest, which has no load balancing", "4.2", nil, smoke},
		{"load balancing is to be switched on", "5.0", nil, smoke},
		{"the newest, with everything on", "8.2", []string{"--auth", "on", "--tls", "--local-shards", "2", "--mongoses", "3"}, smoke},
	} {
		t.Run(row.version, func(t *testing.T) {
			release := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), utr, "release", release, "--server-version", row.version).CombinedOutput(); err != nil {
				t.Fatalf("utr release: %v\n%s", err, out)
			}
			t.Log(row.reason)
			runLocal(t, utr, release, append(row.args, row.suites...)...)
		})
	}
}

// envReleases names folders with real binaries, separated as $PATH is.
const envReleases = "UTR_LOCAL_RELEASES"

// TestRealReleases does a little of that on real binaries, where there are any.
func TestRealReleases(t *testing.T) {
	releases := filepath.SplitList(os.Getenv(envReleases))
	if len(releases) == 0 {
		t.Skipf("$%s names no folder with mongod and mongos: nothing is run on real ones", envReleases)
	}
	utr := build(t)
	own := filepath.Join("..", "..", "specs", "retryable-reads", "collection-find.yml")
	for _, release := range releases {
		for _, args := range [][]string{{"--auth", "off", "smoke"}, {"--auth", "on", "--tls", "smoke"}, {"--jobs", "2", own}} {
			t.Run(filepath.Base(release)+" "+strings.Join(args[:2], " "), func(t *testing.T) { runLocal(t, utr, release, args...) })
		}
	}
}

// runLocal runs suites on clusters of a release, on all topologies.
func runLocal(t *testing.T, utr, release string, args ...string) {
	t.Helper()
	runWell(t, utr, 10*time.Minute, append([]string{"--local", release, "--topology", "all", "--backoff", "none"}, args...)...)
}
