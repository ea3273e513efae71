package reads

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

var policy = suites.Policy{Database: databaseName, Noun: "read", Option: "retryReads", Network: "R10", Handshake: "R13", Pool: "R12", Off: "R30"}

// Suites are the suites of retryable reads.
func Suites() suites.Specification {
	var files []*suites.File
	for _, o := range Operations(databaseName) {
		files = append(files, suites.Of(o, requirement(o), policy.Both(""), stories(),
			"Each error that makes "+o.Title()+" retryable, errors that do not, and retryReads."))
	}
	return suites.Specification{Name: "retryable-reads", Title: "retryable reads", Package: "reads", Database: databaseName,
		Files: append(files, secondError(), neverRetried(), sessions(), transactions(), otherMongos(), timeouts(),
			handshakeHello(), handshakeAuth(), poolCleared(), selectionFails(), notRetryable(), sequences())}
}

// everywhere is for what all operations but change streams need.
var everywhere = suites.Servers("4.2", "")

// requirement is for what an operation needs.
func requirement(o operation) string {
	if o.Watches {
		return suites.Servers("4.2", suites.Retrying)
	}
	return everywhere
}

// everything are the objects that all operations are called on.
var everything = []string{"admin", "database", "collection", "bucket"}

func named(title string) operation { return suites.Named(Operations(databaseName), title) }

// stories are made for every operation.
func stories() []story {
	const off = " with retryReads false (R30)"
	list := []story{
		{Says: "succeeds at the first attempt (R6)", Attempts: 1},
		suites.Retried("a network error (R10)", suites.Closes),
		suites.Twice("network error (R35)", suites.Closes, suites.RaisedNetwork),
		suites.NotRetried("a network error"+off, suites.Closes, suites.RaisedNetwork).Of("noRetry"),
	}
	for _, c := range retryable {
		list = append(list, suites.Retried(c.Name+" (R11)", suites.ErrorCode(c)))
	}
	// A code that leaves the server known, and one that makes it unknown.
	for _, c := range []suites.Code{suites.HostUnreachable, suites.ShutdownInProgress} {
		list = append(list, suites.Twice(c.Name+" (R35)", suites.ErrorCode(c), suites.RaisedCode(c)),
			suites.NotRetried(c.Name+off, suites.ErrorCode(c), suites.RaisedCode(c)).Of("noRetry"))
	}
	for _, c := range others {
		list = append(list, suites.NotRetried(c.Name+" (R34)", suites.ErrorCode(c), suites.RaisedCode(c)))
	}
	return list
}

// secondError lets the retry reach a server that refuses the command for a
// reason of its own, so that the two errors can be told apart. A server looks
// for unknown stages before a fail point strikes, and into filters after it.
func secondError() *suites.File {
	f := suites.NewFile("second-error", "the error that is raised after a retry", everywhere,
		"The first attempt fails by a fail point, the retry by what the command asks for. The second error says more, and is raised.")
	const match = "{ $utrUnknown: 1 }"
	const stage = "[ { $match: " + match + " } ]"
	for _, r := range []struct{ name, arguments, started string }{
		{"aggregate", "{ pipeline: " + stage + " }", "{ aggregate: " + suites.Collection + ", pipeline: " + stage + " }"},
		{"count", "{ filter: " + match + " }", "{ count: " + suites.Collection + ", query: " + match + " }"},
		{"countDocuments", "{ filter: " + match + " }", "{ aggregate: " + suites.Collection + " }"},
		{"distinct", "{ fieldName: x, filter: " + match + " }", "{ distinct: " + suites.Collection + ", key: x, query: " + match + " }"},
		{"find", "{ filter: " + match + " }", "{ find: " + suites.Collection + ", filter: " + match + " }"},
		{"findOne", "{ filter: " + match + " }", "{ find: " + suites.Collection + ", filter: " + match + " }"},
	} {
		o := named("collection." + r.name)
		o.Arguments, o.Started = r.arguments, r.started
		for _, first := range []struct{ says, data string }{
			{"a network error", suites.Closes},
			{suites.HostUnreachable.Name, suites.ErrorCode(suites.HostUnreachable)},
			{suites.InterruptedAtShutdown.Name, suites.ErrorCode(suites.InterruptedAtShutdown)},
		} {
			f.Tell(o, story{Says: "raises BadValue of the retry, not " + first.says + " of the first attempt (R20)", Fails: first.data,
				Raises: suites.RaisedCode(suites.BadValue), Attempts: 2})
		}
	}
	return f
}

// neverRetried are the operations of "Unsupported Read Operations".
func neverRetried() *suites.File {
	f := suites.NewFile("never-retried", "operations that are never retried", everywhere,
		"getMore, generic commands, mapReduce and aggregations that write are attempted once, whatever the error.")
	const find, count = `{ find: documents, filter: { _id: 1 } }`, `{ count: documents }`
	for _, o := range suites.Complete(databaseName, []operation{
		{Name: "aggregate", Variant: "with $out", Arguments: `{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $out: written } ] }`},
		{Name: "aggregate", Variant: "with $merge", Arguments: `{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $merge: { into: written } } ] }`},
		{Name: "mapReduce", Started: `{ mapReduce: documents, out: { inline: 1 } }`, Arguments: `{ map: { $code: "function() { emit(0, this.x) }" }, ` +
			`reduce: { $code: "function(key, values) { return Array.sum(values) }" }, out: { inline: 1 } }`},
		{Object: "database", Name: "runCommand", Variant: "with a find", Command: "find",
			Arguments: "{ commandName: find, command: " + find + " }", Started: find},
		{Object: "database", Name: "runCommand", Variant: "with a count", Command: "count",
			Arguments: "{ commandName: count, command: " + count + " }", Started: count},
		suites.GetMore("find", databaseName, "{ filter: {}, batchSize: 2 }"),
	}) {
		o.Reads = true
		rule := map[bool]string{true: " (W35)", false: " (R33)"}[o.Command == "aggregate"]
		list := []story{suites.NotRetried("a network error"+rule, suites.Closes, suites.RaisedNetwork)}
		for _, c := range []suites.Code{suites.HostUnreachable, suites.ShutdownInProgress, suites.NotWritablePrimary, suites.InterruptedAtShutdown} {
			list = append(list, suites.NotRetried(c.Name+rule, suites.ErrorCode(c), suites.RaisedCode(c)))
		}
		for _, s := range list {
			if o.Command == "getMore" {
				s.Seen = suites.Cursor("find", databaseName)
			}
			f.Tell(o, s)
		}
	}
	return f
}

