package result

import (
	"time"

	"github.com/unified-test-runner/utr/source"
)

// Status is how a test ended.
type Status string

// The verdicts. Broken means that set-up, deployment or engine failed: it
// counts neither as a test failure nor as a pass. Flaky means that the test
// passed when it was tried again after it had failed or broken, which does not
// count as a pass.
const (
	Passed       Status = "passed"
	Failed       Status = "failed"
	Skipped      Status = "skipped"
	Broken       Status = "broken"
	KnownFailing Status = "known-failing"
	Flaky        Status = "flaky"
)

// Red reports whether a verdict makes a run red: its test did not do what its
// suite says, or could not be judged.
func (s Status) Red() bool { return s == Failed || s == Broken || s == Flaky }

// Statuses lists all verdicts, in the order in which reports list them.
func Statuses() []Status { return []Status{Failed, Broken, Flaky, Passed, KnownFailing, Skipped} }

// SkipKind is the type of a skip's reason.
type SkipKind string

// The reasons to skip.
const (
	SkipRequirement SkipKind = "requirement" // runOnRequirements not met
	SkipFile        SkipKind = "skipReason"  // the file says so
	SkipCapability  SkipKind = "capability"  // the engine lacks something
	SkipFilter      SkipKind = "filter"      // --fail-fast, interruption: it was never begun
)

// Mismatch is one difference between what was expected and what was seen.
type Mismatch struct {
	// Path is the place in the expected document, such as
	// expectEvents[0].events[2].commandStartedEvent.command.filter.
	Path     string          `json:"path"`
	Position source.Position `json:"place,omitzero"`
	Message  string          `json:"message"`        // what is wrong, in a person's words
	Want     string          `json:"want,omitempty"` // rendered expected value, "" if it does not apply
	Got      string          `json:"got,omitempty"`  // rendered actual value, "" if it does not apply
	Diff     string          `json:"diff,omitempty"` // go-cmp difference of both, "" if it says no more
}

// TestID names a test within a run.
type TestID struct {
	File        string // as named by the user
	Suite       string // the file's description
	Description string // the test's description
	Deployment  string // short name of the deployment, such as "replicaset 8.0"
	Iteration   int    // from 1, with --count
	Cell        string // of a matrix; "" of a run that is not part of one
}

// Where says on what a test ran: in which cell, if it is one of a matrix, and on
// which deployment, if it came as far as that.
func (id TestID) Where() string {
	if id.Cell != "" && id.Deployment != "" {
		return id.Cell + ", " + id.Deployment
	}
	return id.Cell + id.Deployment
}

// Verdict is how one test on one deployment ended, with everything that a
// report needs to explain it.
type Verdict struct {
	Test       TestID
	Position   source.Position
	Status     Status
	SkipKind   SkipKind // Skipped
	Reason     string   // one line: why skipped, broken, known-failing, flaky
	Mismatches []Mismatch
	// OmittedMismatches says what is missing in Mismatches (Limits).
	OmittedMismatches Gap
	// Clients holds the ordered events of each client, in the order in which
	// the clients were created. Kept for failed tests and on request.
	Clients    []ClientLog
	Operations []OperationLog
	// OmittedOperations says what is missing in Operations (Limits).
	OmittedOperations Gap
	// ServerLog is what the deployment's servers logged while the test ran, if
	// they show their logs. Kept for tests that failed or broke.
	ServerLog  []LogLine
	OmittedLog Gap       // what is missing in ServerLog
	Began      time.Time // zero if unknown
	Duration   time.Duration
	Timings    Timings
	Rerun      []string // the argument vector that runs this one test again
	// Attempts holds all attempts in order where there was more than one. Then
	// Duration and Timings are those of all together, and the rest is that of
	// the last attempt that was not well.
	Attempts []*Verdict
}

// ClientLog is the ordered event log of a client entity.
type ClientLog struct {
	Client  string
	Events  []Event
	Omitted Gap // what is missing in Events
}

// LogLine is one line of a server's own log, without secrets.
type LogLine struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"` // host:port
	Text   string    `json:"text"`
}

// OperationLog is what one operation did: for reports.
type OperationLog struct {
	Name     string
	Object   string
	Position source.Position
	Outcome  Outcome
	Duration time.Duration
	Omitted  Gap // what is missing in Outcome.Decisions
}

// Timings says where the time of a test went.
type Timings struct {
	Setup   time.Duration // initial data, entities
	Engine  time.Duration // operations, less the time of commands and waits
	Server  time.Duration // between command started and its end
	Waiting time.Duration // wait, waitForEvent, waitForThread
	Cleanup time.Duration // fail points off, sessions ended, entities closed
}

// Add adds other timings.
func (t *Timings) Add(o Timings) {
	t.Setup += o.Setup
	t.Engine += o.Engine
	t.Server += o.Server
	t.Waiting += o.Waiting
	t.Cleanup += o.Cleanup
}

// Summary counts the verdicts of a run.
type Summary struct {
	Passed, Failed, Skipped, Broken, KnownFailing, Flaky int

	Duration    time.Duration
	Interrupted bool
	Timings     Timings
	// Problems are faults of the run itself: a pattern that matched nothing,
	// an unexpected pass. Any of them fails the run.
	Problems []string
}

// counter is where verdicts of a status are counted, nil for an unknown one.
func (s *Summary) counter(status Status) *int {
	return map[Status]*int{
		Failed: &s.Failed, Broken: &s.Broken, Flaky: &s.Flaky, Passed: &s.Passed, KnownFailing: &s.KnownFailing, Skipped: &s.Skipped,
	}[status]
}

// Add counts a verdict.
func (s *Summary) Add(v *Verdict) {
	if n := s.counter(v.Status); n != nil {
		*n++
	}
	s.Timings.Add(v.Timings)
}

// Ran is the number of tests that ran, however they ended.
func (s *Summary) Ran() int { return s.Passed + s.Failed + s.Broken + s.KnownFailing + s.Flaky }

// StatusCount says how many tests ended with a status.
type StatusCount struct {
	Status Status
	Tests  int
}

// Counts gives the counts of all statuses, in the order of Statuses.
func (s *Summary) Counts() []StatusCount {
	var counts []StatusCount
	for _, status := range Statuses() {
		counts = append(counts, StatusCount{status, *s.counter(status)})
	}
	return counts
}

// ExitCode is the process's exit code for a finished run: 0 all well, 1 tests
// failed or were flaky, 3 broken. (2, bad usage or invalid suite, never gets this far.)
func (s *Summary) ExitCode() int {
	switch {
	case s.Broken > 0 || s.Interrupted:
		return 3
	case s.Failed > 0 || s.Flaky > 0 || len(s.Problems) > 0:
		return 1
	default:
		return 0
	}
}
