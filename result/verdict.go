package result

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Status is the result of a test.
type Status string

// The statuses. Broken means that set-up, deployment or engine failed: neither a failure nor a pass. Flaky
// means that the test passed only when it was retried. That is not a pass.
const (
	Passed       Status = "passed"
	Failed       Status = "failed"
	Skipped      Status = "skipped"
	Broken       Status = "broken"
	KnownFailing Status = "known-failing"
	Flaky        Status = "flaky"
)

// FailsRun reports whether a status makes the run fail.
func (s Status) FailsRun() bool { return s == Failed || s == Broken || s == Flaky }

// Statuses returns all statuses in the order of reports.
func Statuses() []Status { return []Status{Failed, Broken, Flaky, Passed, KnownFailing, Skipped} }

// SkipKind is the kind of reason for a skip.
type SkipKind string

// The reasons for a skip.
const (
	SkipRequirement SkipKind = "requirement" // runOnRequirements not met
	SkipFile        SkipKind = "skipReason"  // in the file
	SkipCapability  SkipKind = "capability"  // that the engine lacks
	SkipFilter      SkipKind = "filter"      // not started: --fail-fast
	SkipNotRun      SkipKind = "not-run"     // the run broke before the test could run
	SkipInterrupted SkipKind = "interrupted" // the run was interrupted during the test
)

// Position is a position in a suite. Line and Column start at 1. The zero Position is unknown.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// IsZero reports whether the position is unknown.
func (p Position) IsZero() bool { return p == Position{} }

// Compare returns -1, 0 or 1 if p is before, equal to or after o in a file.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column))
}

// String returns file:line:column without unknown parts.
func (p Position) String() string {
	text := p.File
	for _, n := range []int{p.Line, p.Column} {
		if n == 0 {
			break
		}
		text += fmt.Sprintf(":%d", n)
	}
	return text
}

// Mismatch is a difference between expected and actual.
type Mismatch struct {
	// Path is the path in the suite, such as expectEvents[0].events[2].commandStartedEvent.command.filter.
	Path     string   `json:"path"`
	Position Position `json:"place,omitzero"`
	Message  string   `json:"message"`
	Want     string   `json:"want,omitempty"` // rendered expected value, "" if not applicable
	Got      string   `json:"got,omitempty"`  // rendered actual value, "" if not applicable
	// Diff are lines of Extended JSON: "- " is expected, "+ " actual, two spaces equal. It is "" if it adds nothing.
	Diff string `json:"diff,omitempty"`
	List *List  `json:"list,omitempty"` // in the first mismatch of a list of events, log messages, spans or documents
}

// Excerpt are lines of a suite around the line that a test failed at.
type Excerpt struct {
	Line  int      `json:"line"`  // that it failed at, from 1
	First int      `json:"first"` // the number of the first one
	Lines []string `json:"lines"`
}

// List aligns what was observed with what was expected.
type List struct {
	Name string `json:"name"` // such as "events of client0"
	Rows []Row  `json:"rows"`
}

// Row is an expected item with its counterpart.
type Row struct {
	Want    string `json:"want,omitempty"` // in a few words; "" if it is not expected
	Got     string `json:"got,omitempty"`  // "" if it is missing
	Differs bool   `json:"differs,omitempty"`
}

// TestID identifies a test of a run.
type TestID struct {
	File        string // as named by the user
	Suite       string // description of the file
	Description string // of the test
	Deployment  string // short name, such as "replicaset 8.0"
	Iteration   int    // from 1, with --count
	Cell        string // of a matrix, or ""
}

// Where returns the cell and the deployment of a test, without unknown parts.
func (id TestID) Where() string {
	if id.Cell != "" && id.Deployment != "" {
		return id.Cell + ", " + id.Deployment
	}
	return id.Cell + id.Deployment
}

