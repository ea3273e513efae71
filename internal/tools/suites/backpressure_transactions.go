package main

import (
	"slices"
)

// within returns the expected fields of the first or a later command of a session's nth transaction.
func within(client string, n int, first bool) value {
	start := absent
	if first {
		start = node(true)
	}
	return doc("lsid", lsid(client), "txnNumber", long(n), "startTransaction", start, "autocommit", false)
}

// lsid expects the id of a client's session.
func lsid(client string) value { return doc("$$sessionLsid", "session"+suffix(client)) }

// Expected fields of the commands of a session's first and second transactions.
var (
	begins, continues    = within("client", 1, true), within("client", 1, false)
	restarts, continues2 = within("client", 2, true), within("client", 2, false)
)

var (
	noConcern = doc("writeConcern", absent)
	majority  = flow("{ writeConcern: { w: majority, wtimeout: 10000 } }")
)

// endingWith returns the operation that ends the first transaction, with extra fields of its command.
func endingWith(name string, extra value) operation {
	return ending(name, merge(continues, extra))
}

// bothWritten is the outcome of collection.insertOne and collection.updateOne.
var bothWritten = left(first, raised, third, fourth)

func overloadTransactions() []*file {
	f := newFile("transactions", "commands of a transaction", labelling,
		"Every command of a transaction is retried after overload errors, with the transaction's number. A retry of the first",
		"command starts the transaction again, and a commit keeps its write concern.")
	f.Clients = []client{watched("client", nil), observed("noReads", doc("retryReads", false)),
		observed("noWrites", doc("retryWrites", false))}
	f.Sessions = true
	each := *f
	insert, abort, commit := named("collection.insertOne"), endingWith("abortTransaction",
		nil), endingWith("commitTransaction", noConcern)
	start, end := []value{onSession("startTransaction", "client")}, []value{onSession("commitTransaction", "client")}
	undo := []value{onSession("abortTransaction", "client")}
	aborts := abort.attempts(1, 0, nil)[:1]
	for _, o := range overloadOperations {
		if !o.Txn || o.Since != "" {
			continue
		}
		other := operation{Object: "collection", Name: "findOneAndUpdate", Command: "findAndModify",
			Database:  overloadDatabase,
			Arguments: flow("{ filter: { _id: 9 }, update: { $set: { x: 1 } } }"), Started: doc("findAndModify", collection)}
		each.add(o, story{Says: "is retried as the first command of a transaction (B1)", Before: start,
			Fails: overload, With: inSession("client"),
			After: end, Attempts: 3, Carries: begins, Then: commit.attempts(1, 0, nil), Outcome: o.documentsLeft(true)})
		if o.Command != "findAndModify" {
			each.add(o, story{Says: "is retried as a later command of a transaction (B1)", Before: begin(other, "client"),
				Fails: overload,
				With:  inSession("client"), After: end, Seen: other.attempts(1, 0, begins), Attempts: 2, Carries: continues,
				Then: commit.attempts(1, 0, nil), Outcome: o.documentsLeft(true)})
		}
		each.add(o, story{Says: "is not retried in a transaction after an error with " + overloaded + " alone (R34)",
			Before: start,
			Fails:  overloadedOnly, With: inSession("client"), Raises: raisesOverloadedOnly, After: undo, Attempts: 1,
			Carries: begins, Then: aborts, Extra: true, Outcome: o.documentsLeft(false)})
	}
	f.add(insert, story{Says: "is retried no more than twice in a transaction (B4)", Before: start, Fails: overload,
		With: inSession("client"), Raises: raisesOverload, After: undo, Attempts: 3, Carries: begins, Then: aborts,
		Extra: true})
	for _, r := range []struct{ title, by, option string }{
		{"collection.find", "noReads", "retryReads"}, {"collection.aggregate", "noReads", "retryReads"},
		{"collection.insertOne", "noWrites", "retryWrites"}, {"collection.updateMany", "noWrites", "retryWrites"},
		{"database.runCommand with find", "noReads", "retryReads"},
		{"database.runCommand with find", "noWrites", "retryWrites"},
	} {
		o := named(r.title)
		f.add(o, story{Says: "is not retried in a transaction if " + r.option + " is false (B3)", By: r.by,
			Before: []value{onSession("startTransaction", r.by)},
			Fails:  overload, With: inSession(r.by), Raises: raisesOverload, After: []value{onSession("abortTransaction", r.by)},
			Attempts: 1, Carries: doc("startTransaction", true, "autocommit", false), Outcome: o.documentsLeft(false)})
	}
	inserted := insert.attempts(1, 0, begins)
	twice := story{Says: "is retried twice after overload errors (B1)", Before: begin(insert, "client"), Fails: overload,
		Seen: inserted, Attempts: 3}
	f.add(commit, twice)
	f.add(abort, twice)
	// The transaction is still open on the server, so it is ended.
	f.add(commit, story{Says: "is retried no more than twice after overload errors (B4)", Before: begin(insert, "client"),
		Fails: overload, Raises: raisedLabels(limited, both, labels{unknownCommitResult, transientTransaction}),
		Applied: true, After: end, Seen: inserted, Attempts: 3, Then: endingWith("commitTransaction",
			nil).attempts(1, 0, nil)})
	f.add(abort, story{Says: "is retried no more than twice after overload errors, which are not raised (B4)",
		Before: begin(insert, "client"),
		Mode:   times(3), Fails: overload, After: slices.Concat(begin(insert, "client"), undo), Seen: inserted,
		Then: slices.Concat(abort.attempts(3, 3, nil), insert.attempts(1, 0, restarts)), Extra: true})
	// Once the result of a commit is unknown, the retry has w: majority.
	f.add(endingWith("commitTransaction", majority), story{
		Says: "is retried with w: majority after an error that is not a retryable overload error (W10)", Before: begin(insert,
			"client"),
		Fails: errorWithLabels(hostUnreachable, writable, overloaded), Seen: slices.Concat(inserted,
			commit.attempts(1, 1, nil)), Attempts: 1})
	return append(each.divide(readOrWrite), f)
}

