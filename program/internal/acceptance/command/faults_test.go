//go:build unix

package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// many is a suite whose reports exceed a quota of 8 blocks of 512 bytes.
func many() string {
	var suite strings.Builder
	suite.WriteString("description: many\nschemaVersion: \"1.10\"\ntests:\n")
	for i := range 300 {
		fmt.Fprintf(&suite, "  - {description: \"test %d\", operations: []}\n", i)
	}
	return suite.String()
}

// When a quota is exceeded while reports are written, the run finishes and names each report that it could not write.
// A file that had an earlier report says that this run has not finished.
func TestQuotaForReports(t *testing.T) {
	dir := t.TempDir()
	earlier, fresh, small := filepath.Join(dir, "earlier.json"), filepath.Join(dir, "fresh.tap"), filepath.Join(dir,
		"small.svg")
	testkit.Check(t, os.WriteFile(earlier, []byte("earlier"), 0o600))
	end := utrtest.NewPlace(t).Launch(exec.Command("sh", "-c", `ulimit -f 8 || exit 99; exec "$@"`, "sh",
		utrtest.Command(t),
		"run", "--topology", "single", "--json", earlier, "--tap", fresh, "--badge", small, suiteFile(t, many()))).End()
	if end.Code == 99 {
		t.Skip("not verified: this shell cannot limit file sizes")
	}
	end.Want(3,
		"writing the report to "+earlier+": write "+earlier+".partial: file too large; it says that the run has not finished",
		"writing the report to "+fresh+": write "+fresh+".partial: file too large")
	testkit.Equal(t, "the text is complete", strings.HasSuffix(end.Out, "300 passed, 0 failed, 0 skipped"), true)
	left := folder(t, dir)
	testkit.Equal(t, "files", len(left), 3)
	testkit.Contains(t, left[earlier], `"breaks":[{"reason":"it has not finished"}]`)
	testkit.Contains(t, left[fresh], "\nBail out! it has not finished\n")
	testkit.Equal(t, "the small report is complete", strings.HasSuffix(strings.TrimSpace(left[small]), "</svg>"), true)
}

// A second run on one deployment is refused with the name of the first, utr clean changes nothing, and a third run
// waits until the first has ended.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, "--lock-name", "the first", suiteFile(t, armed))
	w.sees(first)
	testkit.Equal(t, "the process that has the lock", w.holder(), int64(first.Process.Pid))
	host, _ := os.Hostname()
	user := fmt.Sprintf("is in use by a run on host %s, process %d", host, first.Process.Pid)
	p.Run("run", "--uri", w.uri, suiteFile(t, reads)).Want(3, user, "(the first)", "--wait-for-lock", "utr clean --uri")
	p.Run("clean", "--uri", w.uri).Want(3, "it is in use by a run on host ")
	testkit.Equal(t, "the fail point of the first run is on", w.ping() != nil, true)
	third := p.Start("run", "--uri", w.uri, "--wait-for-lock", "10m", suiteFile(t, reads))
	third.WaitStderr("utr: waiting up to 10m0s for the deployment")
	first.Signal(syscall.SIGINT)
	third.End().Want(0)
	first.End().Want(3)
	w.free()
}

// A container with the host name and the ledger of a run cannot see its process: the run's lock and fail point stay on.
func TestAnotherContainer(t *testing.T) {
	t.Parallel()
	container := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if err := exec.CommandContext(testkit.Context(t), "unshare", append(container, "true")...).Run(); err != nil {
		t.Skip("not verified: no PID namespaces: ", err)
	}
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, suiteFile(t, armed))
	w.sees(first)
	inside := func(args ...string) utrtest.Result {
		return p.Launch(exec.Command("unshare", append(append(container, utrtest.Command(t)), args...)...)).End()
	}
	inside("clean", "--uri", w.uri).Want(3, "run utr clean there", "it is in use by a run on host ")
	inside("run", "--uri", w.uri, suiteFile(t, reads)).Want(3, "is in use by a run on host ")
	testkit.Equal(t, "the fail point of the first run is on", w.ping() != nil, true)
	first.Signal(syscall.SIGINT)
	first.End().Want(3)
	w.free()
}
