package ledger

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
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