// sessions checks that a retry goes on in the same session.
func sessions() *suites.File {
	f := suites.NewFile("sessions", "the session of a retry", everywhere,
		"A retry belongs to the session of the first attempt, explicit or implicit.")
	f.Sessions = true
	for _, o := range Operations(databaseName) {
		if !o.Session {
			continue
		}
		f.Tell(o,
			story{Says: "is retried with the lsid of its explicit session (R5)", Fails: suites.Closes, With: "session: session",
				Attempts: 2, Carries: "lsid: { $$sessionLsid: session }"},
			story{Says: "is retried with the lsid of its implicit session (R5)", Fails: suites.Closes, After: []string{suites.SameLsid},
				Attempts: 2, Carries: "lsid: { $$exists: true }"})
	}
	return f
}

// transactions checks that nothing in a transaction is retried, and that the
// session is as before afterwards.
func transactions() *suites.File {
	f := suites.NewFile("transactions", "no retries in a transaction", suites.Servers("4.2", suites.Retrying),
		"A read in a transaction is attempted once; after the transaction its session retries again.")
	f.Sessions = true
	const inside = "lsid: { $$sessionLsid: session }, startTransaction: true, autocommit: false"
	const outside = "lsid: { $$sessionLsid: session }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }"
	for _, o := range Operations(databaseName) {
		if !o.Txn {
			continue
		}
		f.TellInTransaction(o, inside, "R31",
			suites.NotRetried("a network error", suites.Closes, suites.WithLabels(suites.RaisedNetwork, suites.TransientTransactionError, "")),
			suites.NotRetried("HostUnreachable", suites.ErrorCode(suites.HostUnreachable), suites.RaisedCode(suites.HostUnreachable)),
			suites.NotRetried("InterruptedAtShutdown", suites.ErrorCode(suites.InterruptedAtShutdown), suites.RaisedCode(suites.InterruptedAtShutdown)))
		f.TellAfterTransaction(o, inside, outside, policy.Network)
	}
	return f
}

func otherMongos() *suites.File {
	var rows []suites.OnMongoses
	for _, o := range Operations(databaseName) {
		if o.Object != "bucket" {
			rows = append(rows, suites.OnMongoses{Operation: o, Rounds: slices.Repeat([]operation{o}, suites.Rounds)})
		}
	}
	f := policy.OtherMongos(suites.Servers("4.2", suites.Sharded), rows...)
	f.Objects = []string{"admin", "database", "collection"}
	return f
}

func timeouts() *suites.File {
	f, s := policy.Timeouts(everywhere)
	f.Objects, f.Bucket = everything, true
	for _, o := range Operations(databaseName) {
		if !o.Watches { // what timeoutMS means while a change stream is opened differs between drivers
			f.Tell(o, s.Thrice, s.Off)
		}
	}
	find := named("collection.find")
	s.Outlasts.Require, s.Outlasts.Before, s.Outlasts.Seen = suites.Servers("4.4", ""), []string{find.Call("client", "", "")}, find.Attempts(1, 0, "")
	f.Tell(find, s.Endless, s.Expired, s.Outlasts)
	return f
}

func handshakeHello() *suites.File {
	f, retried, off := policy.HandshakeHello("utrHandshake", suites.Servers("4.4.7", ""))
	for _, o := range []operation{
		named("client.listDatabases"), named("database.listCollections"), named("collection.aggregate"), named("collection.distinct"),
		named("collection.estimatedDocumentCount"), named("collection.find"), named("collection.listIndexes"),
	} {
		f.Tell(o, retried)
	}
	f.Tell(named("collection.find"), off)
	return f
}

func handshakeAuth() *suites.File {
	f, each, second := policy.HandshakeAuth(suites.Authenticated("4.2", suites.Monitored)...)
	f.Objects, f.Bucket = everything, true
	for _, o := range Operations(databaseName) {
		list := slices.Clone(each)
		if o.Name == "find" {
			list = slices.Insert(list, 3, second)
		}
		for _, s := range list {
			if o.Watches {
				s.Require = requirement(o)
			}
			f.Tell(o, s)
		}
	}
	return f
}

func poolCleared() *suites.File {
	var rows []suites.Pooled
	for _, name := range []string{"find", "aggregate", "distinct"} {
		o := named("collection." + name)
		rows = append(rows, suites.Pooled{Operation: o, First: o.Arguments, Second: o.Arguments})
	}
	return policy.PoolCleared(suites.Servers("4.2.9", suites.Monitored), suites.AnyError, rows...)
}

func selectionFails() *suites.File {
	// The first hello obeys a fail point for an appName since SERVER-49336.
	return policy.ServerSelection("utrSelection", suites.Servers("4.4.7", suites.Monitored), sampled()...)
}
