package main

import (
	"slices"
)

func writeSecondErrors() *file {
	f := newFile("second-error", "the error that is raised after a retry", retrying,
		"A fail point fails the first attempt, and the server rejects the retry. The second error is raised, because it says",
		"more. A first attempt that the server rejects is not retried.")
	for _, r := range []struct {
		name      string
		arguments value
		reply     bool // the error is a write error in a reply with ok: 1
		code      code
	}{
		{"insertOne", flow("{ document: { _id: 1 } }"), true, duplicateKey},
		{"updateOne", flow("{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }"), true, failedToParse},
		{"replaceOne", flow("{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }"), true, immutableField},
		{"deleteOne", flow("{ filter: { $utrUnknown: 1 } }"), true, badValue},
		{"findOneAndUpdate", flow("{ filter: { _id: 1 }, update: { $utrUnknown: { x: 1 } } }"), false, failedToParse},
		{"findOneAndReplace", flow("{ filter: { _id: 1 }, replacement: { _id: 9, x: 1 } }"), false, immutableField},
		{"findOneAndDelete", flow("{ filter: { $utrUnknown: 1 } }"), false, badValue},
	} {
		o := writeNamed(r.name)
		o.Arguments, o.Started = r.arguments, doc(o.Command, collection)
		raises := raisesPlain(r.code)
		f.add(o, story{Says: "is not retried after " + r.code.Name + " (R34)", Raises: raises, Attempts: 1, Replied: r.reply})
		for _, first := range []struct {
			says    string
			data    value
			require requirement
		}{
			{"network error", closes, requirement{}},
			{"HostUnreachable", writes.fails(hostUnreachable), labelling},
			{"PrimarySteppedDown", writes.fails(primarySteppedDown), labelling},
			{"HostUnreachable from a server before 4.4", errorCode(hostUnreachable), before44},
		} {
			f.add(o, story{Says: "raises " + r.code.Name + " from the retry, not the first attempt's " + first.says + " (R20)",
				Require: first.require,
				Fails:   first.data, Raises: raises, Seen: o.attempts(1, 1, numbered), Attempts: 1, Replied: r.reply})
		}
	}
	return f
}

func noWritesPerformed(operations []operation) *file {
	f := newFile("no-writes-performed", "errors with the label NoWritesPerformed", servers("4.4", sets),
		"If an attempt may have written, its error must be raised. The first attempt writes, and its reply is lost; the",
		"error of the second attempt may have the label.")
	network, quiet := withLabels(raisedNetwork, labels{writable}, labels{noWrites}), errorWithLabels(primarySteppedDown,
		writable, noWrites)
	down := primarySteppedDown
	for _, o := range operations {
		require := requirement{}
		if o.Since != "" {
			require = onlySets
		}
		for _, s := range []struct {
			says         string
			data, raises value
		}{
			{"raises the network error if the retry fails with " + noWrites + " (R21)", quiet, network},
			{"raises the network error if the retry fails with " + noWrites + " and a non-retryable error (R21)",
				errorWithLabels(interrupted, noWrites), network},
			{"raises the error of the retry if the retry may have written (R20)", writes.fails(down), writes.raises(down)},
			{"raises the error of the retry if the retry may have written and the error is not retryable (R20)",
				errorWithLabels(interrupted), raisesPlain(interrupted)},
		} {
			f.add(o, story{Says: s.says, Require: require, Points: []value{setFailPoint(transactionalWrite, times(1), nil)},
				Mode: skip(1), Fails: s.data, Raises: s.raises, Attempts: 2, Applied: true})
		}
		f.add(o, story{Says: "raises the error if both attempts fail with " + noWrites + " (R22)", Require: require,
			Fails: quiet, Raises: raisedLabels(down, labels{writable, noWrites}, nil), Attempts: 2})
	}
	return f
}

func (p policy) writeErrors() *file {
	f := newFile("write-errors", "write errors with codes of retryable errors", onlySets,
		"An entry in writeErrors of a reply is never retryable, whatever its code.")
	f.Clients = []client{p.client("client", nil)}
	for _, name := range []string{"updateOne", "replaceOne", "deleteOne"} {
		for _, c := range []code{hostUnreachable, hostNotFound} {
			f.add(p.operation(name), story{Says: "is not retried after the write error " + c.Name + " (R34)",
				Raises: raisesPlain(c), Attempts: 1,
				Replied: true, Points: []value{setFailPoint(transactionalWrite, always, errorBeforeCommit(c))}})
		}
	}
	return f
}

