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

// Run is a process of this program, which made a thing or holds the lock of a
// deployment.
type Run struct {
	// Machine is its host name, for people: many machines and containers can
	// have the same.
	Machine string `json:"machine"`
	// ID is the machine's own name for itself, "" if it has none.
	ID string `json:"id,omitempty"`
	// Place is where the id of the process means something: one start of one
	// machine, and of its containers one. It is "" where that is not known.
	Place string `json:"place,omitempty"`
	Process
}

// Self is the run that is this process.
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

// Owner names the run in few letters and digits, for what has no room for more.
func (r Run) Owner() string {
	sum := sha256.Sum256([]byte(r.Place + " " + r.Started))
	return fmt.Sprintf("%d-%x", r.PID, sum[:6])
}

// Lives reports whether the run of an Owner is seen from here to be still there.
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

// Fate is what is known of a run.
type Fate int

// The fates of a run.
const (
	Unknown Fate = iota // it cannot be judged from here
	Living
	Gone // for sure
)

// Fate is the one judgement of whether a run is still there, for what is in the
// ledger and for locks. Only a process of this very place can be looked up, and
// those of an earlier start of this machine are gone.
func (r Run) Fate() (Fate, error) { return r.fate(here()) }

// fate judges from a place of a machine.
func (r Run) fate(place, id string) (Fate, error) {
	if r.Place == "" || r.Started == "" {
		return Unknown, nil
	}
	if r.Place == place {
		switch living, err := r.Living(); {
		case err != nil:
			return Unknown, err
		case living:
			return Living, nil
		}
		return Gone, nil
	}
	name, err := os.Hostname()
	if err != nil || place == "" || id == "" || r.ID != id || r.Machine != name || start(r.Place) == start(place) {
		return Unknown, nil
	}
	return Gone, nil
}

// start is the part of a place that names the start of the machine.
func start(place string) string {
	before, _, _ := strings.Cut(place, "/")
	return before
}

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
