package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Run is a process of this program that created something or holds the lock of a deployment.
type Run struct {
	// Machine is the host name, for messages. Several machines and containers can have the same.
	Machine string `json:"machine"`
	// ID is the machine's id, "" if unknown.
	ID string `json:"id,omitempty"`
	// Place is where the process id is valid: a boot of a machine and a container. It is "" if unknown.
	Place string `json:"place,omitempty"`
	Process
}

// Self returns the run of this process.
func Self() (Run, error) {
	process, err := ProcessOf(os.Getpid())
	if err != nil {
		return Run{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return Run{}, fmt.Errorf("the name of this machine: %w", err)
	}
	r := Run{Machine: name, Process: process}
	r.Place, r.ID = here()
	return r, nil
}

// Owner returns a short name of the run, in digits, letters and a hyphen.
func (r Run) Owner() string {
	sum := sha256.Sum256([]byte(r.Place + " " + r.Started))
	return fmt.Sprintf("%d-%x", r.PID, sum[:6])
}

// Lives reports whether the run with an Owner is known to be running.
func Lives(owner string) bool {
	number, _, _ := strings.Cut(owner, "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	process, err := ProcessOf(pid)
	r := Run{Process: process}
	r.Place, _ = here()
	return err == nil && r.Owner() == owner
}

// Fate is the state of a run.
type Fate int

const (
	Unknown Fate = iota // cannot be determined from here
	Living
	Ended // certainly ended
)

// Fate determines whether a run has ended, for ledger entries and locks. Only a process in the same place can be
// looked up. Processes of an earlier boot of this machine have ended.
func (r Run) Fate() (Fate, error) { return r.fate(here()) }

func (r Run) fate(place, id string) (Fate, error) {
	if r.Place == "" || r.Started == "" {
		return Unknown, nil
	}
	if r.Place == place {
		switch living, err := r.Running(); {
		case err != nil:
			return Unknown, err
		case living:
			return Living, nil
		}
		return Ended, nil
	}
	name, err := os.Hostname()
	if err != nil || place == "" || id == "" || r.ID != id || r.Machine != name || start(r.Place) == start(place) {
		return Unknown, nil
	}
	return Ended, nil
}

// start returns the boot in a place.
func start(place string) string {
	before, _, _ := strings.Cut(place, "/")
	return before
}

// Process identifies a process of this machine, even if another one has its id later.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time as the operating system reports it. On Linux it includes the boot id.
	Started string `json:"started"`
}

// ErrNoProcess means that no process has an id. A zombie counts as none.
var ErrNoProcess = errors.New("no such process")

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

// pollInterval is how often Kill checks whether a process has ended. Only its parent would be notified.
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