func writesNotRetryable() *file {
	f := newFile("not-retryable", "errors that are not retryable", retrying,
		"Before 4.4, only the listed codes are retryable. Since 4.4, only the label "+writable+" makes an error",
		"retryable.")
	for _, name := range []string{"insertOne", "updateOne", "deleteOne", "findOneAndUpdate"} {
		tell := func(says string, require requirement, data value, c code) {
			f.add(writeNamed(name), notRetried(c.Name+says+" (R34)", data, raisesPlain(c)).requiring(require))
		}
		for _, c := range []code{
			cursorNotFound, maxTimeMSExpired, writeConcernTimeout, writeConflict, failedToSatisfyReadPreference, interrupted,
		} {
			tell(" from a server before 4.4", before44, errorCode(c), c)
		}
		for _, l := range []string{noWrites, retryable, overloaded, transientTransaction} {
			tell(" with the label "+l, labelling, errorWithLabels(interrupted, l), interrupted)
		}
		tell(" with the label NoWritesPerformed", labelling, errorWithLabels(hostUnreachable, noWrites), hostUnreachable)
	}
	return f
}

// neverRetried has the operations of "Unsupported Write Operations".
func (p policy) neverRetried(operations []operation) *file {
	f := newFile("never-retried", "operations that are never retried", retrying,
		"Writes with a statement that may change several documents, aggregations that write, generic commands and all other",
		"writes carry no transaction number and are attempted once, whatever the error.")
	f.Clients = []client{p.client("client", nil)}
	f.Entities = objectEntities(p.Database, "setup", "database")
	f.Empty = []string{written}
	for _, o := range operations {
		empty := outcome{Collection: written}
		for _, e := range []struct {
			says         string
			data, raises value
			require      requirement
		}{
			{"a network error", closes, raisedNetwork, special(o)},
			{p.labelled(hostUnreachable), p.fails(hostUnreachable), raisedCode(hostUnreachable), labelling},
			{p.labelled(primarySteppedDown), p.fails(primarySteppedDown), raisedCode(primarySteppedDown), labelling},
			{"ShutdownInProgress", errorCode(shutdownInProgress), raisesPlain(shutdownInProgress), labelling},
			{"HostUnreachable from a server before 4.4", errorCode(hostUnreachable), raisesPlain(hostUnreachable), before44},
			{"PrimarySteppedDown from a server before 4.4", errorCode(primarySteppedDown),
				raisesPlain(primarySteppedDown), before44},
		} {
			f.add(o, story{Says: "is not retried after " + e.says + " (R34)", Require: e.require, Fails: e.data,
				Raises: e.raises, Attempts: 1,
				Outcome: append(o.documentsLeft(false), empty)})
		}
		if o.Wrote != nil {
			f.add(o, story{Says: "carries no transaction number (R6)", Require: special(o), Attempts: 1,
				Outcome: append(o.documentsLeft(true), empty)})
		}
	}
	return f
}

// unacknowledged is a write concern without replies.
var unacknowledged = flow("{ writeConcern: { w: 0 } }")

func (p policy) unacknowledged(operations []operation) *file {
	f := newFile("unacknowledged", "write concern w: 0", retrying,
		"A write with w: 0 carries no transaction number and is sent once. A ping on the only connection completes after the",
		"server has read the write.")
	f.Clients = []client{p.client("client", doc("maxPoolSize", 1))}
	f.Objects = []string{"database"}
	f.Entities = []value{block(doc("collection",
		doc("id", "collection", "database", "database", "collectionName", collection,
			"collectionOptions", unacknowledged)))}
	for _, o := range operations {
		var with value
		switch o.Name {
		case "findOneAndUpdate", "findOneAndReplace", "findOneAndDelete":
			continue // the server replies, and drivers differ
		case "clientBulkWrite":
			if o.Variant == "ordered" {
				continue // drivers reject it
			}
			with = unacknowledged
		}
		o.Result, o.Carries = nil, merge(unacknowledged, unnumbered)
		ping, pinged := []value{ping("client")}, pinged(p.Database)
		f.add(o,
			story{Says: "is not retried with w: 0 (R6)", Require: labelling, Fails: p.fails(hostUnreachable), With: with,
				After: ping, Seen: o.attempts(1, 0, o.Carries), Then: pinged, Outcome: o.documentsLeft(false)},
			story{Says: "writes once with w: 0 (R6)", Require: onlySets, // a mongos may reply before the shard has written
				With: with, After: ping, Attempts: 1, Then: pinged})
	}
	return f
}

func (p policy) standalone(operations []operation) *file {
	f := newFile("standalone", "a standalone", servers("4.2", single),
		"A standalone supports sessions but not retryable writes: a write carries no transaction number and is attempted once.")
	f.Clients = []client{p.client("client", nil)}
	require := servers("4.2", single)
	for _, o := range operations {
		o.Carries = unnumbered
		f.add(o,
			story{Says: "carries no transaction number on a standalone (R6)", Require: require, Attempts: 1},
			story{Says: "is not retried on a standalone after a network error (W32)", Require: require,
				Fails: closes, Raises: raisedNetwork, Attempts: 1},
			story{Says: "is not retried on a standalone after ShutdownInProgress (W32)", Require: require,
				Fails: errorCode(shutdownInProgress), Raises: raisedCode(shutdownInProgress), Attempts: 1},
			story{Says: "is not retried on a standalone after " + p.labelled(hostUnreachable) + " (W32)",
				Require: servers("4.4", single),
				Fails:   p.fails(hostUnreachable), Raises: raisedCode(hostUnreachable), Attempts: 1})
	}
	return f
}

