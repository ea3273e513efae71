//go:build unix

package acceptance

import (
	"context"
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
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			release, temp := t.TempDir(), t.TempDir()
			if out, err := exec.CommandContext(ctx, utr, "release", release, "--server-version", row.version).CombinedOutput(); err != nil {
				t.Fatalf("utr release: %v\n%s", err, out)
			}
			args := append([]string{"run", "--local", release, "--topology", "all", "--backoff", "none"}, row.args...)
			run := exec.CommandContext(ctx, utr, append(args, row.suites...)...)
			run.Env = append(os.Environ(), "TMPDIR="+temp, "UTR_STATE_DIR="+t.TempDir())
			began := time.Now()
			out, err := run.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			summary := lines[len(lines)-1]
			if err != nil || !wellEnded.MatchString(summary) {
				t.Fatalf("%s: %v\n%s", row.reason, err, out)
			}
			for _, line := range lines {
				if skipped.MatchString(line) && !strings.Contains(line, ": requirement: ") {
					t.Error(line)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "utr-*")); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
			t.Logf("%s in %v", summary, time.Since(began).Round(time.Millisecond))
		})
	}
}
