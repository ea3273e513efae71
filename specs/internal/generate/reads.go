package main

import "slices"

var reads = Policy{Database: readDatabase, Noun: "read", Option: "retryReads", Network: "R10", Codes: "R11", Once: "R35", Expires: "R37", Handshake: "R13", Pool: "R12", Off: "R30"}

func readSuites() Specification {
	var files []*File
	for _, o := range readOperations(readDatabase) {
		files = append(files, Of(o, readRequirement(o), reads.Both(""), readStories(),
			"Every error after which "+o.Title()+" is retried, errors after which it is not, and retryReads."))
	}
	return Specification{Name: "retryable-reads", Files: append(files, readSecondErrors(), readsNeverRetried(), readSessions(), readTransactions(), readOtherMongos(), readTimeouts(),
		readHandshakeHello(), readHandshakeAuth(), readPoolCleared(), readSelectionFails(), readsNotRetryable(), readSequences())}
}

// everywhere is the requirement of all operations except change streams.
var everywhere = Servers("4.2", "")

func readRequirement(o Operation) string {
	if o.Watches {
		return Servers("4.2", Retrying)
	}
	return everywhere
}

// everything has the objects of all operations.
var everything = []string{"admin", "database", "collection", "bucket"}

func readNamed(title string) Operation { return Named(readOperations(readDatabase), title) }

func readStories() []Story {
	const off = " if retryReads is false (R30)"
	list := []Story{
		{Says: "succeeds on the first attempt (R6)", Attempts: 1},
		Retried("a network error (R10)", Closes),
		Twice("network error (R35)", Closes, RaisedNetwork),
		NotRetried("a network error"+off, Closes, RaisedNetwork).Of("noRetry"),
	}
	for _, c := range readCodes {
		list = append(list, Retried(c.Name+" (R11)", ErrorCode(c)))
	}
	// A code that leaves the server known, and one that makes it unknown.
	for _, c := range []Code{HostUnreachable, ShutdownInProgress} {
		list = append(list, Twice(c.Name+" (R35)", ErrorCode(c), RaisedCode(c)),
			NotRetried(c.Name+off, ErrorCode(c), RaisedCode(c)).Of("noRetry"))
	}
	for _, c := range otherCodes {
		list = append(list, NotRetried(c.Name+" (R34)", ErrorCode(c), RaisedCode(c)))
	}
	return list
}

func readSecondErrors() *File {
	f := NewFile("second-error", "the error that is raised after a retry", everywhere,
		"A fail point fails the first attempt, and the server rejects the retry. The second error is raised, because it says",
		"more.")
	for _, o := range table("refused reads", readDatabase) {
		o.Reads = true
		for _, first := range []struct{ says, data string }{
			{"network error", Closes},
			{HostUnreachable.Name, ErrorCode(HostUnreachable)},
			{InterruptedAtShutdown.Name, ErrorCode(InterruptedAtShutdown)},
		} {
			f.Tell(o, Story{Says: "raises BadValue from the retry, not the first attempt's " + first.says + " (R20)", Mode: Times(1),
				Fails: first.data, Raises: RaisedCode(BadValue), Attempts: 2})
		}
	}
	return f
}

// readsNeverRetried has the operations of "Unsupported Read Operations".
func readsNeverRetried() *File {
	f := NewFile("never-retried", "operations that are never retried", everywhere,
		"getMore, generic commands, mapReduce and aggregations that write are attempted once, whatever the error.")
	for _, o := range append(table("other reads", readDatabase), GetMore("find", readDatabase, "{ filter: {}, batchSize: 2 }")) {
		o.Reads = true
		rule := map[bool]string{true: " (W35)", false: " (R33)"}[o.Command == "aggregate"]
		list := []Story{NotRetried("a network error"+rule, Closes, RaisedNetwork)}
		for _, c := range []Code{HostUnreachable, ShutdownInProgress, NotWritablePrimary, InterruptedAtShutdown} {
			list = append(list, NotRetried(c.Name+rule, ErrorCode(c), RaisedCode(c)))
		}
		f.Tell(o, list...)
	}
	return f
}

