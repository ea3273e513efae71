package main

import (
	"cmp"
	"slices"
	"strings"
)

// story is a scenario of an operation: which attempts fail, how, and what a test expects.
type story struct {
	Says    string // the description after the operation's title; it ends with a rule of the retry core
	Require requirement
	By      string  // the client; "" for "client"
	Before  []value // operations before the fail points
	Points  []value // fail points other than those below
	Mode    value   // of failCommand; nil for as often as attempts fail
	Fails   value   // data of failCommand; nil for no such fail point
	Each    []value // data of sequence
	With    value   // further arguments of the operation
	Raises  value   // expectError; nil for a success
	After   []value // operations after it

	Attempts  int       // commands sent: all fail, or all except the last if Raises is nil; 0 for as many as Each says
	Replied   bool      // the replies with errors have ok: 1, and count as successes
	Carries   value     // fields of each attempt; nil for the fields of the operation
	Seen      []value   // command events before the events of the attempts
	Then      []value   // command events after them
	Extra     bool      // ignoreExtraEvents for command events
	Pool      []value   // CMAP events
	ExtraPool bool      // ignoreExtraEvents for CMAP events
	Applied   bool      // the write is applied although an error is raised
	Outcome   []outcome // nil for the outcome of the operation
	Tries     []try     // attempts with spans; nil for a story of events and outcomes

	Today string // in a dated suite: what the current policy does differently; "" for nothing
}

// retried is a story of one failure and a success, notRetried of one failure, and failedTwice of two. The
// argument after ends with the rule.
func retried(after string, data value) story {
	return story{Says: "is retried after " + after, Fails: data, Attempts: 2}
}

func notRetried(after string, data, raises value) story {
	return story{Says: "is not retried after " + after, Fails: data, Raises: raises, Attempts: 1}
}

func failedTwice(after string, data, raises value) story {
	return story{Says: "is not retried again after a second " + after, Mode: times(2), Fails: data, Raises: raises,
		Attempts: 2}
}

// failedInTurn is a story whose attempts fail in different ways, as in func sequence.
func failedInTurn(says string, raises value, each ...value) story {
	return story{Says: says, Raises: raises, Each: each}
}

// requiring adds a requirement.
func (s story) requiring(r requirement) story {
	s.Require = r
	return s
}

// byClient sets the client.
func (s story) byClient(client string) story {
	s.By = client
	return s
}

// asWriteConcernError makes the failures write concern errors: replies have ok: 1, and writes are applied.
func (s story) asWriteConcernError() story {
	s.Replied, s.Applied = true, s.Raises != nil
	return s
}

// variant returns a variant of a story, with another client and number of attempts.
func (s story) variant(says, client string, attempts int) story {
	s.Says, s.By, s.Attempts = says, client, attempts
	return s
}

// betweenMembers adds a client that has discovered the primary and a secondary. The primary fails every attempt.
func (s story) betweenMembers(client, database string, data value, attempts int) story {
	s.By, s.Before, s.Seen = client, bothPinged(client), slices.Repeat(pinged(database), 2)
	s.Mode, s.Fails, s.Attempts = always, data, attempts
	return s
}

// withoutConnection adds a fail point for the handshake of a new connection. No command is sent on that connection.
func (s story) withoutConnection(point value, database string) story {
	s.By = cmp.Or(s.By, "client")
	s.Before, s.Points, s.Seen = stale(s.By), []value{point}, pinged(database)
	if s.Raises == nil {
		s.Attempts = 1
	}
	return s
}

// withCheckOuts expects the check-out of stale and the check-outs of the attempts. The first of these fail.
func (s story) withCheckOuts(failing int) story {
	s.Pool = append([]value{checkOutStarted}, slices.Repeat([]value{checkOutStarted, checkOutFailed}, failing)...)
	if s.Raises == nil {
		s.Pool = append(s.Pool, checkOutStarted)
	}
	return s
}

// differsToday sets what the current policy does.
func (s story) differsToday(today string) story {
	s.Today = today
	return s
}

// add adds a test for each story of an operation, except those for servers older than the operation.
func (f *file) add(o operation, stories ...story) {
	for _, s := range stories {
		if o.Since == "" || s.Require.Max == "" {
			s.Require = s.Require.since(o.Since)
			f.Tests = append(f.Tests, s.test(o))
		}
	}
}

func (s story) test(o operation) test {
	s.By = cmp.Or(s.By, "client")
	s.Carries = cmp.Or(s.Carries, o.carries(s.By))
	succeeding := 0 // attempts
	if s.Raises == nil {
		succeeding = 1
	}
	if s.Each != nil && s.Attempts == 0 && s.Then == nil {
		s.Attempts = len(s.Each) + succeeding
	}
	failing := max(s.Attempts-succeeding, 0)
	s.Mode = cmp.Or(s.Mode, times(max(failing, 1)))
	if s.Replied {
		failing = 0
	}
	t := test{Description: o.title() + " " + s.Says, Require: s.Require,
		Operations: slices.Concat(s.Before, o.Before, s.Points), Outcome: s.Outcome,
		Says: s.Says, Today: s.Today}
	if s.Each != nil {
		t.Operations = append(t.Operations, sequence(o.Command, s.Each...))
	}
	if s.Fails != nil {
		t.Operations = append(t.Operations, failPoint(s.Mode, s.Fails, o.Command))
	}
	t.Operations = slices.Concat(t.Operations, []value{o.call(s.By, s.With, s.Raises)}, s.After)
	if s.Attempts > 0 {
		s.Seen = append(slices.Clone(o.Opens), s.Seen...)
	}
	if events := slices.Concat(s.Seen, o.attempts(s.Attempts, failing, s.Carries), s.Then); len(events) > 0 {
		t.Events = append(t.Events, expected{Client: s.By, Events: events, Extra: s.Extra})
	}
	if s.Pool != nil {
		t.Events = append(t.Events, expected{Client: s.By, EventType: "cmap", Events: s.Pool, Extra: s.ExtraPool})
	}
	switch {
	case s.Tries != nil:
		t.Spans, t.Client = []value{o.span(s.Tries...)}, s.By
	case s.Outcome == nil:
		t.Outcome = o.outcome(s.Raises == nil || s.Applied)
	}
	return t
}

// addInTransaction adds a test for each story of an operation that is the first command of a session's
// first transaction.
func (f *file) addInTransaction(o operation, carries value, rule string, stories ...story) {
	for _, s := range stories {
		what, after, _ := strings.Cut(s.Says, " after ")
		s.Says = what + " in a transaction after " + after + " (" + rule + ")"
		s.Before, s.With, s.Carries = []value{onSession("startTransaction", "client")}, inSession("client"), carries
		s.After = []value{onSession("abortTransaction", "client")}
		f.add(o, s)
	}
}

// addAfterTransaction adds a test that a retry is possible after a transaction of the same session.
func (f *file) addAfterTransaction(o operation, inside, outside value, rule string) {
	f.add(o, story{Says: "is retried after its session's transaction has ended (" + rule + ")",
		Before: append(begin(o, "client"), onSession("abortTransaction", "client")),
		Fails:  closes, With: inSession("client"), Seen: o.attempts(1, 0, inside), Attempts: 2, Carries: outside})
}

// sameLsid asserts that the two attempts of an operation have the same session.
var sameLsid = runnerOperation("assertSameLsidOnLastTwoCommands", "client", "client")
