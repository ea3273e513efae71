package backpressure

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

func onSession(name, raises string) string {
	if raises != "" {
		raises = ", expectError: " + raises
	}
	return "{ name: " + name + ", object: session" + raises + " }"
}

// What the commands of the session's first transaction carry.
const (
	begins  = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "1" }, startTransaction: true, autocommit: false`
	goesOn  = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "1" }, startTransaction: { $$exists: false }, autocommit: false`
	restart = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "2" }, startTransaction: true, autocommit: false`
)

// ending is a command that ends the transaction.
func ending(name, extra string) operation {
	return operation{class: write, Operation: suites.Operation{Command: name, Database: "admin", Started: suites.Merge("{ "+name+": 1, "+goesOn+" }", extra)}}
}

func watched() suites.Client {
	c := suites.PlainClient()
	c.Ignore = []string{"killCursors"}
	return c
}

func join(lists ...[]string) (out []string) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// transactions checks that every command of a transaction is subject to the
// policy, and stays what it was in it.
func transactions() *suites.File {
	f := &suites.File{
		Name:        "transactions",
		Description: "client backpressure: commands of a transaction",
		About: []string{"Every command of a transaction is retried for overload errors, the first one as the first one, and all with the",
			"transaction's number. The write concern of a commit stays what it was."},
		Require: []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Clients: []suites.Client{suites.SetupClient(), watched(), suites.Observed("noReads", "{ retryReads: false }"),
			suites.Observed("noWrites", "{ retryWrites: false }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(append(f.Entities, objects(c.ID, "collection")...), suites.Session(c.ID))
	}
	insert := named("collection.insertOne")
	plain := "writeConcern: { $$exists: false }"
	abort, commit := ending("abortTransaction", ""), ending("commitTransaction", plain)
	for _, o := range operations() {
		if !o.Txn || o.Least != "" {
			continue
		}
		other := suites.Operation{Object: "collection", Name: "findOneAndUpdate", Command: "findAndModify", Database: databaseName,
			Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ findAndModify: " + suites.Collection + " }"}
		f.Add(suites.Test{
			Description: o.Title() + " is retried as the first command of a transaction (B1)",
			Operations: []string{onSession("startTransaction", ""), suites.FailPoint(o.Command, suites.Times(2), overload()),
				o.Call("client", "session: session", ""), onSession("commitTransaction", "")},
			Events:  []suites.Expected{{Client: "client", Events: join(o.Attempts(3, 2, begins), commit.Attempts(1, 0, ""))}},
			Outcome: o.Outcome(true),
		})
		if o.Command != "findAndModify" {
			f.Add(suites.Test{
				Description: o.Title() + " is retried as a further command of a transaction (B1)",
				Operations: []string{onSession("startTransaction", ""), other.Call("client", "session: session", ""),
					suites.FailPoint(o.Command, suites.Times(1), overload()), o.Call("client", "session: session", ""), onSession("commitTransaction", "")},
				Events:  []suites.Expected{{Client: "client", Events: join(other.Attempts(1, 0, begins), o.Attempts(2, 1, goesOn), commit.Attempts(1, 0, ""))}},
				Outcome: o.Outcome(true),
			})
		}
		f.Add(suites.Test{
			Description: o.Title() + " is not retried in a transaction after an error with " + overloaded + " alone (R34)",
			Operations: []string{onSession("startTransaction", ""), suites.FailPoint(o.Command, suites.Times(1), suites.Labelled(limited, overloaded)),
				o.Call("client", "session: session", raised(overloaded)), onSession("abortTransaction", "")},
			Events:  []suites.Expected{{Client: "client", Events: join(o.Attempts(1, 1, begins), abort.Attempts(1, 0, "")[:1]), Extra: true}},
			Outcome: o.Outcome(false),
		})
	}
	f.Add(suites.Test{
		Description: "collection.insertOne is retried no more than twice in a transaction (B4)",
		Operations: []string{onSession("startTransaction", ""), suites.FailPoint("insert", suites.Times(3), overload()),
			insert.Call("client", "session: session", raised(overloaded, retryable)), onSession("abortTransaction", "")},
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(3, 3, begins), abort.Attempts(1, 0, "")[:1]), Extra: true}},
		Outcome: insert.Outcome(false),
	})
	for _, r := range []struct{ title, by, option string }{
		{"collection.find", "noReads", "retryReads"}, {"collection.aggregate", "noReads", "retryReads"},
		{"collection.insertOne", "noWrites", "retryWrites"}, {"collection.updateMany", "noWrites", "retryWrites"},
		{"database.runCommand with find", "noReads", "retryReads"}, {"database.runCommand with find", "noWrites", "retryWrites"},
	} {
		o, session := named(r.title), "session-"+r.by
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s is not retried in a transaction with %s false (B3)", o.Title(), r.option),
			Operations: []string{"{ name: startTransaction, object: " + session + " }", suites.FailPoint(o.Command, suites.Times(1), overload()),
				o.Call(r.by, "session: "+session, raised(overloaded, retryable)), "{ name: abortTransaction, object: " + session + " }"},
			Events:  []suites.Expected{{Client: r.by, Events: o.Attempts(1, 1, "startTransaction: true, autocommit: false")}},
			Outcome: o.Outcome(false),
		})
	}
	begin := []string{onSession("startTransaction", ""), insert.Call("client", "session: session", "")}
	for _, e := range []operation{commit, abort} {
		commits := e.Command == commit.Command
		f.Add(suites.Test{
			Description: e.Command + " is retried twice after overload errors (B1)",
			Operations:  join(begin, []string{suites.FailPoint(e.Command, suites.Times(2), overload()), onSession(e.Command, "")}),
			Events:      []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), e.Attempts(3, 2, ""))}},
			Outcome:     insert.Outcome(commits),
		})
	}
	// The transaction is open in the server, and is ended.
	majority := ending("commitTransaction", "writeConcern: { w: majority, wtimeout: 10000 }")
	f.Add(suites.Test{
		Description: "commitTransaction is retried no more than twice after overload errors (B4)",
		Operations: join(begin, []string{suites.FailPoint("commitTransaction", suites.Times(3), overload()),
			onSession("commitTransaction", fmt.Sprintf("{ isClientError: false, errorCode: %d, errorLabelsContain: [ %s, %s ], errorLabelsOmit: [ UnknownTransactionCommitResult, TransientTransactionError ] }",
				limited.Number, overloaded, retryable)), onSession("commitTransaction", "")}),
		Events: []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), commit.Attempts(3, 3, ""),
			[]string{suites.StartedEvent("{ commitTransaction: 1, "+goesOn+" }", "commitTransaction", "admin"), suites.SucceededEvent("commitTransaction")})}},
		Outcome: insert.Outcome(true),
	})
	f.Add(suites.Test{
		Description: "abortTransaction is retried no more than twice after overload errors, which are not raised (B4)",
		Operations: join(begin, []string{suites.FailPoint("abortTransaction", suites.Times(3), overload()), onSession("abortTransaction", "")},
			[]string{onSession("startTransaction", ""), insert.Call("client", "session: session", ""), onSession("abortTransaction", "")}),
		Events:  []suites.Expected{{Client: "client", Extra: true, Events: join(insert.Attempts(1, 0, begins), abort.Attempts(3, 3, ""), insert.Attempts(1, 0, restart))}},
		Outcome: insert.Outcome(false),
	})
	// Once the outcome of a commit is not known, majority is asked for.
	unreachable := suites.Code{Number: 6, Name: "HostUnreachable"}
	f.Add(suites.Test{
		Description: "commitTransaction is retried with majority after an error that is no retryable overload error (W10)",
		Operations: join(begin, []string{suites.FailPoint("commitTransaction", suites.Times(1), suites.Labelled(unreachable, writable, overloaded)),
			onSession("commitTransaction", "")}),
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), commit.Attempts(1, 1, ""), majority.Attempts(1, 0, ""))}},
		Outcome: insert.Outcome(true),
	})
	return f
}

// convenient has overload errors in the middle of withTransaction.
func convenient() *suites.File {
	f := &suites.File{
		Name:        "convenient-transactions",
		Description: "client backpressure: withTransaction",
		About:       []string{"Overload errors in a callback or in its commit are retried command by command; the callback is not run again for them."},
		Require:     []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Least:       "1.9",
		Clients:     []suites.Client{suites.SetupClient(), watched(), suites.Observed("hurried", "{ timeoutMS: 300 }"), suites.Observed("timed", "{ timeoutMS: 6000 }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(append(f.Entities, objects(c.ID, "collection")...), suites.Session(c.ID))
	}
	insert, update := named("collection.insertOne"), named("collection.updateOne")
	commit, abort := ending("commitTransaction", "writeConcern: { $$exists: false }"), ending("abortTransaction", "")
	with := func(raises string, callback ...string) string {
		s := "{ name: withTransaction, object: session, arguments: { callback: [ "
		for i, c := range callback {
			if i > 0 {
				s += ", "
			}
			s += c
		}
		s += " ] }"
		if raises != "" {
			s += ", expectError: " + raises
		}
		return s + " }"
	}
	both := []suites.Outcome{{Collection: suites.Collection, Documents: []string{"{ _id: 1, x: 11 }", "{ _id: 2, x: 23 }", "{ _id: 3, x: 33 }", "{ _id: 4, x: 44 }"}}}
	done := raised(overloaded, retryable)
	in, up := insert.Call("client", "session: session", ""), update.Call("client", "session: session", "")
	f.Add(suites.Test{
		Description: "withTransaction goes on after an overload error of its first command (B1)",
		Operations:  []string{suites.FailPoint("insert", suites.Times(1), overload()), with("", in, up)},
		Events:      []suites.Expected{{Client: "client", Events: join(insert.Attempts(2, 1, begins), update.Attempts(1, 0, goesOn), commit.Attempts(1, 0, ""))}},
		Outcome:     both,
	})
	f.Add(suites.Test{
		Description: "withTransaction goes on after an overload error in the middle (B1)",
		Operations:  []string{suites.FailPoint("update", suites.Times(2), overload()), with("", in, up)},
		Events:      []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(3, 2, goesOn), commit.Attempts(1, 0, ""))}},
		Outcome:     both,
	})
	f.Add(suites.Test{
		Description: "withTransaction goes on after an overload error of its commit (B1)",
		Operations:  []string{suites.FailPoint("commitTransaction", suites.Times(2), overload()), with("", in, up)},
		Events:      []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(1, 0, goesOn), commit.Attempts(3, 2, ""))}},
		Outcome:     both,
	})
	f.Add(suites.Test{
		Description: "withTransaction raises the overload error after two retries in the middle (B4)",
		Operations:  []string{suites.FailPoint("update", suites.Times(3), overload()), with(done, in, update.Call("client", "session: session", done))},
		Events:      []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(3, 3, goesOn), abort.Attempts(1, 0, ""))}},
		Outcome:     insert.Outcome(false),
	})
	f.Add(suites.Test{
		Description: "withTransaction raises the overload error after two retries of the first command (B4)",
		Operations:  []string{suites.FailPoint("insert", suites.Times(3), overload()), with(done, insert.Call("client", "session: session", done))},
		Events:      []suites.Expected{{Client: "client", Extra: true, Events: join(insert.Attempts(3, 3, begins), abort.Attempts(1, 0, "")[:1])}},
		Outcome:     insert.Outcome(false),
	})
	again := fmt.Sprintf(", errorLabels: [ %s, %s, TransientTransactionError ]", overloaded, retryable)
	f.Add(suites.Test{
		Description: "withTransaction runs the callback again after overload errors with TransientTransactionError (B4)",
		Operations: []string{suites.FailPoint("update", suites.Times(3), suites.ErrorCode(limited)+again),
			"{ name: withTransaction, object: session, arguments: { callback: [ " + in + ", { name: updateOne, object: collection, arguments: " +
				suites.Merge(update.Arguments, "session: session") + ", ignoreResultAndError: true } ] } }"},
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(3, 3, goesOn), abort.Attempts(1, 0, ""))[:10], Extra: true}},
		Outcome: both,
	})

	// What withTransaction itself tries again, and the backoff before it.
	conflict := suites.Code{Number: 112, Name: "WriteConflict"}
	transient := suites.Labelled(conflict, "TransientTransactionError")
	second := func(o operation, started string) operation {
		o.Started = suites.Merge("{ "+o.Command+": "+suites.Collection+" }", started)
		return o
	}
	const inSecond = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "2" }, startTransaction: { $$exists: false }, autocommit: false`
	recommit := operation{Operation: suites.Operation{Command: "commitTransaction", Database: "admin", Started: "{ commitTransaction: 1, " + inSecond + " }"}}
	// The error of the first run is a result that the second run does not have.
	either := "{ name: updateOne, object: collection, arguments: " + suites.Merge(update.Arguments, "session: session") + ", ignoreResultAndError: true }"
	f.Add(suites.Test{
		Description: "withTransaction begins anew after an error with TransientTransactionError (T10)",
		Operations:  []string{suites.FailPoint("update", suites.Times(1), transient), with("", in, either)},
		Events: []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(1, 1, goesOn), abort.Attempts(1, 0, ""),
			second(insert, restart).Attempts(1, 0, ""), second(update, inSecond).Attempts(1, 0, ""), recommit.Attempts(1, 0, ""))}},
		Outcome: both,
	})
	f.Add(suites.Test{
		Description: "withTransaction raises an error without TransientTransactionError (T7)",
		Operations: []string{suites.FailPoint("update", suites.Times(1), suites.Labelled(conflict)),
			with(suites.RaisedCode(conflict), in, update.Call("client", "session: session", suites.RaisedCode(conflict)))},
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(1, 1, goesOn), abort.Attempts(1, 0, ""))}},
		Outcome: insert.Outcome(false),
	})
	unreachable := suites.Code{Number: 6, Name: "HostUnreachable"}
	majority := ending("commitTransaction", "writeConcern: { w: majority, wtimeout: 10000 }")
	f.Add(suites.Test{
		Description: "withTransaction commits again, with majority, if the outcome of its commit is not known (T6)",
		Operations:  []string{suites.FailPoint("commitTransaction", suites.Times(2), suites.Labelled(unreachable, writable)), with("", in, up)},
		Events: []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(1, 0, goesOn), commit.Attempts(1, 1, ""),
			majority.Attempts(2, 1, ""))}},
		Outcome: both,
	})
	expired := suites.Code{Number: 50, Name: "MaxTimeMSExpired"}
	f.Add(suites.Test{ // and ended, so that nothing is left in the server
		Description: "withTransaction does not commit again after MaxTimeMSExpired (T7)",
		Operations: []string{suites.FailPoint("commitTransaction", suites.Times(1), suites.ErrorCode(expired)),
			with("{ isClientError: false, errorCode: 50, errorLabelsContain: [ UnknownTransactionCommitResult ] }", in, up), onSession("commitTransaction", "")},
		Events: []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(1, 0, goesOn), commit.Attempts(1, 1, ""),
			ending("commitTransaction", "").Attempts(1, 0, ""))}},
		Outcome: both,
	})
	tries := func(by, raises string, times int) []string {
		return []string{suites.FailPoint("insert", suites.Times(times), transient),
			"{ name: withTransaction, object: session-" + by + ", arguments: { callback: [ { name: insertOne, object: collection-" + by + ", arguments: " +
				suites.Merge(insert.Arguments, "session: session-"+by) + ", ignoreResultAndError: true } ] }" + raises + " }"}
	}
	// The first does not ask for events: the time may be over before there are
	// any. Without sleeping, too, one of forty backoffs would outlast the rest.
	f.Add(suites.Test{
		Description: "withTransaction backs off for so long that forty transactions do not fit into 300 ms (T9)",
		Operations:  tries("hurried", ", expectError: { isTimeoutError: true }", 40),
		Outcome:     insert.Outcome(false),
	})
	f.Add(suites.Test{ // and ended, so that nothing is left in the server
		Description: "withTransaction commits again only until timeoutMS is over (T5)",
		Operations: []string{suites.FailPoint("commitTransaction", suites.Always, suites.Labelled(suites.Code{Number: 11601}, "UnknownTransactionCommitResult")),
			"{ name: withTransaction, object: session-hurried, arguments: { callback: [ " + insert.Call("hurried", "session: session-hurried", "") +
				" ] }, expectError: { isTimeoutError: true, errorLabelsContain: [ UnknownTransactionCommitResult ] } }",
			suites.SetFailPoint("failCommand", `"off"`, ""), "{ name: commitTransaction, object: session-hurried, ignoreResultAndError: true }"},
	})
	f.Add(suites.Test{
		Description: "withTransaction backs off for so short a time that nine transactions fit into six seconds (T9)",
		Operations:  tries("timed", "", 8),
		Events:      []suites.Expected{{Client: "timed", Extra: true, Events: insert.Attempts(1, 1, "startTransaction: true")}},
		Outcome:     insert.Outcome(true),
	})
	return f
}
