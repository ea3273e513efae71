package main

import (
	"slices"
	"strings"
)

// Story is what can happen to an operation: which attempts fail, how, and what
// must be seen of it. Fields that are left out have the usual value.
type Story struct {
	Says    string   // the description after the operation's title, which ends with the rule of reference/retry
	Require string   // of the test, "" for what the file has
	By      string   // the client, "" for "client"
	Before  []string // operations before the fail points
	Points  []string // fail points beside or instead of those below
	Mode    string   // of failCommand, "" for once
	Fails   string   // data of failCommand, "" for no such fail point
	Each    []string // data of Sequence
	With    string   // further arguments of the operation
	Raises  string   // flow YAML of expectError, "" for a success
	After   []string // operations after it

	Attempts  int       // commands that are sent: all fail, or all but the last if nothing is raised
	Replied   bool      // but the errors stand in replies that succeed
	Carries   string    // what each attempt must have, "" for what the operation says
	Seen      []string  // command events before those of the attempts
	Then      []string  // command events after them
	Extra     bool      // further command events do not matter
	Pool      []string  // CMAP events
	ExtraPool bool      // further ones do not matter
	Applied   bool      // the write was made although an error was raised
	Outcome   []Outcome // what is left behind, nil for what the operation says

	Today string // in a dated suite: what the current policy does instead, "" if it does the same
}

// Retried is a story of one failure and a success, NotRetried of one failure, and
// Twice of two. What they happen after ends with the rule.
func Retried(after, data string) Story {
	return Story{Says: "is retried after " + after, Fails: data, Attempts: 2}
}

func NotRetried(after, data, raises string) Story {
	return Story{Says: "is not retried after " + after, Fails: data, Raises: raises, Attempts: 1}
}

func Twice(after, data, raises string) Story {
	return Story{Says: "is not retried again after a second " + after, Mode: Times(2), Fails: data, Raises: raises, Attempts: 2}
}

// On is the story with a requirement, Of by a client, and Concerned with a write
// concern error in replies that succeed: what was written stays.
func (s Story) On(require string) Story { s.Require = require; return s }
func (s Story) Of(client string) Story  { s.By = client; return s }
func (s Story) Concerned() Story        { s.Replied, s.Applied = true, s.Raises != ""; return s }

// Between is the story of a client that knows the primary and a secondary, while the primary fails every attempt.
func (s Story) Between(client, database, data string, attempts int) Story {
	s.By, s.Before, s.Seen = client, bothPinged(client), slices.Repeat(Pinged(database), 2)
	s.Mode, s.Fails, s.Attempts = Always, data, attempts
	return s
}

// But is the story of a dated suite, with what the current policy does instead.
func (s Story) But(today string) Story { s.Today = today; return s }

// Tell adds a test for each story of an operation, but for those that need an
// older server than the operation.
func (f *File) Tell(o Operation, stories ...Story) {
	for _, s := range stories {
		if require, ok := o.requires(s.Require); ok {
			s.Require = require
			f.Tests = append(f.Tests, s.test(o))
		}
	}
}

func (s Story) test(o Operation) Test {
	if s.By == "" {
		s.By = "client"
	}
	if s.Mode == "" {
		s.Mode = Times(1)
	}
	if s.Carries == "" {
		s.Carries = o.carries(s.By)
	}
	t := Test{Description: o.Title() + " " + s.Says, Require: s.Require, Operations: Join(s.Before, o.Before, s.Points), Outcome: s.Outcome,
		Says: s.Says, Today: s.Today}
	if s.Each != nil {
		t.Operations = append(t.Operations, Sequence(o.Command, s.Each...))
	}
	if s.Fails != "" {
		t.Operations = append(t.Operations, FailPoint(o.Command, s.Mode, s.Fails))
	}
	t.Operations = Join(t.Operations, []string{o.Call(s.By, s.With, s.Raises)}, s.After)
	failing := s.Attempts
	switch {
	case s.Replied:
		failing = 0
	case s.Raises == "" && failing > 0:
		failing--
	}
	if events := Join(s.Seen, o.Attempts(s.Attempts, failing, s.Carries), s.Then); len(events) > 0 {
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

// Join makes one list of several.
func Join(lists ...[]string) (out []string) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// TellInTransaction adds tests of a session's first transaction, whose first
// command is the operation: each story in it, with that rule.
func (f *File) TellInTransaction(o Operation, carries, rule string, stories ...Story) {
	for _, s := range stories {
		what, after, _ := strings.Cut(s.Says, " after ")
		s.Says = what + " in a transaction after " + after + " (" + rule + ")"
		s.Before, s.With, s.Carries = []string{OnSession("startTransaction", "client")}, InSession("client"), carries
		s.After = []string{OnSession("abortTransaction", "client")}
		f.Tell(o, s)
	}
}

// TellAfterTransaction adds the test of an operation that was in a transaction
// of its session, and is retried after it.
func (f *File) TellAfterTransaction(o Operation, inside, outside, rule string) {
	f.Tell(o, Story{Says: "is retried after the transaction of its session (" + rule + ")",
		Before: append(Begin(o, "client"), OnSession("abortTransaction", "client")),
		Fails:  Closes, With: InSession("client"), Seen: o.Attempts(1, 0, inside), Attempts: 2, Carries: outside})
}

// SameLsid compares the sessions of an operation's two attempts.
var SameLsid = Special("assertSameLsidOnLastTwoCommands", "client: client")
