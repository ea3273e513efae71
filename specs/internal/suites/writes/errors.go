package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// secondError lets the retry reach a server that refuses the write for a
// reason of its own, so that the two errors can be told apart.
func secondError() *suites.File {
	f := suites.NewFile("second-error", "the error that is raised after a retry", retrying,
		"The first attempt fails by a fail point, the retry by what the command asks for. The second error says more, and is raised.",
		"The same refusal at the first attempt is not retried.")
	for _, r := range []struct {
		name, arguments string
		reply           bool // the refusal is a write error in a reply with ok 1
		code            suites.Code
	}{
		{"insertOne", "{ document: { _id: 1 } }", true, suites.DuplicateKey},
		{"updateOne", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", true, suites.FailedToParse},
		{"replaceOne", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", true, suites.ImmutableField},
		{"deleteOne", "{ filter: { $utrUnknown: 1 } }", true, suites.BadValue},
		{"findOneAndUpdate", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", false, suites.FailedToParse},
		{"findOneAndReplace", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", false, suites.ImmutableField},
		{"findOneAndDelete", "{ filter: { $utrUnknown: 1 } }", false, suites.BadValue},
	} {
		o := named(r.name)
		o.Arguments, o.Started = r.arguments, "{ "+o.Command+": "+suites.Collection+" }"
		raises := raisesPlain(r.code)
		f.Tell(o, story{Says: "is not retried after " + r.code.Name + " (R34)", Raises: raises, Attempts: 1, Replied: r.reply})
		for _, first := range []struct{ says, data, require string }{
			{"a network error", suites.Closes, ""},
			{"HostUnreachable", policy.Fails(suites.HostUnreachable), labelling},
			{"PrimarySteppedDown", policy.Fails(suites.PrimarySteppedDown), labelling},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(suites.HostUnreachable), before44},
		} {
			f.Tell(o, story{Says: "raises " + r.code.Name + " of the retry, not " + first.says + " of the first attempt (R20)", Require: first.require,
				Fails: first.data, Raises: raises, Seen: o.Attempts(1, 1, numbered), Attempts: 1, Replied: r.reply})
		}
	}
	return f
}

// noWritesPerformed has two errors of which the second says that it wrote
// nothing. The reply of the first attempt is lost by one fail point, and the
// second attempt fails by another that lets the first one pass.
func noWritesPerformed(operations []operation) *suites.File {
	const none = suites.NoWritesPerformed
	f := suites.NewFile("no-writes-performed", "errors with the label NoWritesPerformed", suites.Servers("4.4", suites.Sets),
		"The error that is raised must be one of an attempt that may have written, if there was one. The first attempt",
		"writes and its reply is lost; the error of the second one has the label or not.")
	down, interrupted := suites.PrimarySteppedDown, suites.Interrupted
	network := suites.WithLabels(suites.RaisedNetwork, label, none)
	for _, o := range operations {
		require := ""
		if o.Since != "" {
			require = onlySets
		}
		for _, s := range []struct{ says, data, raises string }{
			{"raises the network error if the retry fails with " + none + " (R21)", suites.Labelled(down, label, none), network},
			{"raises the network error if the retry fails with " + none + " and is not retryable (R21)", suites.Labelled(interrupted, none), network},
			{"raises the error of the retry if it may have written (R20)", policy.Fails(down), policy.Raises(down)},
			{"raises the error of the retry if it may have written and is not retryable (R20)", suites.Labelled(interrupted), raisesPlain(interrupted)},
		} {
			f.Tell(o, story{Says: s.says, Require: require, Points: []string{suites.SetFailPoint(suites.TransactionalWrite, suites.Times(1), "")},
				Mode: suites.SkipFirst, Fails: s.data, Raises: s.raises, Attempts: 2, Applied: true})
		}
		f.Tell(o, story{Says: "raises the error if both attempts fail with " + none + " (R22)", Require: require,
			Mode: suites.Times(2), Fails: suites.Labelled(down, label, none), Raises: suites.RaisedLabels(down, label+", "+none, ""), Attempts: 2})
	}
	return f
}

// writeErrors have the codes of retryable errors, but are not retryable.
func writeErrors() *suites.File {
	f := suites.NewFile("write-errors", "write errors with codes of retryable errors", onlySets,
		"What stands in writeErrors of a reply makes no error retryable, whatever the code.")
	for _, name := range []string{"updateOne", "replaceOne", "deleteOne"} {
		for _, c := range []suites.Code{suites.HostUnreachable, suites.HostNotFound} {
			f.Tell(named(name), story{Says: "is not retried after a write error " + c.Name + " (R34)", Raises: raisesPlain(c), Attempts: 1,
				Replied: true,
				Points: []string{suites.SetFailPoint(suites.TransactionalWrite, suites.Always,
					fmt.Sprintf("closeConnection: false, failBeforeCommitExceptionCode: %d", c.Number))}})
		}
	}
	return f
}

// notRetryable are errors that other specifications retry, resume after or
// label, and retryable writes do not.
func notRetryable() *suites.File {
	f := suites.NewFile("not-retryable", "errors that are not retryable", retrying,
		"Before 4.4 the codes are those of the list alone. Since 4.4 the label "+label+" decides, and no other label",
		"says that a write is retryable.")
	for _, name := range []string{"insertOne", "updateOne", "deleteOne", "findOneAndUpdate"} {
		tell := func(says, require, data string, c suites.Code) {
			f.Tell(named(name), suites.NotRetried(c.Name+says+" (R34)", data, raisesPlain(c)).On(require))
		}
		for _, c := range []suites.Code{
			suites.CursorNotFound, suites.MaxTimeMSExpired, suites.WriteConcernTimeout, suites.WriteConflict,
			suites.FailedToSatisfyReadPreference, suites.Interrupted,
		} {
			tell(" of a server before 4.4", before44, suites.ErrorCode(c), c)
		}
		for _, l := range []string{suites.NoWritesPerformed, suites.RetryableError, suites.SystemOverloadedError, suites.TransientTransactionError} {
			tell(" with the label "+l, labelling, suites.Labelled(suites.Interrupted, l), suites.Interrupted)
		}
		tell(" with the label NoWritesPerformed", labelling, suites.Labelled(suites.HostUnreachable, suites.NoWritesPerformed), suites.HostUnreachable)
	}
	return f
}
