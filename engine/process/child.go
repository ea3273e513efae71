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
	// endGrace is how long an adapter may take to end after its input was closed.
	endGrace = 5 * time.Second
	// exitGrace is how long it may take to end after it closed its output.
	exitGrace = time.Second
	// lastWords is how much of standard error is kept.
	lastWords = 4 << 10
)

// child is an adapter that was started here. It leads a process group, all of which
// ends with it.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser // its standard input
	out     io.ReadCloser  // its standard output
	errors  io.ReadCloser  // its standard error
	words   []byte         // the end of that, once said is closed
	said    chan struct{}  // closed when standard error is at its end
	gone    chan struct{}  // closed when it has ended and was reaped
	state   *os.ProcessState
}

// start starts an adapter. Connection strings reach it in messages, not by its
// arguments: lists of processes show no password.
func start(command, environment []string, dir string) (*child, error) {
	c := &child{command: exec.Command(command[0], command[1:]...), gone: make(chan struct{}), said: make(chan struct{})}
	c.command.Env, c.command.Dir = environment, dir
	var problems [3]error
	c.in, problems[0] = c.command.StdinPipe()
	c.out, problems[1] = c.command.StdoutPipe()
	c.errors, problems[2] = c.command.StderrPipe()
	if err := errors.Join(problems[:]...); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	processgroup.Start(c.command, func(err error) {
		started <- err
		if err == nil {
			c.state, _ = c.command.Process.Wait()
			_ = processgroup.Kill(c.command.Process) // what it started can hold its output open
			close(c.gone)
			time.AfterFunc(exitGrace, func() { _ = c.out.Close() }) // so can what left the group
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start the adapter: %w", err)
	}
	go func() {
		defer close(c.said)
		c.words = ending(c.errors)
	}()
	return c, nil
}

// finish ends the adapter and everything that it started, and adds to a problem how it
// ended and what it wrote last. Without a problem, the adapter may end by itself first.
func (c *child) finish(problem error) error {
	_ = c.in.Close()
	limit := time.Duration(0)
	switch {
	case problem == nil:
		limit = endGrace
	case errors.Is(problem, errClosed):
		limit = exitGrace
	}
	ended := c.ends(limit)
	_ = processgroup.Kill(c.command.Process)
	<-c.gone
	select { // all that it wrote is read, unless something that left its group can go on writing
	case <-c.said:
	case <-time.After(exitGrace):
	}
	_, _ = c.out.Close(), c.errors.Close()
	<-c.said
	if problem == nil {
		return nil
	}
	how := "the adapter was killed"
	if ended {
		how = fmt.Sprintf("the adapter ended with %s", c.state)
	}
	if words := strings.TrimSpace(string(c.words)); words != "" {
		how += "; its last words:\n" + words
	}
	return fmt.Errorf("%w; %s", problem, how)
}

// ends waits until the adapter has ended, up to a limit.
func (c *child) ends(limit time.Duration) bool {
	select {
	case <-c.gone:
		return true
	case <-time.After(limit):
		return false
	}
}

// ending reads everything, and returns the end of it.
func ending(r io.Reader) (kept []byte) {
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
