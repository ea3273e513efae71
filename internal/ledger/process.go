package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Process is a process of this machine that cannot be mistaken for a later one
// with the same id.
type Process struct {
	PID int `json:"pid"`
	// Started is when it started, in the words of the operating system, and
	// where the machine may have started anew since, which start of it that was.
	Started string `json:"started"`
}

// ErrNoProcess is that no process has an id; one that has ended and that its
// parent did not ask about is none.
var ErrNoProcess = errors.New("there is no such process")

// ProcessOf identifies the process that has an id now.
func ProcessOf(pid int) (Process, error) {
	at, err := started(pid)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return Process{PID: pid, Started: at}, nil
}

// Living reports whether the process still runs.
func (p Process) Living() (bool, error) {
	at, err := started(p.PID)
	switch {
	case errors.Is(err, ErrNoProcess):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("process %d: %w", p.PID, err)
	}
	return at == p.Started, nil
}

// pollInterval is how often Kill looks whether a process is gone: nothing tells
// of the end of a process that is not a child.
const pollInterval = 10 * time.Millisecond

// Kill ends the process at once and waits until it is gone. One that is gone
// already is no error, and another one that has its id now is left alone.
func (p Process) Kill(ctx context.Context) error {
	// Found before it is looked at: where the system has handles for processes,
	// the signal reaches the one that was looked at or none.
	found, err := os.FindProcess(p.PID)
	if err != nil {
		return nil // on Windows: there is none
	}
	defer func() { _ = found.Release() }()
	if living, err := p.Living(); err != nil || !living {
		return err
	}
	if err := found.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	for {
		living, err := p.Living()
		if err != nil || !living {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("process %d was killed and is still there: %w", p.PID, context.Cause(ctx))
		}
	}
}
