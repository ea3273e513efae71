//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/utrtest"
)

// Of several runs on one deployment the second is refused and names the first,
// utr clean leaves it alone, and the third waits until it has ended.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, "--lock-name", "the first", suiteFile(t, armed))
	w.sees()
	testkit.Equal(t, "the process that has the lock", w.holder(), first.Process.Pid)
	host, _ := os.Hostname()
	user := fmt.Sprintf("is in use by a run on host %s, process %d", host, first.Process.Pid)
	p.Run("run", "--uri", w.uri, suiteFile(t, reads)).Want(3, user, "(the first)", "--wait-for-lock", "utr clean --uri")
	p.Run("clean", "--uri", w.uri).Want(3, "it is in use by a run on host ")
	testkit.Equal(t, "the fail point of the first run is on", w.ping() != nil, true)
	third := p.Start("run", "--uri", w.uri, "--wait-for-lock", "10m", suiteFile(t, reads))
	third.Hear("utr: waiting up to 10m0s for the deployment")
	first.Signal(syscall.SIGINT)
	third.End().Want(0)
	first.End().Want(3)
	w.free()
}

// A container that has the host name, and the ledger, of a run sees nothing of its
// process: its lock and its fail point stay on while it goes on.
func TestAnotherContainer(t *testing.T) {
	t.Parallel()
	container := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if err := exec.CommandContext(testkit.Context(t), "unshare", append(container, "true")...).Run(); err != nil {
		t.Skip("not proved: no namespace of process ids: ", err)
	}
	p := utrtest.NewPlace(t)
	w := newWitness(t, p.Serve("--topology", "replicaset").URI)
	first := p.Start("run", "--uri", w.uri, suiteFile(t, armed))
	w.sees()
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