func writeSequences(operations []operation) *file {
	f := newFile("sequences", "attempts that fail in different ways", sequenceServers(withRetries),
		"The last error without the label "+noWrites+" is raised, or the first error if all have it. Only the newest",
		"error decides whether another attempt follows. Each attempt fails differently, which needs a fail point of utr's",
		"embedded deployment.")
	f.Clients = []client{observed("client", nil), observed("timed", doc("timeoutMS", 20000))}
	// Two retryable errors and one that is not, each also with the label NoWritesPerformed.
	one, quietOne := errorWithLabels(hostUnreachable, writable), errorWithLabels(hostUnreachable, writable, noWrites)
	two, quietTwo := errorWithLabels(hostNotFound, writable), errorWithLabels(hostNotFound, writable, noWrites)
	final, quietFinal := errorWithLabels(interrupted), errorWithLabels(interrupted, noWrites)
	list := []story{
		failedInTurn("raises the error of the retry if the first error has the label "+noWrites+" (R20)",
			raisedLabels(hostNotFound, labels{writable}, labels{noWrites}), quietOne, two),
		failedInTurn("raises the first error if the error of the retry has the label "+noWrites+" (R21)",
			raisedLabels(hostUnreachable, labels{writable}, labels{noWrites}), one, quietTwo),
		failedInTurn("raises the first error if both have the label "+noWrites+" (R21)",
			raisedLabels(hostUnreachable, labels{writable, noWrites}, nil), quietOne, quietTwo),
		failedInTurn("raises the first error if the error of the retry is not retryable and has the label "+noWrites+" (R21)",
			raisedLabels(hostUnreachable, labels{writable}, labels{noWrites}), one, quietFinal),
		failedInTurn("raises the network error of the retry (R20)", raisesNetwork, one, closes),
		failedInTurn("raises the first of three errors within timeoutMS if the others have the label "+noWrites+" (R21)",
			raisedLabels(hostUnreachable, labels{writable}, labels{noWrites}), one, quietTwo, quietFinal).byClient("timed"),
		failedInTurn("raises the second of three errors within timeoutMS if the others have the label "+noWrites+" (R20)",
			raisedLabels(hostNotFound, labels{writable}, labels{noWrites}), quietOne, two, quietFinal).byClient("timed"),
		failedInTurn("raises the last of three errors within timeoutMS if the others have the label "+noWrites+" (R20)",
			raisedLabels(interrupted, nil, labels{writable, noWrites}), quietOne, quietTwo, final).byClient("timed"),
		failedInTurn("is retried after four different errors within timeoutMS (R36)", nil, one, closes,
			errorWithLabels(exceededTimeLimit, writable, noWrites), two).byClient("timed"),
		{Says: "is written once if two replies are lost within timeoutMS (W10)", By: "timed",
			Each: []value{lostReply, lostReply}},
		{Says: "is written once if both replies are lost (R35)", Each: []value{lostReply, lostReply}, Raises: raisesNetwork,
			Applied: true},
		{Says: "is not retried again after a lost reply and an error that is not retryable (R34)", By: "timed",
			Each: []value{lostReply, final}, Raises: raisesPlain(interrupted), Applied: true},
	}
	for _, o := range operations {
		if !slices.Contains([]string{"insertOne", "updateOne", "findOneAndUpdate", "bulkWrite", "clientBulkWrite"}, o.Name) ||
			slices.Contains([]string{"unordered", "with upsert"}, o.Variant) {
			continue // it does not depend on the operation
		}
		f.add(o, list...)
		if o.Name == "bulkWrite" || o.Name == "clientBulkWrite" {
			continue // drivers report their write concern errors in different ways
		}
		// As in the prose test of NoWritesPerformed after a write concern error.
		f.add(o, story{Says: "raises the write concern error if the error of the retry has the label " + noWrites + " (R21)",
			Each:   []value{concernWithLabels(writable), quietTwo},
			Raises: withLabels(serverError, labels{writable}, labels{noWrites}), Seen: o.attempts(1, 0,
				numbered), Attempts: 1, Applied: true},
			story{Says: "raises the first error if the write concern error of the retry has the label " + noWrites + " (R21)",
				Each:   []value{one, concernWithLabels(noWrites)},
				Raises: raisedLabels(hostUnreachable, labels{writable}, labels{noWrites}), Seen: o.attempts(1, 1, numbered),
				Attempts: 1, Replied: true, Applied: true})
	}
	return f
}
