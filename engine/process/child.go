package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/unified-test-runner/utr/internal/process/processgroup"
)

const (
	// endGrace is how long an adapter may run after its input is closed.
	endGrace = 5 * time.Second
	// exitGrace is how long its children may hold its outputs open after its end.
	exitGrace = time.Second
)

// child is an adapter process. It leads a process group that ends with it.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *os.File
	words   processgroup.Tail // the last output on stderr
	ended   chan struct{}     // closed when the process has ended and its stderr is closed
}

// start starts an adapter. Connection strings are sent in messages and are not
// arguments, so lists of processes show no passwords.
func start(command, environment []string, dir string) (*child, error) {
	c := &child{command: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	c.command.Env, c.command.Dir, c.command.Stderr, c.command.WaitDelay = environment, dir, &c.words, exitGrace
	stdin, failed := c.command.StdinPipe()
	stdout, theirs, err := os.Pipe()
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	c.stdin, c.stdout, c.command.Stdout = stdin, stdout, theirs
	started := make(chan error, 1)
	processgroup.Start(c.command, func(err error) {
		_ = theirs.Close()
		started <- err
		if err == nil {
			_ = c.command.Wait() // finish reports the exit status
			_ = processgroup.Kill(c.command.Process)
			close(c.ended)
			time.AfterFunc(exitGrace, func() { _ = stdout.Close() }) // children that left the group can hold it open
		}
	})
	if err := <-started; err != nil {
		_ = stdout.Close()
		return nil, fmt.Errorf("cannot start the adapter: %w", &StartError{command[0], dir, err})
	}
	return c, nil
}

// StartError reports that the program of an adapter could not be started.
type StartError struct {
	program, dir string // Dir is its working directory
	err          error
}

func (e *StartError) Unwrap() error { return e.err }

func (e *StartError) Error() string {
	switch {
	case errors.Is(e.err, exec.ErrNotFound):
		return fmt.Sprintf("there is no program %s in the PATH", e.program)
	case errors.Is(e.err, fs.ErrPermission):
		return fmt.Sprintf("%s is not an executable file", e.program)
	case errors.Is(e.err, syscall.ENOEXEC):
		return fmt.Sprintf("%s is not a program for this machine, or a script without #! in its first line", e.program)
	case errors.Is(e.err, fs.ErrNotExist) && !e.exists():
		return "there is no program " + e.program
	case errors.Is(e.err, fs.ErrNotExist):
		return fmt.Sprintf("the interpreter in the first line of %s does not exist", e.program)
	}
	return e.err.Error()
}

func (e *StartError) exists() bool {
	path := e.program
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.dir, path)
	}
	_, err := os.Stat(path)
	return err == nil
}

// finish ends the adapter and its process group, and adds the exit status and the last output on stderr to a problem.
// Without a problem, or after the end of its output, it first gives the adapter time to end on its own. One that broke
// the protocol is killed while its input is open: the end of the input could make it exit first, and the report would
// depend on chance.
func (c *child) finish(problem error) error {
	limit := time.Duration(0)
	if problem == nil || errors.Is(problem, errClosed) {
		_ = c.stdin.Close()
		limit = endGrace
	}
	var how string
	select {
	case <-c.ended:
		how = fmt.Sprintf("the adapter ended with %s", c.command.ProcessState)
	case <-time.After(limit):
		how = "the adapter was killed"
	}
	_ = processgroup.Kill(c.command.Process)
	<-c.ended
	_ = c.stdin.Close()
	_ = c.stdout.Close()
	if problem == nil {
		return nil
	}
	return c.words.Explain(fmt.Errorf("%w; %s", problem, how))
}
