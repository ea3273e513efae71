package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// secondError lets the retry reach a server that refuses the write for a
// reason of its own, so that the two errors can be told apart.
func secondError() *suites.File {
	f := &suites.File{
		Name:        "second-error",
		Description: "retryable writes: the error that is raised after a retry",
		About: []string{"The first attempt fails by a fail point, the retry by what the command asks for. The second error says more, and is raised.",
			"The same refusal at the first attempt is not retried."},
		Require:  []string{requirement(suites.Operation{})},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: objects("client", "collection"),
	}
	for _, r := range []struct {
		name, arguments string
		reply           bool // the refusal is a write error in a reply with ok 1
		code            suites.Code
	}{
		{"insertOne", "{ document: { _id: 1 } }", true, suites.Code{Number: 11000, Name: "DuplicateKey"}},
		{"updateOne", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", true, suites.Code{Number: 9, Name: "FailedToParse"}},
		{"replaceOne", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", true, suites.Code{Number: 66, Name: "ImmutableField"}},
		{"deleteOne", "{ filter: { $utrUnknown: 1 } }", true, suites.Code{Number: 2, Name: "BadValue"}},
		{"findOneAndUpdate", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", false, suites.Code{Number: 9, Name: "FailedToParse"}},
		{"findOneAndReplace", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", false, suites.Code{Number: 66, Name: "ImmutableField"}},
		{"findOneAndDelete", "{ filter: { $utrUnknown: 1 } }", false, suites.Code{Number: 2, Name: "BadValue"}},
	} {
		o := named("collection", r.name, "")
		o.Arguments, o.Started = r.arguments, "{ "+o.Command+": "+suites.Collection+" }"
		refused := suites.FailedEvent(o.Command)
		if r.reply {
			refused = suites.SucceededEvent(o.Command)
		}
		started := suites.StartedEvent(suites.Merge(o.Started, numbered), o.Command, o.Database)
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s is not retried after %s (R34)", o.Title(), r.code.Name),
			Operations:  []string{o.Call("client", "", raisesPlain(r.code))},
			Events:      []suites.Expected{{Client: "client", Events: []string{started, refused}}},
			Outcome:     o.Outcome(false),
		})
		for _, first := range []struct{ says, data, require string }{
			{"a network error", suites.Closes, ""},
			{"HostUnreachable", suites.Labelled(coded("HostUnreachable"), label), since44(o, every)},
			{"PrimarySteppedDown", suites.Labelled(coded("PrimarySteppedDown"), label), since44(o, every)},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(coded("HostUnreachable")), before44},
		} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s raises %s of the retry, not %s of the first attempt (R20)", o.Title(), r.code.Name, first.says),
				Require:     require(first.require),
				Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), first.data), o.Call("client", "", raisesPlain(r.code))},
				Events:      []suites.Expected{{Client: "client", Events: []string{started, suites.FailedEvent(o.Command), started, refused}}},
				Outcome:     o.Outcome(false),
			})
		}
	}
	return f
}

// noWritesPerformed has two errors of which the second says that it wrote
// nothing. The reply of the first attempt is lost by one fail point, and the
// second attempt fails by another that lets the first one pass.
func noWritesPerformed(operations []suites.Operation) *suites.File {
	const none = "NoWritesPerformed"
	f := &suites.File{
		Name:        "no-writes-performed",
		Description: "retryable writes: errors with the label NoWritesPerformed",
		About: []string{"The error that is raised must be one of an attempt that may have written, if there was one. The first attempt",
			"writes and its reply is lost; the error of the second one has the label or not."},
		Require:  []string{`{ minServerVersion: "4.4", topologies: [ replicaset ] }`},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: objects("client", "collection"),
	}
	lost := suites.SetFailPoint(transactionalWrite, suites.Times(1), "")
	for _, o := range operations {
		require := []string(nil)
		if o.Since != "" {
			require = []string{onlySets(o)}
		}
		for _, s := range []struct {
			says, rule, data, raises string
		}{
			{"raises the network error if the retry fails with " + none, "R21", suites.Labelled(coded("PrimarySteppedDown"), label, none),
				"{ isClientError: true, errorLabelsContain: [ " + label + " ], errorLabelsOmit: [ " + none + " ] }"},
			{"raises the network error if the retry fails with " + none + " and is not retryable", "R21", suites.Labelled(interrupted, none),
				"{ isClientError: true, errorLabelsContain: [ " + label + " ], errorLabelsOmit: [ " + none + " ] }"},
			{"raises the error of the retry if it may have written", "R20", suites.Labelled(coded("PrimarySteppedDown"), label),
				raisesLabelled(coded("PrimarySteppedDown"))},
			{"raises the error of the retry if it may have written and is not retryable", "R20", suites.Labelled(interrupted), raisesPlain(interrupted)},
		} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Require:     require,
				Operations:  []string{lost, suites.FailPoint(o.Command, "{ skip: 1 }", s.data), o.Call("client", "", s.raises)},
				Events:      []suites.Expected{{Client: "client", Events: o.Attempts(2, 2, numbered)}},
				Outcome:     o.Outcome(true),
			})
		}
		f.Add(suites.Test{
			Description: o.Title() + " raises the error if both attempts fail with " + none + " (R22)",
			Require:     require,
			Operations: []string{suites.FailPoint(o.Command, suites.Times(2), suites.Labelled(coded("PrimarySteppedDown"), label, none)),
				o.Call("client", "", "{ isClientError: false, errorCode: 189, errorLabelsContain: [ "+label+", "+none+" ] }")},
			Events:  []suites.Expected{{Client: "client", Events: o.Attempts(2, 2, numbered)}},
			Outcome: o.Outcome(false),
		})
	}
	return f
}

