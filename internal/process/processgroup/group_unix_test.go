//go:build unix

package processgroup_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/unified-test-runner/utr/internal/process/processgroup"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// start starts a shell script that writes "started".
func start(t *testing.T, script string) (c *exec.Cmd, out io.Reader, reaped <-chan struct{}) {
	t.Helper()
	c = exec.CommandContext(t.Context(), "sh", "-c", script)
	out, err := c.StdoutPipe()
	testkit.Check(t, err)
	started, ended := make(chan error, 1), make(chan struct{})
	processgroup.Start(c, func(err error) {
		started <- err
		_, _ = c.Process.Wait()
		close(ended)
	})
	testkit.Check(t, testkit.Receive(t, "the shell starts", started))
	_, err = io.ReadFull(out, make([]byte, len("started\n")))
	testkit.Check(t, err)
	return c, out, ended
}

// TestKill kills a shell whose child holds the shell's output open. The output ends only when both have ended.
func TestKill(t *testing.T) {
	c, out, reaped := start(t, "sleep 300 & echo started; wait")
	if !processgroup.Exists(c.Process) {
		t.Error("the group of a running shell does not exist")
	}
	testkit.Check(t, processgroup.Kill(c.Process))
	testkit.Receive(t, "the shell ends", reaped)
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, out); ended <- err }()
	testkit.Check(t, testkit.Receive(t, "the shell's child ends", ended))
}

// TestKillAfterTheExit kills a shell that has already exited.
func TestKillAfterTheExit(t *testing.T) {
	c, _, reaped := start(t, "echo started")
	testkit.Receive(t, "the shell ends", reaped)
	if processgroup.Exists(c.Process) {
		t.Error("the group of a shell that has exited exists")
	}
	if err := processgroup.Kill(c.Process); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killing a group that does not exist: %v, want os.ErrProcessDone", err)
	}
}
