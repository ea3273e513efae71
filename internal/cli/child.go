package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/runner"
)

// Child is a command line of this program that runs in a process of its own, so
// that what kills it kills nothing else.
type Child struct {
	Args []string
	// More are arguments that may hold secrets: they reach it on standard input,
	// as "@-" in Args says, and no list of processes shows them.
	More []string
	// Holds, if not nil, stays open in it, and in what it starts: a lock.
	Holds *os.File
	// Output gets what it writes to standard output and standard error.
	Output io.Writer
}

// RunChild runs a Child and returns its process id and exit code. The end of ctx interrupts it as
// a signal does, and kills it where that does not end it within ChildGrace. An
// error means that it could not start, or died without an exit code.
type RunChild func(ctx context.Context, c Child) (pid, code int, err error)

// ChildGrace is how long a child that is interrupted may clean up: the test that
// runs, what it made, and some seconds for all else.
const ChildGrace = runner.InterruptedCleanUp + deployment.CloseLimit + 15*time.Second

// spawn is RunChild with this program's own file.
func spawn(ctx context.Context, c Child) (pid, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, self, c.Args...)
	cmd.Env = inherited(os.Environ())
	cmd.Stdin = strings.NewReader(asInput(c.More))
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = ChildGrace
	if c.Holds != nil {
		cmd.ExtraFiles = []*os.File{c.Holds}
	}
	apart(cmd)
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

// asInput writes arguments as Program.expand reads them.
func asInput(args []string) string {
	var b strings.Builder
	for _, a := range args {
		line, _ := json.Marshal(a) // which a text never fails
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// notInherited names the variables that say where this process runs, and no other.
func notInherited() []string { return []string{envURI, envSingleURI} }

// inherited returns the environment of a child.
func inherited(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(notInherited(), name)
	})
}

// build identifies this program by its version and the contents of its file, which
// differ between two builds of one development version.
func build() (string, error) {
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
