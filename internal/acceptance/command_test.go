package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

var (
	wellEnded = regexp.MustCompile(`^[1-9]\d* passed, 0 failed, \d+ skipped$`)
	skipped   = regexp.MustCompile(`^skipped \d+: `)
)

// build makes the command, as a user would.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "utr")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/utr").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// runWell has the command run suites: nothing may fail, nothing
// be skipped but for requirements, and no folder be left.
func runWell(t *testing.T, utr string, args ...string) {
	t.Helper()
	temp := t.TempDir()
	run := exec.CommandContext(testkit.Context(t), utr, append([]string{"run"}, args...)...)
	run.Env = append(os.Environ(), "TMPDIR="+temp, "UTR_STATE_DIR="+t.TempDir())
	out, err := run.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	summary := lines[len(lines)-1]
	if err != nil || !wellEnded.MatchString(summary) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range lines {
		if skipped.MatchString(line) && !strings.Contains(line, ": requirement: ") {
			t.Error(line)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "utr-*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
