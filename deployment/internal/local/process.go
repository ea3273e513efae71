package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/process/processgroup"
)

// server is a process. Its output, including its log, goes to a file.
type server struct {
	Process
	place   Place
	args    []string
	secure  *tls.Config // nil without TLS
	key     string      // internal password of the servers, "" without access control
	log     string      // path
	command *exec.Cmd

	ended chan struct{} // closed when the process was reaped
}

func (s *server) address() string { return fmt.Sprintf("%s:%d", address, s.place.Port) }

// launch starts the process. Where the system supports it, the process is killed when utr ends.
func (s *server) launch(program string, book *ledger.Ledger) error {
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.command = exec.Command(program, s.args...)
	s.command.Stdout, s.command.Stderr = out, out
	s.command.Env = environment()
	started := make(chan error, 1)
	processgroup.Start(s.command, func(err error) {
		_ = out.Close() // the child has its own descriptor
		if err != nil {
			started <- fmt.Errorf("cannot start %s: %w", program, err)
			return
		}
		forget, err := book.Add(ledger.Entry{
			Kind: ledger.ChildProcess, Process: ledger.Process{PID: s.command.Process.Pid},
			Command: program + " (" + s.Name + ")",
		})
		if err == nil {
			started <- nil
		} else {
			_ = processgroup.Kill(s.command.Process) // no process may run without an entry
		}
		_ = s.command.Wait() // the state has more information than the error
		if err == nil {
			_ = forget() // utr clean ignores processes that have ended
		}
		close(s.ended)
		if err != nil && s.command.ProcessState.Exited() {
			err = nil // it exited before it could be recorded
		}
		started <- err
	})
	return <-started
}

// killLimit bounds the wait for a killed process. It can hang in the kernel on an unresponsive disk.
const killLimit = 20 * time.Second

// kill kills the process and its descendants, and waits until they have ended.
func (s *server) kill() error {
	// A process that has exited, such as a script, may have left children.
	if err := processgroup.Kill(s.command.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s (process %d): %w", s.Name, s.command.Process.Pid, err)
	}
	select {
	case <-s.ended:
	case <-time.After(killLimit):
		return fmt.Errorf("%s (process %d) was killed but has not ended after %s", s.Name, s.command.Process.Pid, killLimit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupLimit)
	defer cancel()
	_ = await(ctx, "the children of "+s.Name+" to end", func(context.Context) error {
		if processgroup.Exists(s.command.Process) {
			return errors.New("still running")
		}
		return nil
	})
	return nil
}

// groupLimit bounds the wait for a server's killed descendants. Where init does not reap orphans, as in some
// containers, they stay zombies.
const groupLimit = 2 * time.Second

// dead returns how the process ended, or nil while it runs.
func (s *server) dead() error {
	select {
	case <-s.ended:
		state := s.command.ProcessState
		return &DiedError{fmt.Sprintf("%s ended: %s%s", s.Name, ending(state), quoted(tail(s.log))), portTaken(state, s.log)}
	default:
		return nil
	}
}

// DiedError means that a server exited unexpectedly. Its text has the exit status and the last lines of the log.
type DiedError struct {
	text      string
	portTaken bool
}

func (e *DiedError) Error() string { return e.text }
