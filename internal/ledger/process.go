package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Process identifies a process of this machine, even if another one has its id later.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time as the operating system reports it. On Linux it includes the boot id.
	Started string `json:"started"`
}

// ErrNoProcess means that no process has an id. A zombie counts as none.
var ErrNoProcess = errors.New("there is no such process")

// ProcessOf identifies the process that currently has an id.
func ProcessOf(pid int) (Process, error) {
	at, err := started(pid)
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return Process{PID: pid, Started: at}, nil
}

// Running reports whether the process is running.
func (p Process) Running() (bool, error) {
	at, err := started(p.PID)
	switch {
	case errors.Is(err, ErrNoProcess):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("process %d: %w", p.PID, err)
	}
	return at == p.Started, nil
}

// pollInterval is how often Kill checks whether a process has ended. Only a parent is notified of that.
const pollInterval = 10 * time.Millisecond

// Kill kills the process and waits until it has ended. It does nothing if the process has already ended, even if
// another one has its id now.
func (p Process) Kill(ctx context.Context) error {
	// Find first, then check: on systems with process handles, the signal reaches the checked process or none.
	found, err := os.FindProcess(p.PID)
	if err != nil {
		return nil // on Windows: no such process
	}
	defer func() { _ = found.Release() }()
	if living, err := p.Running(); err != nil || !living {
		return err
	}
	if err := found.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	for {
		living, err := p.Running()
		if err != nil || !living {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("process %d was killed but has not ended: %w", p.PID, context.Cause(ctx))
		}
	}
}
