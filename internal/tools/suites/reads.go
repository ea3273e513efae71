package main

import (
	"slices"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

var reads = policy{Database: readDatabase, Noun: "read", Option: "retryReads", Network: "R10", Codes: "R11",
	Once:    "R35",
	Expires: "R37", Handshake: "R13", Pool: "R12", Off: "R30"}

func readSuites() specification {
	var files []*file
	for _, o := range readOperations(readDatabase) {
		files = append(files, operationFile(o, readRequirement(o), reads.clients(), readStories(),
			"Every error after which "+o.title()+" is retried, errors after which it is not, and retryReads."))
	}
	files = append(files, readSecondErrors(), readsNeverRetried(), readSessions(), readTransactions(), readOtherMongos(),
		readTimeouts(), readHandshakeHello(), readPoolCleared(), readsNotRetryable(), readSequences())
	return specification{Name: "retryable-reads", Files: slices.Concat(files, readHandshakeAuth().divide(objectOf),
		readSelectionFails().divide(operationOf))}
}

// everywhere is the requirement of all operations except change streams.
var everywhere = servers("4.2", 0)

func readRequirement(o operation) requirement {
	if o.Watches {
		return servers("4.2", withRetries)
	}
	return everywhere
}

// everything has the objects of all operations.
var everything = []string{"admin", "database", "collection", "bucket"}

func readNamed(title string) operation { return titled(readOperations(readDatabase), title) }

func readStories() []story {
	const off = " if retryReads is false (R30)"
	list := []story{
		{Says: "succeeds on the first attempt (R6)", Attempts: 1},
		retried("a network error (R10)", closes),
		failedTwice("network error (R35)", closes, raisedNetwork),
		notRetried("a network error"+off, closes, raisedNetwork).byClient("noRetry"),
	}
	for _, c := range readCodes {
		list = append(list, retried(c.Name+" (R11)", errorCode(c)))
	}
	// A code that leaves the server known, and one that makes it unknown.
	for _, c := range []code{hostUnreachable, shutdownInProgress} {
		list = append(list, failedTwice(c.Name+" (R35)", errorCode(c), raisedCode(c)),
			notRetried(c.Name+off, errorCode(c), raisedCode(c)).byClient("noRetry"))
	}
	for _, c := range otherCodes {
		list = append(list, notRetried(c.Name+" (R34)", errorCode(c), raisedCode(c)))
	}
	return list
}

func readSecondErrors() *file {
	f := newFile("second-error", "the error that is raised after a retry", everywhere,
		"A fail point fails the first attempt, and the server rejects the retry. The second error is raised, because it says",
		"more.")
	for _, o := range table("refused reads", readDatabase) {
		o.Reads = true
		for _, first := range []struct {
			says string
			data value
		}{
			{"network error", closes},
			{hostUnreachable.Name, errorCode(hostUnreachable)},
			{interruptedAtShutdown.Name, errorCode(interruptedAtShutdown)},
		} {
			f.add(o, story{Says: "raises BadValue from the retry, not the first attempt's " + first.says + " (R20)",
				Mode:  times(1),
				Fails: first.data, Raises: raisedCode(badValue), Attempts: 2})
		}
	}
	return f
}

// readsNeverRetried has the operations of "Unsupported Read Operations".
func readsNeverRetried() *file {
	f := newFile("never-retried", "operations that are never retried", everywhere,
		"getMore, generic commands, mapReduce and aggregations that write are attempted once, whatever the error.")
	for _, o := range append(table("other reads", readDatabase),
		getMoreOf("find", readDatabase, flow("{ filter: {}, batchSize: 2 }"))) {
		o.Reads = true
		rule := " (R33)"
		if o.Command == "aggregate" {
			rule = " (W35)"
		}
		list := []story{notRetried("a network error"+rule, closes, raisedNetwork)}
		for _, c := range []code{hostUnreachable, shutdownInProgress, notWritablePrimary, interruptedAtShutdown} {
			list = append(list, notRetried(c.Name+rule, errorCode(c), raisedCode(c)))
		}
		f.add(o, list...)
	}
	return f
}

func readSessions() *file {
	f := newFile("sessions", "the session of a retry", everywhere,
		"A retry uses the session of the first attempt, explicit or implicit.")
	f.Sessions = true
	for _, o := range readOperations(readDatabase) {
		if !o.Session {
			continue
		}
		f.add(o,
			story{Says: "is retried with the lsid of its explicit session (R5)", Fails: closes, With: inSession("client"),
				Attempts: 2, Carries: doc("lsid", lsid("client"))},
			story{Says: "is retried with the lsid of its implicit session (R5)", Fails: closes, After: []value{sameLsid},
				Attempts: 2, Carries: doc("lsid", present)})
	}
	return f
}

func readTransactions() *file {
	f := newFile("transactions", "no retries in a transaction", servers("4.2", withRetries),
		"A read in a transaction is attempted once. After the transaction, reads of its session are retried again.")
	f.Sessions = true
	inside := doc("lsid", lsid("client"), "startTransaction", true, "autocommit", false)
	outside := doc("lsid", lsid("client"), "startTransaction", absent, "autocommit", absent)
	for _, o := range readOperations(readDatabase) {
		if !o.Txn {
			continue
		}
		f.addInTransaction(o, inside, "R31",
			notRetried("a network error", closes, withLabels(raisedNetwork, labels{transientTransaction}, nil)),
			notRetried("HostUnreachable", errorCode(hostUnreachable), raisedCode(hostUnreachable)),
			notRetried("InterruptedAtShutdown", errorCode(interruptedAtShutdown), raisedCode(interruptedAtShutdown)))
		f.addAfterTransaction(o, inside, outside, reads.Network)
	}
	return f
}

func readOtherMongos() *file {
	var rows []onMongoses
	for _, o := range readOperations(readDatabase) {
		if o.Object != "bucket" {
			rows = append(rows, onMongoses{operation: o})
		}
	}
	f := reads.otherMongos(servers("4.2", sharded), rows...)
	f.Objects = []string{"admin", "database", "collection"}
	return f
}

func readTimeouts() *file {
	f, s := reads.timeouts(everywhere)
	f.Objects, f.Bucket = everything, true
	for _, o := range readOperations(readDatabase) {
		if !o.Watches { // drivers differ in the meaning of timeoutMS while opening a change stream
			f.add(o, s.Thrice, s.Off)
		}
	}
	find := readNamed("collection.find")
	s.Outlasts.Require, s.Outlasts.Before, s.Outlasts.Seen = servers("4.4", 0), []value{find.call("client", nil, nil)},
		find.attempts(1, 0, nil)
	f.add(find, s.Endless, s.Expired, s.Outlasts)
	return f
}

func readHandshakeHello() *file {
	f, retried, off := reads.handshakeHello("utrHandshake", servers("4.4.7", 0))
	for _, o := range []operation{
		readNamed("client.listDatabases"), readNamed("database.listCollections"), readNamed("collection.aggregate"),
		readNamed("collection.distinct"),
		readNamed("collection.estimatedDocumentCount"), readNamed("collection.find"), readNamed("collection.listIndexes"),
	} {
		f.add(o, retried)
	}
	f.add(readNamed("collection.find"), off)
	return f
}

func readHandshakeAuth() *file {
	f, each, second := reads.handshakeAuth(authenticated("4.2", monitored)...)
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
			f.add(o, s)
		}
	}
	return f
}

