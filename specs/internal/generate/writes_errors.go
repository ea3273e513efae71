package main

import (
	"fmt"
	"slices"
)

func writeSecondErrors() *File {
	f := NewFile("second-error", "the error that is raised after a retry", retrying,
		"A fail point fails the first attempt, and the server rejects the retry. The second error is raised, because it says",
		"more. A first attempt that the server rejects is not retried.")
	for _, r := range []struct {
		name, arguments string
		reply           bool // the error is a write error in a reply with ok: 1
		code            Code
	}{
		{"insertOne", "{ document: { _id: 1 } }", true, DuplicateKey},
		{"updateOne", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", true, FailedToParse},
		{"replaceOne", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", true, ImmutableField},
		{"deleteOne", "{ filter: { $utrUnknown: 1 } }", true, BadValue},
		{"findOneAndUpdate", "{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }", false, FailedToParse},
		{"findOneAndReplace", "{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }", false, ImmutableField},
		{"findOneAndDelete", "{ filter: { $utrUnknown: 1 } }", false, BadValue},
	} {
		o := writeNamed(r.name)
		o.Arguments, o.Started = r.arguments, "{ "+o.Command+": "+Collection+" }"
		raises := raisesPlain(r.code)
		f.Tell(o, Story{Says: "is not retried after " + r.code.Name + " (R34)", Raises: raises, Attempts: 1, Replied: r.reply})
		for _, first := range []struct{ says, data, require string }{
			{"network error", Closes, ""},
			{"HostUnreachable", writes.Fails(HostUnreachable), labelling},
			{"PrimarySteppedDown", writes.Fails(PrimarySteppedDown), labelling},
			{"HostUnreachable from a server before 4.4", ErrorCode(HostUnreachable), before44},
		} {
			f.Tell(o, Story{Says: "raises " + r.code.Name + " from the retry, not the first attempt's " + first.says + " (R20)", Require: first.require,
				Fails: first.data, Raises: raises, Seen: o.Attempts(1, 1, numbered), Attempts: 1, Replied: r.reply})
		}
	}
	return f
}

func noWritesPerformed(operations []Operation) *File {
	f := NewFile("no-writes-performed", "errors with the label NoWritesPerformed", Servers("4.4", Sets),
		"If an attempt may have written, its error must be raised. The first attempt writes, and its reply is lost; the",
		"error of the second attempt may have the label.")
	network, quiet := WithLabels(RaisedNetwork, writable, noWrites), Labelled(PrimarySteppedDown, writable, noWrites)
	down := PrimarySteppedDown
	for _, o := range operations {
		require := ""
		if o.Since != "" {
			require = onlySets
		}
		for _, s := range []struct{ says, data, raises string }{
			{"raises the network error if the retry fails with " + noWrites + " (R21)", quiet, network},
			{"raises the network error if the retry fails with " + noWrites + " and a non-retryable error (R21)", Labelled(Interrupted, noWrites), network},
			{"raises the error of the retry if the retry may have written (R20)", writes.Fails(down), writes.Raises(down)},
			{"raises the error of the retry if the retry may have written and the error is not retryable (R20)", Labelled(Interrupted), raisesPlain(Interrupted)},
		} {
			f.Tell(o, Story{Says: s.says, Require: require, Points: []string{SetFailPoint(TransactionalWrite, Times(1), "")},
				Mode: SkipFirst, Fails: s.data, Raises: s.raises, Attempts: 2, Applied: true})
		}
		f.Tell(o, Story{Says: "raises the error if both attempts fail with " + noWrites + " (R22)", Require: require,
			Fails: quiet, Raises: RaisedLabels(down, writable+", "+noWrites, ""), Attempts: 2})
	}
	return f
}

func (p Policy) writeErrors() *File {
	f := NewFile("write-errors", "write errors with codes of retryable errors", onlySets,
		"An entry in writeErrors of a reply is never retryable, whatever its code.")
	f.Clients = []Client{p.client("client", "")}
	for _, name := range []string{"updateOne", "replaceOne", "deleteOne"} {
		for _, c := range []Code{HostUnreachable, HostNotFound} {
			f.Tell(p.operation(name), Story{Says: "is not retried after the write error " + c.Name + " (R34)", Raises: raisesPlain(c), Attempts: 1,
				Replied: true, Points: []string{SetFailPoint(TransactionalWrite, Always,
					fmt.Sprintf("closeConnection: false, failBeforeCommitExceptionCode: %d", c.Number))}})
		}
	}
	return f
}

func writesNotRetryable() *File {
	f := NewFile("not-retryable", "errors that are not retryable", retrying,
		"Before 4.4, only the listed codes are retryable. Since 4.4, only the label "+writable+" makes an error",
		"retryable.")
	for _, name := range []string{"insertOne", "updateOne", "deleteOne", "findOneAndUpdate"} {
		tell := func(says, require, data string, c Code) {
			f.Tell(writeNamed(name), NotRetried(c.Name+says+" (R34)", data, raisesPlain(c)).On(require))
		}
		for _, c := range []Code{
			CursorNotFound, MaxTimeMSExpired, WriteConcernTimeout, WriteConflict, FailedToSatisfyReadPreference, Interrupted,
		} {
			tell(" from a server before 4.4", before44, ErrorCode(c), c)
		}
		for _, l := range []string{noWrites, retryable, overloaded, TransientTransactionError} {
			tell(" with the label "+l, labelling, Labelled(Interrupted, l), Interrupted)
		}
		tell(" with the label NoWritesPerformed", labelling, Labelled(HostUnreachable, noWrites), HostUnreachable)
	}
	return f
}

// neverRetried has the operations of "Unsupported Write Operations".
func (p Policy) neverRetried(operations []Operation) *File {
	f := NewFile("never-retried", "operations that are never retried", retrying,
		"Writes with a statement that may change several documents, aggregations that write, generic commands and all other",
		"writes carry no transaction number and are attempted once, whatever the error.")
	f.Clients = []Client{p.client("client", "")}
	f.Entities = Objects(p.Database, "setup", "database")
	f.Empty = []string{written}
	for _, o := range operations {
		empty := Outcome{Collection: written}
		for _, e := range []struct{ says, data, raises, require string }{
			{"a network error", Closes, RaisedNetwork, special(o)},
			{p.labelled(HostUnreachable), p.Fails(HostUnreachable), RaisedCode(HostUnreachable), labelling},
			{p.labelled(PrimarySteppedDown), p.Fails(PrimarySteppedDown), RaisedCode(PrimarySteppedDown), labelling},
			{"ShutdownInProgress", ErrorCode(ShutdownInProgress), raisesPlain(ShutdownInProgress), labelling},
			{"HostUnreachable from a server before 4.4", ErrorCode(HostUnreachable), raisesPlain(HostUnreachable), before44},
			{"PrimarySteppedDown from a server before 4.4", ErrorCode(PrimarySteppedDown), raisesPlain(PrimarySteppedDown), before44},
		} {
			f.Tell(o, Story{Says: "is not retried after " + e.says + " (R34)", Require: e.require, Fails: e.data, Raises: e.raises, Attempts: 1,
				Outcome: append(o.Outcome(false), empty)})
		}
		if o.Wrote != nil {
			f.Tell(o, Story{Says: "carries no transaction number (R6)", Require: special(o), Attempts: 1, Outcome: append(o.Outcome(true), empty)})
		}
	}
	return f
}

func (p Policy) unacknowledged(operations []Operation) *File {
	f := NewFile("unacknowledged", "write concern w: 0", retrying,
		"A write with w: 0 carries no transaction number and is sent once. A ping on the only connection completes after the",
		"server has read the write.")
	f.Clients = []Client{p.client("client", "maxPoolSize: 1")}
	f.Objects = []string{"database"}
	f.Entities = []string{"collection: { id: collection, database: database, collectionName: " + Collection +
		", collectionOptions: { writeConcern: { w: 0 } } }"}
	for _, o := range operations {
		with := ""
		switch o.Name {
		case "findOneAndUpdate", "findOneAndReplace", "findOneAndDelete":
			continue // the server replies, and drivers differ
		case "clientBulkWrite":
			if o.Variant == "ordered" {
				continue // drivers reject it
			}
			with = "writeConcern: { w: 0 }"
		}
		o.Result, o.Carries = "", "writeConcern: { w: 0 }, "+Unnumbered
		ping, pinged := []string{Ping("client")}, Pinged(p.Database)
		f.Tell(o,
			Story{Says: "is not retried with w: 0 (R6)", Require: labelling, Fails: p.Fails(HostUnreachable), With: with,
				After: ping, Seen: o.Attempts(1, 0, o.Carries), Then: pinged, Outcome: o.Outcome(false)},
			Story{Says: "writes once with w: 0 (R6)", Require: onlySets, // a mongos may reply before the shard has written
				With: with, After: ping, Attempts: 1, Then: pinged})
	}
	return f
}

func (p Policy) standalone(operations []Operation) *File {
	f := NewFile("standalone", "a standalone", Servers("4.2", Single),
		"A standalone supports sessions but not retryable writes: a write carries no transaction number and is attempted once.")
	f.Clients = []Client{p.client("client", "")}
	require := Servers("4.2", Single)
	for _, o := range operations {
		o.Carries = Unnumbered
		f.Tell(o,
			Story{Says: "carries no transaction number on a standalone (R6)", Require: require, Attempts: 1},
			Story{Says: "is not retried on a standalone after a network error (W32)", Require: require,
				Fails: Closes, Raises: RaisedNetwork, Attempts: 1},
			Story{Says: "is not retried on a standalone after ShutdownInProgress (W32)", Require: require,
				Fails: ErrorCode(ShutdownInProgress), Raises: RaisedCode(ShutdownInProgress), Attempts: 1},
			Story{Says: "is not retried on a standalone after " + p.labelled(HostUnreachable) + " (W32)",
				Require: Servers("4.4", Single),
				Fails:   p.Fails(HostUnreachable), Raises: RaisedCode(HostUnreachable), Attempts: 1})
	}
	return f
}

func writeSequences(operations []Operation) *File {
	f := NewFile("sequences", "attempts that fail in different ways", Sequences(Retrying),
		"The last error without the label "+noWrites+" is raised, or the first error if all have it. Only the newest",
		"error decides whether another attempt follows. Each attempt fails differently, which needs a fail point of utr's",
		"embedded deployment.")
	f.Clients = []Client{Observed("client", ""), Observed("timed", "timeoutMS: 20000")}
	// Two retryable errors and one that is not, each also with the label NoWritesPerformed.
	one, quietOne := Labelled(HostUnreachable, writable), Labelled(HostUnreachable, writable, noWrites)
	two, quietTwo := Labelled(HostNotFound, writable), Labelled(HostNotFound, writable, noWrites)
	final, quietFinal := Labelled(Interrupted), Labelled(Interrupted, noWrites)
	list := []Story{
		Failing("raises the error of the retry if the first error has the label "+noWrites+" (R20)",
			RaisedLabels(HostNotFound, writable, noWrites), quietOne, two),
		Failing("raises the first error if the error of the retry has the label "+noWrites+" (R21)",
			RaisedLabels(HostUnreachable, writable, noWrites), one, quietTwo),
		Failing("raises the first error if both have the label "+noWrites+" (R21)",
			RaisedLabels(HostUnreachable, writable+", "+noWrites, ""), quietOne, quietTwo),
		Failing("raises the first error if the error of the retry is not retryable and has the label "+noWrites+" (R21)",
			RaisedLabels(HostUnreachable, writable, noWrites), one, quietFinal),
		Failing("raises the network error of the retry (R20)", raisesNetwork, one, Closes),
		Failing("raises the first of three errors within timeoutMS if the others have the label "+noWrites+" (R21)",
			RaisedLabels(HostUnreachable, writable, noWrites), one, quietTwo, quietFinal).Of("timed"),
		Failing("raises the second of three errors within timeoutMS if the others have the label "+noWrites+" (R20)",
			RaisedLabels(HostNotFound, writable, noWrites), quietOne, two, quietFinal).Of("timed"),
		Failing("raises the last of three errors within timeoutMS if the others have the label "+noWrites+" (R20)",
			RaisedLabels(Interrupted, "", writable+", "+noWrites), quietOne, quietTwo, final).Of("timed"),
		Failing("is retried after four different errors within timeoutMS (R36)", "", one, Closes,
			Labelled(ExceededTimeLimit, writable, noWrites), two).Of("timed"),
		{Says: "is written once if two replies are lost within timeoutMS (W10)", By: "timed", Each: []string{LostReply, LostReply}},
		{Says: "is written once if both replies are lost (R35)", Each: []string{LostReply, LostReply}, Raises: raisesNetwork, Applied: true},
		{Says: "is not retried again after a lost reply and an error that is not retryable (R34)", By: "timed",
			Each: []string{LostReply, final}, Raises: raisesPlain(Interrupted), Applied: true},
	}
	for _, o := range operations {
		if !slices.Contains([]string{"insertOne", "updateOne", "findOneAndUpdate", "bulkWrite", "clientBulkWrite"}, o.Name) ||
			slices.Contains([]string{"unordered", "with upsert"}, o.Variant) {
			continue // it does not depend on the operation
		}
		f.Tell(o, list...)
		if o.Name == "bulkWrite" || o.Name == "clientBulkWrite" {
			continue // drivers report their write concern errors in different ways
		}
		// As in the prose test of NoWritesPerformed after a write concern error.
		f.Tell(o, Story{Says: "raises the write concern error if the error of the retry has the label " + noWrites + " (R21)",
			Each:   []string{LabelledConcern(writable), quietTwo},
			Raises: WithLabels("{ isClientError: false }", writable, noWrites), Seen: o.Attempts(1, 0, numbered), Attempts: 1, Applied: true},
			Story{Says: "raises the first error if the write concern error of the retry has the label " + noWrites + " (R21)",
				Each:   []string{one, LabelledConcern(noWrites)},
				Raises: RaisedLabels(HostUnreachable, writable, noWrites), Seen: o.Attempts(1, 1, numbered), Attempts: 1, Replied: true, Applied: true})
	}
	return f
}
