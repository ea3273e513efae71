package reads

import "github.com/unified-test-runner/utr/specs/internal/suites"

// notRetryable checks that the codes are those of the list, and that labels
// say nothing of a read.
func notRetryable() *suites.File {
	f := suites.NewFile("not-retryable", "errors that are not retryable", everywhere,
		"Codes that change streams, writes or transactions look at, and error labels, make no read retryable; and a read is",
		"retryable by its code, whatever the labels.")
	labelled := suites.Servers("4.4", "")
	for _, o := range sampled() {
		for _, c := range []suites.Code{
			suites.CursorNotFound, suites.WriteConcernTimeout, suites.WriteConflict, suites.FailedToSatisfyReadPreference, suites.RetryChangeStream,
		} {
			f.Tell(o, suites.NotRetried(c.Name+" (R34)", suites.ErrorCode(c), suites.RaisedCode(c)))
		}
		for _, label := range []string{suites.RetryableWriteError, suites.RetryableError, "ResumableChangeStreamError",
			suites.TransientTransactionError} {
			f.Tell(o, suites.NotRetried("Interrupted with the label "+label+" (R34)", suites.Labelled(suites.Interrupted, label),
				suites.RaisedCode(suites.Interrupted)).On(labelled))
		}
		f.Tell(o, suites.Retried("HostUnreachable with the label NoWritesPerformed (R11)",
			suites.Labelled(suites.HostUnreachable, suites.NoWritesPerformed)).On(labelled))
	}
	return f
}

// sampled are some reads, for what does not depend on the operation.
func sampled() []operation {
	return []operation{named("collection.find"), named("collection.aggregate"), named("database.listCollections")}
}

// sequences are attempts that fail in different ways.
func sequences() *suites.File {
	f := suites.NewFile("sequences", "attempts that fail in different ways", suites.Sequences(""),
		"The error of the last attempt is raised, and decides whether there is another one. Each attempt has a failure of its own,",
		"which needs a fail point of utr's embedded deployment.")
	f.Clients = []suites.Client{suites.Observed("client", ""), suites.Observed("timed", "timeoutMS: 20000")}
	code := suites.ErrorCode
	unreachable, notFound, exceeded, interrupted := code(suites.HostUnreachable), code(suites.HostNotFound), code(suites.ExceededTimeLimit),
		code(suites.Interrupted)
	for _, o := range sampled() {
		f.Tell(o,
			story{Says: "raises the error of the retry, though it has the label NoWritesPerformed (R20)",
				Raises: suites.RaisedCode(suites.ExceededTimeLimit), Attempts: 2,
				Each: []string{unreachable, suites.Labelled(suites.ExceededTimeLimit, suites.NoWritesPerformed)}},
			story{Says: "raises the error of the retry, though it is not retryable (R20)",
				Each: []string{unreachable, interrupted}, Raises: suites.RaisedCode(suites.Interrupted), Attempts: 2},
			story{Says: "raises the network error of the retry (R20)", Each: []string{unreachable, suites.Closes},
				Raises: suites.RaisedNetwork, Attempts: 2},
			story{Says: "raises the server error of the retry after a network error (R20)",
				Each: []string{suites.Closes, notFound}, Raises: suites.RaisedCode(suites.HostNotFound), Attempts: 2},
			story{Says: "is retried after four different errors within timeoutMS (R36)", By: "timed",
				Each: []string{unreachable, suites.Closes, exceeded, notFound}, Attempts: 5},
			story{Says: "is not retried any more after an error that is not retryable within timeoutMS (R34)", By: "timed",
				Each: []string{unreachable, notFound, interrupted}, Raises: suites.RaisedCode(suites.Interrupted), Attempts: 3})
	}
	return f
}