func readPoolCleared() *file {
	var rows []pooled
	for _, name := range []string{"find", "aggregate", "distinct"} {
		o := readNamed("collection." + name)
		rows = append(rows, pooled{operation: o, First: o.Arguments, Second: o.Arguments})
	}
	return reads.poolCleared(servers("4.2.9", monitored), anyError, rows...)
}

func readSelectionFails() *file {
	// Since SERVER-49336 a fail point for an appName affects the first hello.
	return reads.serverSelection("utrSelection", servers("4.4.7", monitored), sampled()...)
}

const readDatabase = "utr-retryable-reads"

func readOperations(database string) []operation {
	list := table("reads", database)
	for i := range list {
		list[i].Reads = true
	}
	return list
}

// readCodes are the codes of "Retryable Error".
var readCodes = []code{
	hostUnreachable, hostNotFound, networkTimeout, shutdownInProgress,
	readConcernMajorityNotAvailableYet, primarySteppedDown, exceededTimeLimit, socketException,
	notWritablePrimary, interruptedAtShutdown, interruptedDueToReplStateChange,
	notPrimaryNoSecondaryOk, notPrimaryOrSecondary,
}

// otherCodes are similar codes that are not retryable. foreignCodes are codes that matter elsewhere.
var (
	otherCodes   = []code{maxTimeMSExpired, interrupted}
	foreignCodes = []code{cursorNotFound, writeConcernTimeout, writeConflict, failedToSatisfyReadPreference,
		retryChangeStream}
)