func readSessions() *File {
	f := NewFile("sessions", "the session of a retry", everywhere,
		"A retry uses the session of the first attempt, explicit or implicit.")
	f.Sessions = true
	for _, o := range readOperations(readDatabase) {
		if !o.Session {
			continue
		}
		f.Tell(o,
			Story{Says: "is retried with the lsid of its explicit session (R5)", Fails: Closes, With: "session: session",
				Attempts: 2, Carries: "lsid: { $$sessionLsid: session }"},
			Story{Says: "is retried with the lsid of its implicit session (R5)", Fails: Closes, After: []string{SameLsid},
				Attempts: 2, Carries: "lsid: { $$exists: true }"})
	}
	return f
}

func readTransactions() *File {
	f := NewFile("transactions", "no retries in a transaction", Servers("4.2", Retrying),
		"A read in a transaction is attempted once. After the transaction, reads of its session are retried again.")
	f.Sessions = true
	const inside = "lsid: { $$sessionLsid: session }, startTransaction: true, autocommit: false"
	const outside = "lsid: { $$sessionLsid: session }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }"
	for _, o := range readOperations(readDatabase) {
		if !o.Txn {
			continue
		}
		f.TellInTransaction(o, inside, "R31",
			NotRetried("a network error", Closes, WithLabels(RaisedNetwork, TransientTransactionError, "")),
			NotRetried("HostUnreachable", ErrorCode(HostUnreachable), RaisedCode(HostUnreachable)),
			NotRetried("InterruptedAtShutdown", ErrorCode(InterruptedAtShutdown), RaisedCode(InterruptedAtShutdown)))
		f.TellAfterTransaction(o, inside, outside, reads.Network)
	}
	return f
}

func readOtherMongos() *File {
	var rows []OnMongoses
	for _, o := range readOperations(readDatabase) {
		if o.Object != "bucket" {
			rows = append(rows, OnMongoses{Operation: o})
		}
	}
	f := reads.OtherMongos(Servers("4.2", Sharded), rows...)
	f.Objects = []string{"admin", "database", "collection"}
	return f
}

func readTimeouts() *File {
	f, s := reads.Timeouts(everywhere)
	f.Objects, f.Bucket = everything, true
	for _, o := range readOperations(readDatabase) {
		if !o.Watches { // drivers differ in the meaning of timeoutMS while opening a change stream
			f.Tell(o, s.Thrice, s.Off)
		}
	}
	find := readNamed("collection.find")
	s.Outlasts.Require, s.Outlasts.Before, s.Outlasts.Seen = Servers("4.4", ""), []string{find.Call("client", "", "")}, find.Attempts(1, 0, "")
	f.Tell(find, s.Endless, s.Expired, s.Outlasts)
	return f
}

func readHandshakeHello() *File {
	f, retried, off := reads.HandshakeHello("utrHandshake", Servers("4.4.7", ""))
	for _, o := range []Operation{
		readNamed("client.listDatabases"), readNamed("database.listCollections"), readNamed("collection.aggregate"), readNamed("collection.distinct"),
		readNamed("collection.estimatedDocumentCount"), readNamed("collection.find"), readNamed("collection.listIndexes"),
	} {
		f.Tell(o, retried)
	}
	f.Tell(readNamed("collection.find"), off)
	return f
}

func readHandshakeAuth() *File {
	f, each, second := reads.HandshakeAuth(Authenticated("4.2", Monitored)...)
	f.Objects, f.Bucket = everything, true
	for _, o := range readOperations(readDatabase) {
		list := slices.Clone(each)
		if o.Name == "find" {
			list = slices.Insert(list, 3, second)
		}
		for _, s := range list {
			if o.Watches {
				s.Require = readRequirement(o)
			}
			f.Tell(o, s)
		}
	}
	return f
}

