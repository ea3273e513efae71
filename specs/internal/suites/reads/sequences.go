package reads

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// never are errors that other specifications retry, resume after or label,
// and retryable reads do not.
var never = []suites.Code{
	{Number: 43, Name: "CursorNotFound"}, {Number: 64, Name: "WriteConcernTimeout"}, {Number: 112, Name: "WriteConflict"},
	{Number: 133, Name: "FailedToSatisfyReadPreference"}, {Number: 234, Name: "RetryChangeStream"},
}

// notRetryable checks that the codes are those of the list, and that labels
// say nothing of a read.
func notRetryable() *suites.File {
	f := &suites.File{
		Name:        "not-retryable",
		Description: "retryable reads: errors that are not retryable",
		About: []string{"Codes that change streams, writes or transactions look at, and error labels, make no read retryable; and a read is",
			"retryable by its code, whatever the labels."},
		Require:  []string{suites.Anywhere},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: objects("client", "database", "collection"),
	}
	tell := func(o suites.Operation, says, rule, data, raises string, attempts int, require ...string) {
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
			Require:     require,
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), data), o.Call("client", "", raises)},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(attempts, 1, "")}},
		})
	}
	const labelling = `{ minServerVersion: "4.4" }`
	for _, o := range sampled() {
		for _, c := range never {
			tell(o, "is not retried after "+c.Name, "R34", suites.ErrorCode(c), suites.RaisedCode(c), 1)
		}
		interrupted := others[1]
		for _, label := range []string{"RetryableWriteError", "RetryableError", "ResumableChangeStreamError", "TransientTransactionError"} {
			tell(o, "is not retried after "+interrupted.Name+" with the label "+label, "R34", suites.Labelled(interrupted, label),
				suites.RaisedCode(interrupted), 1, labelling)
		}
		tell(o, "is retried after "+retryable[0].Name+" with the label NoWritesPerformed", "R11", suites.Labelled(retryable[0], "NoWritesPerformed"), "", 2, labelling)
	}
	return f
}

// sampled are some reads, for what does not depend on the operation.
func sampled() []suites.Operation {
	return []suites.Operation{named("collection", "find"), named("collection", "aggregate"), named("database", "listCollections")}
}

// sequences are attempts that fail in different ways.
func sequences() *suites.File {
	f := &suites.File{
		Name:        "sequences",
		Description: "retryable reads: attempts that fail in different ways",
		About: []string{"The error of the last attempt is raised, and decides whether there is another one. Each attempt has a failure of its own,",
			"which needs a fail point of utr's embedded deployment."},
		Least:    "1.9",
		Require:  []string{suites.Sequences("")},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient(), suites.Observed("timed", "{ timeoutMS: 20000 }")},
		Entities: append(objects("client", "database", "collection"), objects("timed", "database", "collection")...),
	}
	unreachable, notFound, exceeded, interrupted := retryable[0], retryable[1], retryable[6], others[1]
	code := suites.ErrorCode
	for _, o := range sampled() {
		for _, s := range []struct {
			says, rule, by string
			fails          []string
			attempts       int
			raises         string
		}{
			{"raises the error of the retry, though it has the label NoWritesPerformed", "R20", "client",
				[]string{code(unreachable), suites.Labelled(exceeded, "NoWritesPerformed")}, 2, suites.RaisedCode(exceeded)},
			{"raises the error of the retry, though it is not retryable", "R20", "client",
				[]string{code(unreachable), code(interrupted)}, 2, suites.RaisedCode(interrupted)},
			{"raises the network error of the retry", "R20", "client",
				[]string{code(unreachable), suites.Closes}, 2, suites.RaisedNetwork},
			{"raises the server error of the retry after a network error", "R20", "client",
				[]string{suites.Closes, code(notFound)}, 2, suites.RaisedCode(notFound)},
			{"is retried after four different errors within timeoutMS", "R36", "timed",
				[]string{code(unreachable), suites.Closes, code(exceeded), code(notFound)}, 5, ""},
			{"is not retried any more after an error that is not retryable within timeoutMS", "R34", "timed",
				[]string{code(unreachable), code(notFound), code(interrupted)}, 3, suites.RaisedCode(interrupted)},
		} {
			failing := s.attempts
			if s.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations:  []string{suites.Sequence(o.Command, s.fails...), o.Call(s.by, "", s.raises)},
				Events:      []suites.Expected{{Client: s.by, Events: o.Attempts(s.attempts, failing, "")}},
			})
		}
	}
	return f
}
