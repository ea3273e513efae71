package main

import (
	"fmt"
	"slices"
	"strings"
)

// within returns the expected fields of the first or a later command of a session's nth transaction.
func within(client string, n int, first bool) string {
	start := map[bool]string{true: "true", false: "{ $$exists: false }"}[first]
	return fmt.Sprintf(`lsid: { $$sessionLsid: session%s }, txnNumber: { $numberLong: "%d" }, startTransaction: %s, autocommit: false`,
		Suffix(client), n, start)
}

// Expected fields of the commands of a session's first and second transactions.
var (
	begins, continues    = within("client", 1, true), within("client", 1, false)
	restarts, continues2 = within("client", 2, true), within("client", 2, false)
)

const (
	noConcern = "writeConcern: { $$exists: false }"
	majority  = "writeConcern: { w: majority, wtimeout: 10000 }"
)

// endingWith returns the operation that ends the first transaction, with extra fields of its command.
func endingWith(name, extra string) Operation {
	return ending(name, fieldsOf(Merge("{ "+continues+" }", extra)))
}

// bothWritten is the outcome of collection.insertOne and collection.updateOne.
var bothWritten = After(first, raised, third, fourth)

func overloadTransactions() *File {
	f := NewFile("transactions", "commands of a transaction", labelling,
		"Every command of a transaction is retried after overload errors, with the transaction's number. A retry of the first",
		"command starts the transaction again, and a commit keeps its write concern.")
	f.Clients = []Client{Watched("client", ""), Observed("noReads", "retryReads: false"),
		Observed("noWrites", "retryWrites: false")}
	f.Sessions = true
	insert, abort, commit := named("collection.insertOne"), endingWith("abortTransaction", ""), endingWith("commitTransaction", noConcern)
	start, end := []string{OnSession("startTransaction", "client")}, []string{OnSession("commitTransaction", "client")}
	undo := []string{OnSession("abortTransaction", "client")}
	aborts := abort.Attempts(1, 0, "")[:1]
	for _, o := range operations(overloadDatabase) {
		if !o.Txn || o.Since != "" {
			continue
		}
		other := Operation{Object: "collection", Name: "findOneAndUpdate", Command: "findAndModify", Database: overloadDatabase,
			Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ findAndModify: " + Collection + " }"}
		f.Tell(o, Story{Says: "is retried as the first command of a transaction (B1)", Before: start,
			Fails: overload, With: "session: session",
			After: end, Attempts: 3, Carries: begins, Then: commit.Attempts(1, 0, ""), Outcome: o.Outcome(true)})
		if o.Command != "findAndModify" {
			f.Tell(o, Story{Says: "is retried as a later command of a transaction (B1)", Before: Begin(other, "client"), Fails: overload,
				With: "session: session", After: end, Seen: other.Attempts(1, 0, begins), Attempts: 2, Carries: continues,
				Then: commit.Attempts(1, 0, ""), Outcome: o.Outcome(true)})
		}
		f.Tell(o, Story{Says: "is not retried in a transaction after an error with " + overloaded + " alone (R34)", Before: start,
			Fails: overloadedOnly, With: "session: session", Raises: raisesOverloadedOnly, After: undo, Attempts: 1,
			Carries: begins, Then: aborts, Extra: true, Outcome: o.Outcome(false)})
	}
	f.Tell(insert, Story{Says: "is retried no more than twice in a transaction (B4)", Before: start, Fails: overload,
		With: "session: session", Raises: raisesOverload, After: undo, Attempts: 3, Carries: begins, Then: aborts, Extra: true})
	for _, r := range []struct{ title, by, option string }{
		{"collection.find", "noReads", "retryReads"}, {"collection.aggregate", "noReads", "retryReads"},
		{"collection.insertOne", "noWrites", "retryWrites"}, {"collection.updateMany", "noWrites", "retryWrites"},
		{"database.runCommand with find", "noReads", "retryReads"}, {"database.runCommand with find", "noWrites", "retryWrites"},
	} {
		o := named(r.title)
		f.Tell(o, Story{Says: "is not retried in a transaction if " + r.option + " is false (B3)", By: r.by,
			Before: []string{OnSession("startTransaction", r.by)},
			Fails:  overload, With: InSession(r.by), Raises: raisesOverload, After: []string{OnSession("abortTransaction", r.by)},
			Attempts: 1, Carries: "startTransaction: true, autocommit: false", Outcome: o.Outcome(false)})
	}
	inserted := insert.Attempts(1, 0, begins)
	twice := Story{Says: "is retried twice after overload errors (B1)", Before: Begin(insert, "client"), Fails: overload,
		Seen: inserted, Attempts: 3}
	f.Tell(commit, twice)
	f.Tell(abort, twice)
	// The transaction is still open on the server, so it is ended.
	f.Tell(commit, Story{Says: "is retried no more than twice after overload errors (B4)", Before: Begin(insert, "client"),
		Fails: overload, Raises: RaisedLabels(limited, both, UnknownTransactionCommitResult+", "+TransientTransactionError),
		Applied: true, After: end, Seen: inserted, Attempts: 3, Then: endingWith("commitTransaction", "").Attempts(1, 0, "")})
	f.Tell(abort, Story{Says: "is retried no more than twice after overload errors, which are not raised (B4)", Before: Begin(insert, "client"),
		Mode: Times(3), Fails: overload, After: slices.Concat(Begin(insert, "client"), undo), Seen: inserted,
		Then: slices.Concat(abort.Attempts(3, 3, ""), insert.Attempts(1, 0, restarts)), Extra: true})
	// Once the result of a commit is unknown, the retry has w: majority.
	f.Tell(endingWith("commitTransaction", majority), Story{
		Says: "is retried with w: majority after an error that is not a retryable overload error (W10)", Before: Begin(insert, "client"),
		Fails: Labelled(HostUnreachable, writable, overloaded), Seen: slices.Concat(inserted, commit.Attempts(1, 1, "")), Attempts: 1})
	return f
}