// Verdict is the result of a test on a deployment, with everything that reports need to explain it.
type Verdict struct {
	Test     TestID
	Position Position
	Status   Status
	SkipKind SkipKind // Skipped
	Reason   string   // one line: why skipped, broken, known-failing, flaky
	Evidence

	Started  time.Time // zero if unknown
	Duration time.Duration
	Timings  Timings
	Rerun    []string // argument vector that runs this test again
	// Attempts are all attempts in order if there was more than one. Then Duration and Timings are totals, and the
	// other fields belong to the last attempt that did not pass.
	Attempts []*Verdict
}

// NotRun reports whether the run ended before the test could run.
func (v *Verdict) NotRun() bool { return v.SkipKind == SkipFilter || v.SkipKind == SkipNotRun }

// Evidence is what a test observed. The gaps are what Limits omitted from the lists before them.
type Evidence struct {
	Mismatches        []Mismatch     `json:"mismatches,omitempty"`
	OmittedMismatches Gap            `json:"omittedMismatches,omitzero"`
	Warnings          []string       `json:"warnings,omitempty"`   // of utr validate, if the test failed; fail points that never fired, if it passed
	Excerpt           *Excerpt       `json:"excerpt,omitempty"`    // of the suite, if it failed
	Operations        []OperationLog `json:"operations,omitempty"` // of failed tests, or on request
	OmittedOperations Gap            `json:"omittedOperations,omitzero"`
	Clients           []ClientLog    `json:"clients,omitempty"`   // in order of creation; of failed tests, or on request
	ServerLog         []LogLine      `json:"serverLog,omitempty"` // if available; of failed and broken tests
	OmittedLog        Gap            `json:"omittedLog,omitzero"`
}

// ClientLog holds the events of a client entity in order.
type ClientLog struct {
	Client  string  `json:"client"`
	Events  []Event `json:"events"`
	Omitted Gap     `json:"omitted,omitzero"` // in Events
	// Heartbeats is the number of successful heartbeats that an HTML page omits.
	Heartbeats int `json:"heartbeats,omitempty"`
}

// LogLine is a line of a server's log, without secrets.
type LogLine struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"` // host:port
	Text   string    `json:"text"`
}

// OperationLog describes a performed operation.
type OperationLog struct {
	Name     string   `json:"name"`
	Object   string   `json:"object"`
	Position Position `json:"place,omitzero"`
	Duration Duration `json:"durationMS"`
	Outcome
	Omitted Gap `json:"omitted,omitzero"` // in Decisions
}

// Timings divides the duration of a test.
type Timings struct {
	Setup      Duration `json:"setupMS"`               // initial data, entities
	Engine     Duration `json:"engineMS"`              // operations, without the following
	Server     Duration `json:"serverMS"`              // commands
	Handshakes Duration `json:"handshakesMS,omitzero"` // check-outs of connections, most of which are new
	Selection  Duration `json:"selectionMS,omitzero"`  // of servers, by the reference engine
	BackOff    Duration `json:"backOffMS,omitzero"`    // between attempts, by the reference engine
	Blocked    Duration `json:"blockedMS,omitzero"`    // commands that fail points blocked
	Waiting    Duration `json:"waitingMS"`             // wait, waitForEvent, waitForThread
	Cleanup    Duration `json:"cleanupMS"`             // disabling fail points, ending sessions, closing entities
}

// Phase is a part of the duration of a test.
type Phase struct {
	Name string // in reports
	Took *Duration
}

// Phases returns the parts in the order of reports.
func (t *Timings) Phases() []Phase {
	return []Phase{{"set-up", &t.Setup}, {"engine", &t.Engine}, {"server", &t.Server}, {"handshakes", &t.Handshakes},
		{"selection", &t.Selection}, {"back-off", &t.BackOff}, {"blocked", &t.Blocked}, {"waiting", &t.Waiting}, {"clean-up",
			&t.Cleanup}}
}

// Add adds other timings.
func (t *Timings) Add(o Timings) {
	others := o.Phases()
	for i, p := range t.Phases() {
		*p.Took += *others[i].Took
	}
}

