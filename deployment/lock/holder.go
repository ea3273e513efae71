package lock

import (
	"fmt"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/ledger"
)

// Holder is who holds a lock, as its document says.
type Holder struct {
	// Run is a random name of the one run.
	Run string `bson:"run"`
	// Host and PID are where the run's process is.
	Host string `bson:"host"`
	PID  int    `bson:"pid"`
	// Place is where the process id means something, and Began when that process
	// started: see ledger.Run.
	Place string `bson:"place,omitempty"`
	Began string `bson:"began,omitempty"`
	// Name is what the run calls itself, "" if nothing.
	Name string `bson:"name,omitempty"`
	// Started, Renewed and Expires are the server's time, and Now is when it
	// was asked.
	Started time.Time `bson:"started"`
	Renewed time.Time `bson:"renewed"`
	Expires time.Time `bson:"expires"`
	Now     time.Time `bson:"now,omitempty"`
}

// Stale reports whether the lease is over: the run has ended, or cannot reach
// the deployment any more.
func (h *Holder) Stale() bool { return !h.Now.Before(h.Expires) }

// gone reports whether the run is known for sure to be no more, as it may be of
// a process of this machine: the end of its lease need not be waited for.
func (h *Holder) gone() bool {
	fate, err := ledger.Run{Place: h.Place, Process: ledger.Process{PID: h.PID, Started: h.Began}}.Fate()
	return err == nil && fate == ledger.Gone
}

// Over reports whether the lock means nothing any more.
func (h *Holder) Over() bool { return h.Stale() || h.gone() }

// String names a holder for people.
func (h *Holder) String() string {
	name := ""
	if h.Name != "" {
		name = fmt.Sprintf(" (%s)", h.Name)
	}
	return fmt.Sprintf("a run on host %s, process %d%s, since %s, last seen %s ago",
		h.Host, h.PID, name, h.Started.UTC().Format("2006-01-02 15:04:05 UTC"), h.Now.Sub(h.Renewed).Round(time.Second))
}

// HeldError says that another run holds the lock.
type HeldError struct {
	Hosts  []string
	Holder Holder
	Waited time.Duration
}

// Error names the other run, and what can be done.
func (e *HeldError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" (waited for %s)", e.Waited)
	}
	return fmt.Sprintf("the deployment at %s is in use by %s%s\n"+
		"--wait-for-lock DURATION waits for its end; a lock that is not renewed is free in %s; if that run was killed, utr clean --uri on its machine removes its lock",
		strings.Join(e.Hosts, ","), &e.Holder, waited, max(0, e.Holder.Expires.Sub(e.Holder.Now)).Round(time.Second))
}

// LostError says that a lock was lost in the middle of a run.
type LostError struct {
	Hosts []string
	// Holder is who has it now, nil if that is not known.
	Holder *Holder
	// Err is why it could not be renewed, nil if somebody took it.
	Err error
}

// Error says what has become of the lock.
func (e *LostError) Error() string {
	what := fmt.Sprintf("the lock of the deployment at %s was lost: ", strings.Join(e.Hosts, ","))
	switch {
	case e.Holder != nil:
		return what + e.Holder.String() + " has it now"
	case e.Err != nil:
		return what + e.Err.Error()
	}
	return what + "it was removed"
}

// Unwrap gives why it could not be renewed.
func (e *LostError) Unwrap() error { return e.Err }
