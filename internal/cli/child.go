package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/processgroup"
	"github.com/unified-test-runner/utr/runner"
)

// Child is a command line of this program that runs in its own process, so that a crash affects only that process.
type Child struct {
	Args []string
	// More are arguments that may contain secrets. The child reads them from standard input, as "@-" in Args tells it,
	// so that process listings do not show them.
	More   []string
	Holds  *os.File  // a lock that the child and its children inherit; may be nil
	Output io.Writer // receives standard output and standard error
}

// RunChild runs a Child and returns its process id and exit code. Cancelling ctx interrupts it, and kills it after
// ChildGrace. An error means that it could not start, or died without an exit code.
type RunChild func(ctx context.Context, c Child) (pid, code int, err error)

// ChildGrace is the time for an interrupted child to clean up: the running test, what it created, and all else.
const ChildGrace = runner.InterruptedCleanUp + deployment.CloseLimit + 15*time.Second

func runChild(ctx context.Context, c Child) (pid, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, self, c.Args...)
	cmd.Env = childEnvironment(os.Environ())
	cmd.Stdin = strings.NewReader(jsonLines(c.More))
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = ChildGrace
	if c.Holds != nil {
		cmd.ExtraFiles = []*os.File{c.Holds}
	}
	processgroup.IsolateInterruptible(cmd) // Ctrl-C reaches only this process, which forwards it once
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("cannot start: %w", err)
	}
	pid = cmd.Process.Pid
	err = cmd.Wait()
	if code = cmd.ProcessState.ExitCode(); code < 0 {
		return pid, 0, fmt.Errorf("its process died: %s", cmd.ProcessState)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return pid, 0, fmt.Errorf("its process ended, but processes that it started ran for %s more", ChildGrace)
	}
	return pid, code, nil
}

// targetVariables choose the deployment of this process, but not that of its children.
var targetVariables = []string{envURI, envSingleURI}

func childEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(targetVariables, name)
	})
}

// buildID returns the version and a digest of this binary: builds of a development version may differ.
func buildID() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return fromFile(self, func(_ string, program io.Reader) (string, error) {
		sum := sha256.New()
		_, err := io.Copy(sum, program)
		return fmt.Sprintf("%s %x", Version(), sum.Sum(nil)), err
	})
}
