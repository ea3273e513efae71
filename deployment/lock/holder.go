package lock

import (
	"fmt"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/process/ledger"
)

// Holder is the content of a lock document: the run that holds the lock.
type Holder struct {
	// Run is the run's random id.
	Run string `bson:"run"`
	// Host and PID identify the run's process.
	Host string `bson:"host"`
	PID  int    `bson:"pid"`
	// Place is where the process id is valid, and Began when the process started: see ledger.Run.
	Place string `bson:"place,omitempty"`
	Began string `bson:"began,omitempty"`
	// Name is Options.Name.
	Name string `bson:"name,omitempty"`
	// Started, Renewed and Expires are server times; Now is the server time of the read.
	Started time.Time `bson:"started"`
	Renewed time.Time `bson:"renewed"`
	Expires time.Time `bson:"expires"`
	Now     time.Time `bson:"-"`
}

// Stale reports whether the lease has expired: the run has ended or cannot reach the deployment.
func (h *Holder) Stale() bool { return !h.Now.Before(h.Expires) }

// Over reports whether the lock can be taken over: the lease has expired, or the run has certainly ended.
func (h *Holder) Over() bool {
	fate, err := ledger.Run{Place: h.Place, Process: ledger.Process{PID: h.PID, Started: h.Began}}.Fate()
	return h.Stale() || err == nil && fate == ledger.Ended
}

// String describes the holder.
func (h *Holder) String() string {
	name := ""
	if h.Name != "" {
		name = fmt.Sprintf(" (%s)", h.Name)
	}
	return fmt.Sprintf("a run on host %s, process %d%s, since %s, last seen %s ago",
		h.Host, h.PID, name, h.Started.UTC().Format("2006-01-02 15:04:05 UTC"), h.Now.Sub(h.Renewed).Round(time.Second))
}

// HeldError means that another run holds the lock.
type HeldError struct {
	Hosts  []string
	Holder Holder
	Waited time.Duration
}

func (e *HeldError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" (waited for %s)", e.Waited)
	}
	return fmt.Sprintf("the deployment at %s is in use by %s%s\n"+
		"--wait-for-lock DURATION waits for it to finish; an unrenewed lock expires in %s; if that run was killed, utr clean --uri on its machine removes its lock",
		strings.Join(e.Hosts, ","), &e.Holder, waited, max(0, e.Holder.Expires.Sub(e.Holder.Now)).Round(time.Second))
}

// LostError means that the lock was lost during a run.
type LostError struct {
	Hosts  []string
	Holder *Holder // the new holder, or nil
	Err    error   // why the lock could not be renewed, or nil if another run took it
}

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

func (e *LostError) Unwrap() error { return e.Err }