// writeErrors have the codes of retryable errors, and are none.
func writeErrors() *suites.File {
	f := &suites.File{
		Name:        "write-errors",
		Description: "retryable writes: write errors with codes of retryable errors",
		About:       []string{"What stands in writeErrors of a reply makes no error retryable, whatever the code."},
		Require:     []string{`{ minServerVersion: "4.2", topologies: [ replicaset ] }`},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    objects("client", "collection"),
	}
	for _, name := range []string{"updateOne", "replaceOne", "deleteOne"} {
		o := named("collection", name, "")
		for _, c := range []suites.Code{coded("HostUnreachable"), coded("HostNotFound")} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is not retried after a write error %s (R34)", o.Title(), c.Name),
				Operations: []string{
					suites.SetFailPoint(transactionalWrite, suites.Always, fmt.Sprintf("closeConnection: false, failBeforeCommitExceptionCode: %d", c.Number)),
					o.Call("client", "", raisesPlain(c)),
				},
				Events:  []suites.Expected{{Client: "client", Events: o.Attempts(1, 0, numbered)}},
				Outcome: o.Outcome(false),
			})
		}
	}
	return f
}

// notRetryable are errors that other specifications retry, resume after or
// label, and retryable writes do not.
func notRetryable() *suites.File {
	f := &suites.File{
		Name:        "not-retryable",
		Description: "retryable writes: errors that are not retryable",
		About: []string{"Before 4.4 the codes are those of the list alone. Since 4.4 the label " + label + " decides, and no other label",
			"says that a write is retryable."},
		Require:  []string{requirement(suites.Operation{})},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: objects("client", "collection"),
	}
	tell := func(o suites.Operation, says, require, data string, c suites.Code) {
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s is not retried after %s%s (R34)", o.Title(), c.Name, says),
			Require:     []string{require},
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), data), o.Call("client", "", raisesPlain(c))},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, numbered)}},
			Outcome:     o.Outcome(false),
		})
	}
	for _, name := range []string{"insertOne", "updateOne", "deleteOne", "findOneAndUpdate"} {
		o := named("collection", name, "")
		for _, c := range []suites.Code{
			{Number: 43, Name: "CursorNotFound"}, {Number: 50, Name: "MaxTimeMSExpired"}, {Number: 64, Name: "WriteConcernTimeout"},
			{Number: 112, Name: "WriteConflict"}, {Number: 133, Name: "FailedToSatisfyReadPreference"}, interrupted,
		} {
			tell(o, " of a server before 4.4", before44, suites.ErrorCode(c), c)
		}
		for _, l := range []string{"NoWritesPerformed", "RetryableError", "SystemOverloadedError", "TransientTransactionError"} {
			tell(o, " with the label "+l, since44(o, every), suites.Labelled(interrupted, l), interrupted)
		}
		tell(o, " with the label NoWritesPerformed", since44(o, every), suites.Labelled(coded("HostUnreachable"), "NoWritesPerformed"), coded("HostUnreachable"))
	}
	return f
}
