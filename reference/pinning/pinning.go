// Package pinning decides which member of a replica set a read goes to by the rules of
// Driver Read Preferences, 2014-02-14, which Server Selection has replaced: a thread that is
// in a request is pinned to the member that answered it, and a read is tried on up to three
// members. It is pure, as package retry is: Next takes a state and what happened, and gives
// the following state and a decision.
//
// The rules are numbered and stand in one table (Rules). Values of this package are plain
// data; everything may be used concurrently.
package pinning

import (
	"cmp"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

// Preference is a read preference with the client's secondaryAcceptableLatencyMS, which
// belonged to it then.
type Preference struct {
	selection.Preference
	Latency time.Duration
}

// Revision is a dated state of the specification: the numbers of its rules.
type Revision struct{ Rules []string }

// The revisions. Newest is the specification; First is what "Note On Pinning" says of 2.2.
const (
	Newest = "read-preferences@2014-02-14"
	First  = "read-preferences@2012-08"
)

// Named gives a revision by its name. An unknown name gives one without rules.
func Named(name string) (v Revision) {
	lacks, known := map[string][]string{Newest: {old}, First: {same, unpins}}[name]
	for _, r := range Rules() {
		if known && !slices.Contains(lacks, r.ID) {
			v.Rules = append(v.Rules, r.ID)
		}
	}
	return v
}

// Thread is the state of an application's thread. It is a value: Next never changes the
// one that it is given.
type Thread struct {
	Revision Revision
	// InRequest says that the thread is in a request.
	InRequest bool
	// Pinned is the address of the member that the thread is pinned to, By the preference
	// of the read that pinned it. "" is none.
	Pinned string
	By     Preference
	// Reading is the read under way, nil between reads.
	Reading *Reading
	// Primary is the address of the last primary that the client has seen.
	Primary string
}

// Reading is a read under way.
type Reading struct {
	Preference Preference
	// Member is the address that it was sent to.
	Member string
	// Failed are the addresses of members whose sockets broke.
	Failed []string
}

// InputKind distinguishes inputs.
type InputKind uint8

// The inputs.
const (
	// StartRequest and EndRequest come from the application.
	StartRequest InputKind = iota + 1
	EndRequest
	// Read begins a read: Preference, Members and Random are set.
	Read
	// Answered ends a read: the member has replied.
	Answered
	// Refused ends a read: the member has replied with an error.
	Refused
	// Broken says that the socket broke: Members and Random are set.
	Broken
	// Refreshed says that the client has looked at the set again: Members is set.
	Refreshed
)

// Input is what happened since the last decision.
type Input struct {
	Kind       InputKind
	Preference Preference
	// Members are what the client believes of the set. A member that is down has type
	// Unknown.
	Members []selection.Server
	// Random is a number in [0, 1).
	Random float64
}

// Action is what the caller has to do.
type Action uint8

// The actions.
const (
	// Wait for the application.
	Wait Action = iota
	// Send the read to Member.
	Send
	// ReturnReply ends the read with the member's reply, be it an error.
	ReturnReply
	// ReturnError ends it with the error Text, or with that of the socket if there is none.
	ReturnError
)

// String gives the action in the words of reports.
func (a Action) String() string {
	return [...]string{"wait", "send", "return reply", "return error"}[a]
}

// Decision is one step.
type Decision struct {
	Action Action
	Member string // of Send
	Text   string // of ReturnError
	// Refresh says that the client has to look at the set again as soon as it can.
	Refresh bool
	// Rules that fired, in order.
	Rules []string
}

// Next decides. It never modifies its arguments. An input that does not answer the last
// decision ends the read with an error.
func Next(t Thread, in Input) (Thread, Decision) {
	s := &step{t: t, in: in}
	if in.Kind == Read {
		s.t.Reading = &Reading{Preference: in.Preference}
	}
	for _, r := range table() {
		if r.on&(1<<in.Kind) != 0 && !s.done && r.when(s) && slices.Contains(t.Revision.Rules, r.ID) {
			s.d.Rules = append(s.d.Rules, r.ID)
			r.then(s)
		}
	}
	if !s.done && in.Kind != StartRequest && in.Kind != EndRequest && in.Kind != Refreshed {
		s.raise("no rule answers this input")
	}
	s.t.Primary = cmp.Or(primary(in.Members), t.Primary)
	return s.t, s.d
}

// step is one call of Next while the rules go over it.
type step struct {
	t    Thread
	in   Input
	d    Decision
	done bool
	// left are the members that may still be chosen.
	left []selection.Server
}

func (s *step) end(a Action) {
	s.d.Action, s.t.Reading, s.done = a, nil, true
}

func (s *step) raise(text string) {
	s.end(ReturnError)
	s.d.Text = text
}

func (s *step) unpin() { s.t.Pinned, s.t.By = "", Preference{} }

func (s *step) send(member string) {
	reading := *s.t.Reading
	reading.Member = member
	s.t.Reading, s.d.Action, s.d.Member, s.done = &reading, Send, member, true
}

// InForce lists the rules of the revision, with those of what is sent.
func (r Revision) InForce() []retry.Rule {
	return append(slices.DeleteFunc(Rules(), func(of retry.Rule) bool { return !slices.Contains(r.Rules, of.ID) }), PassingRules()...)
}

// Rules lists the rules of Next in the order in which they are looked at.
func Rules() []retry.Rule {
	var out []retry.Rule
	for _, r := range table() {
		out = append(out, r.Rule)
	}
	return out
}