func convenient() *File {
	f := NewFile("convenient-transactions", "withTransaction", labelling,
		"After an overload error in the callback or the commit, only the command is retried; the callback does not run again.")
	f.Clients = []Client{Watched("client", ""), Observed("hurried", "timeoutMS: 400"), Observed("timed", "timeoutMS: 6000")}
	f.Sessions = true
	insert, update := named("collection.insertOne"), named("collection.updateOne")
	commit, abort := endingWith("commitTransaction", noConcern), endingWith("abortTransaction", "")
	in, up := insert.Call("client", "session: session", ""), update.Call("client", "session: session", "")
	// with adds a withTransaction in which a command fails.
	with := func(fails string, s Story, callback ...string) {
		f.Tell(Operation{Object: "session", Name: "withTransaction", Command: fails,
			Arguments: "{ callback: [ " + strings.Join(callback, ", ") + " ] }"}, s)
	}
	inserted, updated := insert.Attempts(1, 0, begins), update.Attempts(1, 0, continues)
	committed, aborted := commit.Attempts(1, 0, ""), abort.Attempts(1, 0, "")
	with("insert", Story{Says: "continues after an overload error of its first command (B1)", Fails: overload,
		Seen: slices.Concat(insert.Attempts(2, 1, begins), updated, committed), Outcome: bothWritten}, in, up)
	with("update", Story{Says: "continues after an overload error of a later command (B1)", Mode: Times(2), Fails: overload,
		Seen: slices.Concat(inserted, update.Attempts(3, 2, continues), committed), Outcome: bothWritten}, in, up)
	with("commitTransaction", Story{Says: "continues after an overload error of its commit (B1)", Mode: Times(2), Fails: overload,
		Seen: slices.Concat(inserted, updated, commit.Attempts(3, 2, "")), Outcome: bothWritten}, in, up)
	with("update", Story{Says: "raises the overload error after two retries of a later command (B4)", Mode: Times(3), Fails: overload, Raises: raisesOverload,
		Seen: slices.Concat(inserted, update.Attempts(3, 3, continues), aborted)}, in, update.Call("client", "session: session", raisesOverload))
	with("insert", Story{Says: "raises the overload error after two retries of the first command (B4)", Mode: Times(3),
		Fails: overload, Raises: raisesOverload,
		Seen: slices.Concat(insert.Attempts(3, 3, begins), aborted[:1]), Extra: true}, insert.Call("client", "session: session", raisesOverload))
	// The second run of the callback succeeds, so its operation cannot expect an error.
	either := "{ name: updateOne, object: collection, arguments: " + Merge(update.Arguments,
		"session: session") + ", ignoreResultAndError: true }"
	with("update", Story{Says: "runs the callback again after overload errors with TransientTransactionError (B4)", Mode: Times(3),
		Fails: Labelled(limited, overloaded, retryable, TransientTransactionError),
		Seen:  slices.Concat(inserted, update.Attempts(3, 3, continues), aborted), Extra: true, Outcome: bothWritten}, in, either)

	// Retries by withTransaction itself, and the backoff before them.
	conflict := WriteConflict
	transient := Labelled(conflict, TransientTransactionError)
	second := func(o Operation, carries string) []string {
		o.Started = "{ " + o.Command + ": " + Collection + " }"
		return o.Attempts(1, 0, carries)
	}
	recommit := Operation{Command: "commitTransaction", Database: "admin", Started: "{ commitTransaction: 1 }"}.Attempts(1, 0, continues2)
	with("update", Story{Says: "starts the transaction again after an error with TransientTransactionError (T10)", Fails: transient, Outcome: bothWritten,
		Seen: slices.Concat(inserted, update.Attempts(1, 1, continues), aborted, second(insert, restarts), second(update, continues2), recommit)}, in, either)
	with("update", Story{Says: "raises an error without TransientTransactionError (T7)", Fails: Labelled(conflict),
		Raises: RaisedCode(conflict), Seen: slices.Concat(inserted, update.Attempts(1, 1, continues), aborted)}, in,
		update.Call("client", "session: session", RaisedCode(conflict)))
	with("commitTransaction", Story{Says: "commits again with w: majority if the outcome of the commit is unknown (T6)", Mode: Times(2),
		Fails: Labelled(HostUnreachable, writable), Outcome: bothWritten,
		Seen: slices.Concat(inserted, updated, commit.Attempts(1, 1, ""), endingWith("commitTransaction", majority).Attempts(2, 1, ""))}, in, up)
	with("commitTransaction", Story{Says: "does not commit again after MaxTimeMSExpired (T7)", Fails: ErrorCode(MaxTimeMSExpired),
		Raises: RaisedLabels(MaxTimeMSExpired, UnknownTransactionCommitResult, ""), Outcome: bothWritten,
		After: []string{OnSession("commitTransaction", "client")}, // ends the transaction on the server
		Seen:  slices.Concat(inserted, updated, commit.Attempts(1, 1, ""), endingWith("commitTransaction", "").Attempts(1, 0, ""))}, in, up)
	ignoring := func(by string) string {
		return "{ name: insertOne, object: collection-" + by + ", arguments: " + Merge(insert.Arguments,
			InSession(by)) + ", ignoreResultAndError: true }"
	}
	// The first expects no events, because it may time out before there are any. Even without sleeping, one of
	// forty backoffs of up to 500 ms would exceed timeoutMS.
	with("insert", Story{Says: "backs off long enough that forty transactions do not fit into 400 ms (T9)", By: "hurried",
		Mode: Times(40), Fails: transient, Raises: TimeoutError}, ignoring("hurried"))
	with("commitTransaction", Story{Says: "stops committing again once timeoutMS has passed (T5)", By: "hurried", Mode: Always,
		Fails:  Labelled(Interrupted, UnknownTransactionCommitResult),
		Raises: WithLabels(TimeoutError, UnknownTransactionCommitResult, ""),
		After: []string{SetFailPoint("failCommand", `"off"`, ""), // ends the transaction on the server
			"{ name: commitTransaction, object: session-hurried, ignoreResultAndError: true }"}, Outcome: []Outcome{}},
		insert.Call("hurried", InSession("hurried"), ""))
	with("insert", Story{Says: "backs off briefly enough that nine transactions fit into six seconds (T9)", By: "timed",
		Mode: Times(8), Fails: transient,
		Seen: insert.Attempts(1, 1, "startTransaction: true"), Extra: true, Outcome: insert.Outcome(true)}, ignoring("timed"))
	return f
}
