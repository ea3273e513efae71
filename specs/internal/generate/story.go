package main

import (
	"cmp"
	"slices"
	"strings"
)

// Story is a scenario of an operation: which attempts fail, how, and what a test expects.
type Story struct {
	Says    string   // the description after the operation's title; it ends with a rule of the retry core
	Require string   // requirement of the test, if any
	By      string   // the client; "" for "client"
	Before  []string // operations before the fail points
	Points  []string // fail points other than those below
	Mode    string   // of failCommand; "" for as often as attempts fail
	Fails   string   // data of failCommand; "" for no such fail point
	Each    []string // data of Sequence
	With    string   // further arguments of the operation
	Raises  string   // flow YAML of expectError; "" for a success
	After   []string // operations after it

	Attempts  int       // commands sent: all fail, or all except the last if Raises is ""; 0 for as many as Each says
	Replied   bool      // the replies with errors have ok: 1, and count as successes
	Carries   string    // fields of each attempt; "" for those of the operation
	Seen      []string  // command events before those of the attempts
	Then      []string  // command events after them
	Extra     bool      // ignoreExtraEvents for command events
	Pool      []string  // CMAP events
	ExtraPool bool      // ignoreExtraEvents for CMAP events
	Applied   bool      // the write is applied although an error is raised
	Outcome   []Outcome // nil for the outcome of the operation

	Today string // in a dated suite, what the current policy does differently, if anything
}

// Retried is a story of one failure and a success, NotRetried of one failure, and Twice of two. The
// argument after ends with the rule.
func Retried(after, data string) Story {
	return Story{Says: "is retried after " + after, Fails: data, Attempts: 2}
}

func NotRetried(after, data, raises string) Story {
	return Story{Says: "is not retried after " + after, Fails: data, Raises: raises, Attempts: 1}
}

func Twice(after, data, raises string) Story {
	return Story{Says: "is not retried again after a second " + after, Mode: Times(2), Fails: data, Raises: raises, Attempts: 2}
}

// Failing is a story whose attempts fail in different ways, as Sequence does.
func Failing(says, raises string, each ...string) Story {
	return Story{Says: says, Raises: raises, Each: each}
}

// On adds a requirement, Of a client, and Concerned makes the failures write concern errors: replies have
// ok: 1, and writes are applied.
func (s Story) On(require string) Story { s.Require = require; return s }
func (s Story) Of(client string) Story  { s.By = client; return s }
func (s Story) Concerned() Story        { s.Replied, s.Applied = true, s.Raises != ""; return s }

// As returns a variant of a story, with another client and number of attempts.
func (s Story) As(says, client string, attempts int) Story {
	s.Says, s.By, s.Attempts = says, client, attempts
	return s
}

// Between adds a client that knows the primary and a secondary. The primary fails every attempt.
func (s Story) Between(client, database, data string, attempts int) Story {
	s.By, s.Before, s.Seen = client, bothPinged(client), slices.Repeat(Pinged(database), 2)
	s.Mode, s.Fails, s.Attempts = Always, data, attempts
	return s
}

// Refused adds a fail point for the handshake of a new connection. No command is sent on that connection.
func (s Story) Refused(point, database string) Story {
	s.By = cmp.Or(s.By, "client")
	s.Before, s.Points, s.Seen = Stale(s.By), []string{point}, Pinged(database)
	if s.Raises == "" {
		s.Attempts = 1
	}
	return s
}

// CheckedOut expects the check-out of Stale and those of the attempts, the first of which fail.
func (s Story) CheckedOut(failing int) Story {
	s.Pool = append([]string{CheckOut}, slices.Repeat([]string{CheckOut, CheckOutFailed}, failing)...)
	if s.Raises == "" {
		s.Pool = append(s.Pool, CheckOut)
	}
	return s
}

// But sets Today.
func (s Story) But(today string) Story { s.Today = today; return s }

// Tell adds a test for each story of an operation, except those for servers older than the operation.
func (f *File) Tell(o Operation, stories ...Story) {
	for _, s := range stories {
		if require, ok := o.requires(s.Require); ok {
			s.Require = require
			f.Tests = append(f.Tests, s.test(o))
		}
	}
}

func (s Story) test(o Operation) Test {
	s.By = cmp.Or(s.By, "client")
	s.Carries = cmp.Or(s.Carries, o.carries(s.By))
	succeeding := 0 // attempts
	if s.Raises == "" {
		succeeding = 1
	}
	if s.Each != nil && s.Attempts == 0 && s.Then == nil {
		s.Attempts = len(s.Each) + succeeding
	}
	failing := max(s.Attempts-succeeding, 0)
	s.Mode = cmp.Or(s.Mode, Times(max(failing, 1)))
	if s.Replied {
		failing = 0
	}
	t := Test{Description: o.Title() + " " + s.Says, Require: s.Require, Operations: slices.Concat(s.Before, o.Before, s.Points), Outcome: s.Outcome,
		Says: s.Says, Today: s.Today}
	if s.Each != nil {
		t.Operations = append(t.Operations, Sequence(o.Command, s.Each...))
	}
	if s.Fails != "" {
		t.Operations = append(t.Operations, FailPoint(o.Command, s.Mode, s.Fails))
	}
	t.Operations = slices.Concat(t.Operations, []string{o.Call(s.By, s.With, s.Raises)}, s.After)
	if s.Attempts > 0 {
		s.Seen = append(slices.Clone(o.Opens), s.Seen...)
	}
	if events := slices.Concat(s.Seen, o.Attempts(s.Attempts, failing, s.Carries), s.Then); len(events) > 0 {
		t.Events = append(t.Events, Expected{Client: s.By, Events: events, Extra: s.Extra})
	}
	if s.Pool != nil {
		t.Events = append(t.Events, Expected{Client: s.By, EventType: "cmap", Events: s.Pool, Extra: s.ExtraPool})
	}
	if s.Outcome == nil {
		t.Outcome = o.outcome(s.Raises == "" || s.Applied)
	}
	return t
}

// TellInTransaction adds a test for each story of an operation that is the first command of a session's
// first transaction.
func (f *File) TellInTransaction(o Operation, carries, rule string, stories ...Story) {
	for _, s := range stories {
		what, after, _ := strings.Cut(s.Says, " after ")
		s.Says = what + " in a transaction after " + after + " (" + rule + ")"
		s.Before, s.With, s.Carries = []string{OnSession("startTransaction", "client")}, InSession("client"), carries
		s.After = []string{OnSession("abortTransaction", "client")}
		f.Tell(o, s)
	}
}

// TellAfterTransaction adds a test that a retry is possible after a transaction of the same session.
func (f *File) TellAfterTransaction(o Operation, inside, outside, rule string) {
	f.Tell(o, Story{Says: "is retried after its session's transaction has ended (" + rule + ")",
		Before: append(Begin(o, "client"), OnSession("abortTransaction", "client")),
		Fails:  Closes, With: InSession("client"), Seen: o.Attempts(1, 0, inside), Attempts: 2, Carries: outside})
}

// SameLsid asserts that the two attempts of an operation have the same session.
var SameLsid = Special("assertSameLsidOnLastTwoCommands", "client: client")
