// Package pinning is for utr only. It selects the replica set member for a read by the rules of Driver Read
// Preferences, 2014-02-14. Server Selection has replaced them. A thread in a request is pinned to the member that
// answered it, and a read is tried on up to three members. Like package retry it is pure: Next maps a state and an
// input to the next state and a decision.
//
// Rules returns the table of numbered rules. Values of this package are plain data and may be used concurrently.
package pinning

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// Preference is a read preference together with secondaryAcceptableLatencyMS, then a part of it.
type Preference struct {
	selection.Preference
	Latency time.Duration
}

// The revisions. First is the behavior of 2.2, as described in "Note On Pinning".
const (
	Newest = "read-preferences@2014-02-14"
	First  = "read-preferences@2012-08"
)

// Named returns the IDs of the rules of a revision. It returns nil if the name is unknown.
func Named(name string) (ids []string) {
	lacks, known := map[string][]string{Newest: {old}, First: {same, unpins}}[name]
	for _, r := range Rules() {
		if known && !slices.Contains(lacks, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Thread is the state of an application thread. Next never modifies its argument.
type Thread struct {
	Rules     []string // IDs of the rules of the revision: see Named
	inRequest bool
	Pinned    string     // address of the member that the thread is pinned to, or ""
	by        Preference // of the read that pinned it
	Reading   *Reading   // the read in progress, nil between reads
	primary   string     // address of the last known primary
}

// Reading is a read in progress.
type Reading struct {
	Preference Preference
	ignores    bool     // of Input
	member     string   // address of the member that it was sent to
	failed     []string // addresses of members with socket errors
}

// InputKind distinguishes inputs. Each kind is a bit, so that a rule can apply to several.
type InputKind uint8

// The inputs.
const (
	StartRequest InputKind = 1 << iota // from the application
	endRequest                         // from the application
	Read                               // begins a read: all fields are set
	Answered                           // ends a read: the member has replied
	Refused                            // ends a read: the member has replied with an error
	Broken                             // a socket error: Members and Random are set
	Refreshed                          // an update of the replica set's state: Members is set
)

// Input is an event since the last decision.
type Input struct {
	Kind       InputKind
	Preference Preference
	Ignores    bool               // the command does not obey the preference: see Obeys
	Members    []selection.Server // a member that is down has type Unknown
	Random     float64            // in [0, 1)
}

// Action is what the caller must do next.
type Action uint8

// The actions.
const (
	Wait        Action = iota // for the application
	Send                      // the read to Member
	ReturnReply               // of the member, even an error; ends the read
	ReturnError               // with the error Text, or the socket error if Text is empty; ends the read
)

// String returns the name of the action in reports.
func (a Action) String() string {
	return [...]string{"wait", "send", "return reply", "return error"}[a]
}

// Decision is the result of Next.
type Decision struct {
	Action  Action
	Member  string   // of Send
	Text    string   // of ReturnError
	Refresh bool     // check the replica set as soon as possible
	Rules   []string // that fired, in order
}

// Next returns the next state and decision. It never modifies its arguments. An unexpected input ends the read with
// an error.
func Next(t Thread, in Input) (Thread, Decision) {
	s := &step{t: t, in: in}
	if in.Kind == Read {
		s.t.Reading = &Reading{Preference: in.Preference, ignores: in.Ignores}
	}
	for _, r := range table() {
		if r.on&in.Kind != 0 && !s.done && r.when(s) && slices.Contains(t.Rules, r.ID) {
			s.d.Rules = append(s.d.Rules, r.ID)
			r.then(s)
		}
	}
	if !s.done && in.Kind&(StartRequest|endRequest|Refreshed) == 0 {
		s.raise("no rule handles this input")
	}
	s.t.primary = cmp.Or(primary(in.Members), t.primary)
	return s.t, s.d
}

// step is the state of one call of Next.
type step struct {
	t    Thread
	in   Input
	d    Decision
	done bool
	left []selection.Server // candidates
}

func (s *step) end(a Action) {
	s.d.Action, s.t.Reading, s.done = a, nil, true
}

// raise ends the read with an error. The next read starts unpinned (Auto-retry).
func (s *step) raise(text string) {
	s.unpin()
	s.end(ReturnError)
	s.d.Text = text
}

func (s *step) unpin() { s.t.Pinned, s.t.by = "", Preference{} }

func (s *step) send(member string) {
	reading := *s.t.Reading
	reading.member = member
	s.t.Reading, s.d.Action, s.d.Member, s.done = &reading, Send, member, true
}

// RulesInForce lists the rules of the revision with a name, and PassingRules, by number.
func RulesInForce(name string) []retry.Rule {
	ids := Named(name)
	other := func(r retry.Rule) bool { return !slices.Contains(ids, r.ID) }
	out := append(slices.DeleteFunc(Rules(), other), PassingRules()...)
	slices.SortFunc(out, func(a, b retry.Rule) int { return cmp.Or(len(a.ID)-len(b.ID), strings.Compare(a.ID, b.ID)) })
	return out
}

// Rules lists the rules of Next in the order in which it applies them.
func Rules() []retry.Rule {
	var out []retry.Rule
	for _, r := range table() {
		out = append(out, r.Rule)
	}
	return out
}
