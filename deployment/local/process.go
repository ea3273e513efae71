package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/processgroup"
)

// server is a running process. What it prints, which is its log, goes to a
// file.
type server struct {
	Process
	place   Place
	args    []string
	secure  *tls.Config // nil: no TLS
	key     string      // the servers' password among themselves, "" without access control
	log     string      // path
	command *exec.Cmd

	ended chan struct{} // closed once it is gone and was reaped
	err   error         // how it ended; read after ended
}

// address is host:port.
func (s *server) address() string { return fmt.Sprintf("%s:%d", address, s.place.Port) }

// launch starts the process. It dies with this one where the system can do that.
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
		_ = out.Close() // the child has its own
		if err != nil {
			started <- fmt.Errorf("cannot start %s: %w", program, err)
			return
		}
		forget, err := book.Add(ledger.Entry{
			Kind: ledger.ChildProcess, Process: ledger.Process{PID: s.command.Process.Pid}, Command: program + " (" + s.Name + ")",
		})
		if err == nil {
			started <- nil
		} else {
			_ = processgroup.Kill(s.command.Process) // nothing may run that nobody remembers
		}
		_ = s.command.Wait() // the state says more than the error
		s.err = endedError(s.command.ProcessState)
		if err == nil {
			_ = forget() // utr clean leaves a process that is gone alone
		}
		close(s.ended)
		if err != nil && s.command.ProcessState.Exited() {
			err = nil // it was gone before it could be remembered
		}
		started <- err
	})
	return <-started
}

// killLimit is how long a killed process may take to go. It can hang in the
// kernel, on a disk that does not answer.
const killLimit = 20 * time.Second

// kill ends the process and all that it started, and waits for it.
func (s *server) kill() error {
	// One that has ended may have left something, as when it is a script.
	if err := processgroup.Kill(s.command.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s (process %d): %w", s.Name, s.command.Process.Pid, err)
	}
	select {
	case <-s.ended:
	case <-time.After(killLimit):
		return fmt.Errorf("%s (process %d) was killed and is still there after %s", s.Name, s.command.Process.Pid, killLimit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupLimit)
	defer cancel()
	_ = await(ctx, "what "+s.Name+" started to go", func(context.Context) error {
		if processgroup.Exists(s.command.Process) {
			return errors.New("it is there")
		}
		return nil
	})
	return nil
}

// groupLimit is how long what a server started is waited for: it was killed,
// and where nobody asks how it ended, as in some containers, it stays listed
// for ever.
const groupLimit = 2 * time.Second

// dead gives how the process ended, nil while it runs.
func (s *server) dead() error {
	select {
	case <-s.ended:
		return &DiedError{Name: s.Name, Status: s.err.Error(), Log: tail(s.log), portTaken: portTaken(s.command.ProcessState, s.log)}
	default:
		return nil
	}
}

// watch cancels a context, with the reason, when the process ends before it.
func (s *server) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	go func() {
		select {
		case <-s.ended:
			cancel(s.dead())
		case <-ctx.Done():
		}
	}()
}

// DiedError reports a server that ended though nobody asked it to.
type DiedError struct {
	Name   string // of the process, such as rs0-1
	Status string // exit status or signal, in words
	Log    string // its last lines

	portTaken bool
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("%s ended: %s%s", e.Name, e.Status, quoted(e.Log))
}
