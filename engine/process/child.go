package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/processgroup"
)

const (
	// endGrace is how long an adapter may run after its input is closed.
	endGrace = 5 * time.Second
	// exitGrace is how long it may run after it closes its output.
	exitGrace = time.Second
	// lastWords is how many bytes of standard error are kept.
	lastWords = 4 << 10
)

// child is an adapter process. It leads a process group that ends with it.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	stderr  io.ReadCloser
	words   []byte        // the last output on stderr; set before drained is closed
	drained chan struct{} // closed at the end of stderr
	reaped  chan struct{} // closed when the process has ended
	state   *os.ProcessState
}

// start starts an adapter. Connection strings are sent in messages and are not
// arguments, so lists of processes show no passwords.
func start(command, environment []string, dir string) (*child, error) {
	c := &child{command: exec.Command(command[0], command[1:]...), reaped: make(chan struct{}), drained: make(chan struct{})}
	c.command.Env, c.command.Dir = environment, dir
	var errs [3]error
	c.stdin, errs[0] = c.command.StdinPipe()
	c.stdout, errs[1] = c.command.StdoutPipe()
	c.stderr, errs[2] = c.command.StderrPipe()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	processgroup.Start(c.command, func(err error) {
		started <- err
		if err == nil {
			c.state, _ = c.command.Process.Wait()
			_ = processgroup.Kill(c.command.Process) // its children can hold its output open
			close(c.reaped)
			time.AfterFunc(exitGrace, func() { _ = c.stdout.Close() }) // and so can children that left the group
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start the adapter: %w", err)
	}
	go func() {
		defer close(c.drained)
		c.words = tail(c.stderr)
	}()
	return c, nil
}

// finish ends the adapter and its process group, and adds the exit status and the
// last output on stderr to a problem. Without a problem, it first gives the adapter
// time to end on its own.
func (c *child) finish(problem error) error {
	_ = c.stdin.Close()
	limit := time.Duration(0)
	switch {
	case problem == nil:
		limit = endGrace
	case errors.Is(problem, errClosed):
		limit = exitGrace
	}
	var how string
	select {
	case <-c.reaped:
		how = fmt.Sprintf("the adapter ended with %s", c.state)
	case <-time.After(limit):
		how = "the adapter was killed"
	}
	_ = processgroup.Kill(c.command.Process)
	<-c.reaped
	select { // read all output, unless a child outside the group keeps stderr open
	case <-c.drained:
	case <-time.After(exitGrace):
	}
	_, _ = c.stdout.Close(), c.stderr.Close()
	<-c.drained
	if problem == nil {
		return nil
	}
	if words := strings.TrimSpace(string(c.words)); words != "" {
		how += "; its last words:\n" + words
	}
	return fmt.Errorf("%w; %s", problem, how)
}

// tail reads everything and returns the last bytes.
func tail(r io.Reader) (kept []byte) {
	part := make([]byte, lastWords)
	for {
		n, err := r.Read(part)
		kept = append(kept, part[:n]...)
		kept = kept[max(0, len(kept)-lastWords):]
		if err != nil {
			return kept
		}
	}
}