// readOrWrite returns parts for divide.
func readOrWrite(title string) string {
	if named(title).Reads {
		return "reads"
	}
	return "writes"
}

// ignoring returns an operation in a session whose result does not matter.
func ignoring(o operation, client string) value {
	return doc("name", o.Name, "object", o.Object+suffix(client), "arguments", merge(o.Arguments, inSession(client)),
		"ignoreResultAndError", true)
}

func convenient() *file {
	f := newFile("convenient-transactions", "withTransaction", labelling,
		"After an overload error in the callback or the commit, only the command is retried; the callback does not run again.")
	f.Clients = []client{watched("client", nil), observed("hurried", doc("timeoutMS", 400)),
		observed("timed", doc("timeoutMS", 6000))}
	f.Sessions = true
	insert, update := named("collection.insertOne"), named("collection.updateOne")
	commit, abort := endingWith("commitTransaction", noConcern), endingWith("abortTransaction", nil)
	in, up := insert.call("client", inSession("client"), nil), update.call("client", inSession("client"), nil)
	// with adds a withTransaction in which a command fails.
	with := func(fails string, s story, callback ...value) {
		f.add(operation{Object: "session", Name: "withTransaction", Command: fails,
			Arguments: doc("callback", list(callback...))}, s)
	}
	inserted, updated := insert.attempts(1, 0, begins), update.attempts(1, 0, continues)
	committed, aborted := commit.attempts(1, 0, nil), abort.attempts(1, 0, nil)
	with("insert", story{Says: "continues after an overload error of its first command (B1)", Fails: overload,
		Seen: slices.Concat(insert.attempts(2, 1, begins), updated, committed), Outcome: bothWritten}, in, up)
	with("update", story{Says: "continues after an overload error of a later command (B1)", Mode: times(2),
		Fails: overload,
		Seen:  slices.Concat(inserted, update.attempts(3, 2, continues), committed), Outcome: bothWritten}, in, up)
	with("commitTransaction", story{Says: "continues after an overload error of its commit (B1)", Mode: times(2),
		Fails: overload,
		Seen:  slices.Concat(inserted, updated, commit.attempts(3, 2, nil)), Outcome: bothWritten}, in, up)
	with("update", story{Says: "raises the overload error after two retries of a later command (B4)", Mode: times(3),
		Fails: overload, Raises: raisesOverload,
		Seen: slices.Concat(inserted, update.attempts(3, 3, continues),
			aborted)}, in, update.call("client", inSession("client"), raisesOverload))
	with("insert", story{Says: "raises the overload error after two retries of the first command (B4)", Mode: times(3),
		Fails: overload, Raises: raisesOverload,
		Seen: slices.Concat(insert.attempts(3, 3, begins),
			aborted[:1]), Extra: true}, insert.call("client", inSession("client"), raisesOverload))
	// The second run of the callback succeeds, so its operation cannot expect an error.
	either := ignoring(update, "client")
	with("update", story{Says: "runs the callback again after overload errors with TransientTransactionError (B4)",
		Mode:  times(3),
		Fails: errorWithLabels(limited, overloaded, retryable, transientTransaction),
		Seen: slices.Concat(inserted, update.attempts(3, 3, continues),
			aborted), Extra: true, Outcome: bothWritten}, in, either)

	// Retries by withTransaction itself, and the backoff before them.
	conflict := writeConflict
	transient := errorWithLabels(conflict, transientTransaction)
	second := func(o operation, carries value) []value {
		o.Started = doc(o.Command, collection)
		return o.attempts(1, 0, carries)
	}
	recommit := operation{Command: "commitTransaction", Database: "admin",
		Started: doc("commitTransaction", 1)}.attempts(1, 0, continues2)
	with("update", story{Says: "starts the transaction again after an error with TransientTransactionError (T10)",
		Fails: transient, Outcome: bothWritten,
		Seen: slices.Concat(inserted, update.attempts(1, 1, continues), aborted, second(insert, restarts),
			second(update, continues2), recommit)}, in, either)
	with("update", story{Says: "raises an error without TransientTransactionError (T7)", Fails: errorWithLabels(conflict),
		Raises: raisedCode(conflict), Seen: slices.Concat(inserted, update.attempts(1, 1, continues), aborted)}, in,
		update.call("client", inSession("client"), raisedCode(conflict)))
	with("commitTransaction", story{Says: "commits again with w: majority if the outcome of the commit is unknown (T6)",
		Mode:  times(2),
		Fails: errorWithLabels(hostUnreachable, writable), Outcome: bothWritten,
		Seen: slices.Concat(inserted, updated, commit.attempts(1, 1, nil),
			endingWith("commitTransaction", majority).attempts(2, 1, nil))}, in, up)
	with("commitTransaction", story{Says: "does not commit again after MaxTimeMSExpired (T7)",
		Fails:  errorCode(maxTimeMSExpired),
		Raises: raisedLabels(maxTimeMSExpired, labels{unknownCommitResult}, nil), Outcome: bothWritten,
		After: []value{onSession("commitTransaction", "client")}, // ends the transaction on the server
		Seen: slices.Concat(inserted, updated, commit.attempts(1, 1, nil),
			endingWith("commitTransaction", nil).attempts(1, 0, nil))}, in, up)
	// The first expects no events, because it may time out before there are any. Even without sleeping, one of
	// forty backoffs of up to 500 ms would exceed timeoutMS.
	with("insert", story{Says: "backs off long enough that forty transactions do not fit into 400 ms (T9)", By: "hurried",
		Mode: times(40), Fails: transient, Raises: timeoutError}, ignoring(insert, "hurried"))
	with("commitTransaction", story{Says: "stops committing again once timeoutMS has passed (T5)", By: "hurried",
		Mode:   always,
		Fails:  errorWithLabels(interrupted, unknownCommitResult),
		Raises: withLabels(timeoutError, labels{unknownCommitResult}, nil),
		After: []value{setFailPoint("failCommand", never, nil), // ends the transaction on the server
			merge(onSession("commitTransaction", "hurried"), doc("ignoreResultAndError", true))}, Outcome: []outcome{}},
		insert.call("hurried", inSession("hurried"), nil))
	with("insert", story{Says: "backs off briefly enough that nine transactions fit into six seconds (T9)", By: "timed",
		Mode: times(8), Fails: transient,
		Seen: insert.attempts(1, 1, doc("startTransaction",
			true)), Extra: true, Outcome: insert.documentsLeft(true)}, ignoring(insert, "timed"))
	return f
}
