package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Child is a command line of this program that runs in a process of its own, so
// that what kills it kills nothing else.
type Child struct {
	Args []string
	// Env changes the environment that it inherits; "" takes a name out of it.
	Env map[string]string
	// Output gets what it writes to standard output and standard error.
	Output io.Writer
}

// RunChild runs a Child and gives its exit code. The end of ctx interrupts it as
// a signal does, and kills it where that does not end it within ChildGrace. An
// error means that it could not start, or died without an exit code.
type RunChild func(ctx context.Context, c Child) (code int, err error)

// ChildGrace is how long a child that is interrupted may clean up.
const ChildGrace = 45 * time.Second

// spawn is RunChild with this program's own file.
func spawn(ctx context.Context, c Child) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, c.Args...)
	cmd.Env = inherited(os.Environ(), c.Env)
	cmd.Stdout, cmd.Stderr = c.Output, c.Output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = ChildGrace
	apart(cmd)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, fmt.Errorf("it could not start: %w", err)
	}
	if code = cmd.ProcessState.ExitCode(); code < 0 {
		return 0, fmt.Errorf("its process died: %s", cmd.ProcessState)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return 0, fmt.Errorf("its process ended, and what it had started went on for %s", ChildGrace)
	}
	return code, nil
}

// inherited gives an environment with changes.
func inherited(environ []string, changes map[string]string) (out []string) {
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if _, changed := changes[name]; !changed {
			out = append(out, e)
		}
	}
	for name, value := range changes {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// build tells this program from any other, also where both are of one version
// that is being worked on: by what is in its file.
func build() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %x", Version(), sum.Sum(nil)), nil
}
