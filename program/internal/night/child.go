package night

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/unified-test-runner/utr/internal/process/processgroup"
)

// Child is a command line of this program that runs in its own process, so that a crash affects only that process.
type Child struct {
	Args []string
	// More are arguments that may contain secrets. The child reads them from standard input, because Args has "@-",
	// so that process listings do not show them.
	More   []string
	Env    []string
	Holds  *os.File      // a lock that the child and its children inherit; may be nil
	Output io.Writer     // receives standard output and standard error
	Grace  time.Duration // for an interrupted child to clean up
}

// RunChild runs a Child and returns its process id and exit code. Canceling ctx interrupts it, and kills it after
// Grace. An error means that it could not start, or died without an exit code.
func RunChild(ctx context.Context, c Child) (pid, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	var more bytes.Buffer
	for _, argument := range c.More {
		_ = json.NewEncoder(&more).Encode(argument) // a string
	}
	cmd := exec.CommandContext(ctx, self, c.Args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, &more, c.Output, c.Output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = c.Grace
	if c.Holds != nil {
		cmd.ExtraFiles = []*os.File{c.Holds}
	}
	processgroup.IsolateInterruptible(cmd) // Ctrl-C reaches only this process, and is forwarded once
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("cannot start: %w", err)
	}
	pid = cmd.Process.Pid
	err = cmd.Wait()
	if code = cmd.ProcessState.ExitCode(); code < 0 {
		return pid, 0, fmt.Errorf("its process died: %s", cmd.ProcessState)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return pid, 0, fmt.Errorf("its process ended, but processes that it started ran for %s more", c.Grace)
	}
	return pid, code, nil
}