// Sum returns the time of all phases.
func (t *Timings) Sum() (sum Duration) {
	for _, p := range t.Phases() {
		sum += *p.Took
	}
	return sum
}

// Summary counts the verdicts of a run.
type Summary struct {
	Passed, Failed, Skipped, Broken, KnownFailing, Flaky int

	NotRun, CutOff int // of Skipped: because the run ended before the test, or was interrupted during the test

	Duration    time.Duration
	CPU         time.Duration // of the process that ran the tests; 0 if unknown
	Interrupted bool          // also a Break
	Timings     Timings
	// Problems are errors of the run itself, such as a pattern that matches no
	// test or an unexpected pass. Each fails the run.
	Problems []string
	Breaks   []Break
}

// Waiting returns how long tests waited: for time to pass, for a reply, or for a processor. It is 0 if that is unknown.
func (s *Summary) Waiting() time.Duration {
	if s.CPU == 0 {
		return 0
	}
	return max(0, time.Duration(s.Timings.Sum())-s.CPU)
}

// Break is why a run or a cell of a matrix is broken, for instance because it was interrupted, its deployment died, or
// its process crashed. Tests that therefore did not run are skipped with SkipNotRun or SkipInterrupted.
type Break struct {
	Cell   string `json:"cell,omitempty"` // "" for the run itself
	Reason string `json:"reason"`
}

// Subject returns what broke. It has no host or port, so that histories of reports can be compared.
func (b Break) Subject() string {
	if b.Cell == "" {
		return "the run"
	}
	return "cell " + b.Cell
}

// Interrupted reports whether somebody ended what broke.
func (b Break) Interrupted() bool { return strings.HasPrefix(b.Reason, "interrupted") }

// Interrupt records an interruption. Only the first one counts.
func (s *Summary) Interrupt(reason string) {
	if !s.Interrupted {
		s.Interrupted, s.Breaks = true, append(s.Breaks, Break{Reason: reason})
	}
}

// RequireTests adds a problem to a successful run in which fewer tests ran.
func (s *Summary) RequireTests(least int) {
	switch ran := s.Ran(); {
	case s.ExitCode() != 0 || ran >= least:
	case ran == 0:
		s.Problems = append(s.Problems, "no test ran: skipped "+count(s.Skipped, "test"))
	default:
		s.Problems = append(s.Problems, fmt.Sprintf("%s ran, --min-tests requires %d", count(ran, "test"), least))
	}
}

// Count returns the number of tests with a status.
func (s Summary) Count(status Status) int { return *s.counter(status) }

// counter returns the counter of a status, nil if it is unknown.
func (s *Summary) counter(status Status) *int {
	return map[Status]*int{
		Failed: &s.Failed, Broken: &s.Broken, Flaky: &s.Flaky, Passed: &s.Passed, KnownFailing: &s.KnownFailing,
		Skipped: &s.Skipped,
	}[status]
}

// Add counts a verdict.
func (s *Summary) Add(v *Verdict) {
	if n := s.counter(v.Status); n != nil {
		*n++
	}
	switch {
	case v.NotRun():
		s.NotRun++
	case v.SkipKind == SkipInterrupted:
		s.CutOff++
	}
	s.Timings.Add(v.Timings)
}

// Ran returns the number of tests that ran.
func (s *Summary) Ran() int { return s.Passed + s.Failed + s.Broken + s.KnownFailing + s.Flaky }

// ExitCode returns the exit code of the program after a run: 0 for success, 1 for
// failed or flaky tests or problems, 3 for broken tests, an interruption or another break.
func (s *Summary) ExitCode() int {
	switch {
	case s.Broken > 0 || s.Interrupted || len(s.Breaks) > 0:
		return 3
	case s.Failed > 0 || s.Flaky > 0 || len(s.Problems) > 0:
		return 1
	default:
		return 0
	}
}