func readsNotRetryable() *file {
	f := newFile("not-retryable", "errors that are not retryable", everywhere,
		"Error labels, and codes that matter to change streams, writes or transactions, do not make a read retryable. An error",
		"with a retryable code is retryable whatever its labels.")
	labelled := servers("4.4", 0)
	for _, o := range sampled() {
		for _, c := range foreignCodes {
			f.add(o, notRetried(c.Name+" (R34)", errorCode(c), raisedCode(c)))
		}
		for _, label := range []string{writable, retryable, codes.ResumableChangeStreamError, transientTransaction} {
			f.add(o, notRetried("Interrupted with the label "+label+" (R34)", errorWithLabels(interrupted, label),
				raisedCode(interrupted)).requiring(labelled))
		}
		f.add(o, retried("HostUnreachable with the label NoWritesPerformed (R11)",
			errorWithLabels(hostUnreachable, noWrites)).requiring(labelled))
	}
	return f
}

// sampled returns some reads, for stories that do not depend on the operation.
func sampled() []operation {
	return []operation{readNamed("collection.find"), readNamed("collection.aggregate"),
		readNamed("database.listCollections")}
}

func readSequences() *file {
	f := newFile("sequences", "attempts that fail in different ways", sequenceServers(0),
		"The error of the last attempt is raised, and decides whether another attempt follows. Each attempt fails differently,",
		"which needs a fail point of utr's embedded deployment.")
	f.Clients = []client{observed("client", nil), observed("timed", doc("timeoutMS", 20000))}
	unreachable, notFound := errorCode(hostUnreachable), errorCode(hostNotFound)
	exceeded, stopped := errorCode(exceededTimeLimit), errorCode(interrupted)
	for _, o := range sampled() {
		f.add(o,
			failedInTurn("raises the error of the retry, even with the label NoWritesPerformed (R20)",
				raisedCode(exceededTimeLimit), unreachable, errorWithLabels(exceededTimeLimit, noWrites)),
			failedInTurn("raises the error of the retry, even if it is not retryable (R20)", raisedCode(interrupted),
				unreachable, stopped),
			failedInTurn("raises the network error of the retry (R20)", raisedNetwork, unreachable, closes),
			failedInTurn("raises the server error of the retry after a network error (R20)", raisedCode(hostNotFound),
				closes, notFound),
			failedInTurn("is retried after four different errors within timeoutMS (R36)", nil, unreachable, closes, exceeded,
				notFound).byClient("timed"),
			failedInTurn("is not retried again within timeoutMS after an error that is not retryable (R34)",
				raisedCode(interrupted), unreachable, notFound, stopped).byClient("timed"))
	}
	return f
}