func readPoolCleared() *File {
	var rows []Pooled
	for _, name := range []string{"find", "aggregate", "distinct"} {
		o := readNamed("collection." + name)
		rows = append(rows, Pooled{Operation: o, First: o.Arguments, Second: o.Arguments})
	}
	return reads.PoolCleared(Servers("4.2.9", Monitored), AnyError, rows...)
}

func readSelectionFails() *File {
	// Since SERVER-49336 a fail point for an appName affects the first hello.
	return reads.ServerSelection("utrSelection", Servers("4.4.7", Monitored), sampled()...)
}

const readDatabase = "utr-retryable-reads"

func readOperations(database string) []Operation {
	list := table("reads", database)
	for i := range list {
		list[i].Reads = true
	}
	return list
}

// readCodes are the codes of "Retryable Error".
var readCodes = []Code{
	HostUnreachable, HostNotFound, NetworkTimeout, ShutdownInProgress,
	ReadConcernMajorityNotAvailableYet, PrimarySteppedDown, ExceededTimeLimit, SocketException,
	NotWritablePrimary, InterruptedAtShutdown, InterruptedDueToReplStateChange,
	NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary,
}

// otherCodes are similar codes that are not retryable, and foreignCodes those that matter elsewhere.
var (
	otherCodes   = []Code{MaxTimeMSExpired, Interrupted}
	foreignCodes = []Code{CursorNotFound, WriteConcernTimeout, WriteConflict, FailedToSatisfyReadPreference, RetryChangeStream}
)

func readsNotRetryable() *File {
	f := NewFile("not-retryable", "errors that are not retryable", everywhere,
		"Error labels, and codes that matter to change streams, writes or transactions, do not make a read retryable. An error",
		"with a retryable code is retryable whatever its labels.")
	labelled := Servers("4.4", "")
	for _, o := range sampled() {
		for _, c := range foreignCodes {
			f.Tell(o, NotRetried(c.Name+" (R34)", ErrorCode(c), RaisedCode(c)))
		}
		for _, label := range []string{writable, retryable, "ResumableChangeStreamError", TransientTransactionError} {
			f.Tell(o, NotRetried("Interrupted with the label "+label+" (R34)", Labelled(Interrupted, label),
				RaisedCode(Interrupted)).On(labelled))
		}
		f.Tell(o, Retried("HostUnreachable with the label NoWritesPerformed (R11)",
			Labelled(HostUnreachable, noWrites)).On(labelled))
	}
	return f
}

// sampled returns some reads, for stories that do not depend on the operation.
func sampled() []Operation {
	return []Operation{readNamed("collection.find"), readNamed("collection.aggregate"), readNamed("database.listCollections")}
}

func readSequences() *File {
	f := NewFile("sequences", "attempts that fail in different ways", Sequences(""),
		"The error of the last attempt is raised, and decides whether another attempt follows. Each attempt fails differently,",
		"which needs a fail point of utr's embedded deployment.")
	f.Clients = []Client{Observed("client", ""), Observed("timed", "timeoutMS: 20000")}
	unreachable, notFound := ErrorCode(HostUnreachable), ErrorCode(HostNotFound)
	exceeded, interrupted := ErrorCode(ExceededTimeLimit), ErrorCode(Interrupted)
	for _, o := range sampled() {
		f.Tell(o,
			Failing("raises the error of the retry, even with the label NoWritesPerformed (R20)",
				RaisedCode(ExceededTimeLimit), unreachable, Labelled(ExceededTimeLimit, noWrites)),
			Failing("raises the error of the retry, even if it is not retryable (R20)", RaisedCode(Interrupted),
				unreachable, interrupted),
			Failing("raises the network error of the retry (R20)", RaisedNetwork, unreachable, Closes),
			Failing("raises the server error of the retry after a network error (R20)", RaisedCode(HostNotFound),
				Closes, notFound),
			Failing("is retried after four different errors within timeoutMS (R36)", "", unreachable, Closes,
				exceeded, notFound).Of("timed"),
			Failing("is not retried again within timeoutMS after an error that is not retryable (R34)",
				RaisedCode(Interrupted), unreachable, notFound, interrupted).Of("timed"))
	}
	return f
}
