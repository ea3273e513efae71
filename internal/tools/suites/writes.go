package main

var writes = policy{Database: writeDatabase, Noun: "write", Option: "retryWrites", Label: writable,
	Network: "W10", Codes: "W10", Once: "R35", Expires: "R37", Handshake: "W10", Pool: "W10", Off: "W30"}

func writeSuites() specification {
	var files []*file
	for _, o := range writeOperations(writeDatabase) {
		files = append(files, operationFile(o, retrying, writes.clients(), append(writeStories(), oldStories()...),
			"Every error after which "+o.title()+" is retried, errors after which it is not, and retryWrites.",
			"All attempts have the same transaction number, and the data is written once."))
	}
	for _, build := range []func([]operation) *file{
		noWritesPerformed, writes.unacknowledged, writes.standalone, writes.sessions, writeTransactions, writeTimeouts,
		writeHandshakeHello, writeHandshakeAuth, writeSequences,
	} {
		files = append(files, split(writeOperations(writeDatabase), build)...)
	}
	files = append(files, split(otherWrites(writeDatabase), writes.neverRetried)...)
	files = append(files, writes.bulk(), writeSecondErrors(), writes.writeErrors(), writesNotRetryable(), endings(),
		writeOtherMongos(), otherMongosForEnds(), writePoolCleared())
	return specification{Name: "retryable-writes",
		Files: append(files, writes.unselected("utrWriteSelection").divide(operationOf)...)}
}

// split builds a file of the operations of all servers, and one of the newer operations, because these require a later
// schemaVersion.
func split(operations []operation, build func([]operation) *file) []*file {
	var old, recent []operation
	for _, o := range operations {
		if o.Since == "" {
			old = append(old, o)
		} else {
			recent = append(recent, o)
		}
	}
	f := build(recent)
	f.Name, f.Description = f.Name+"-"+recent[0].Name, f.Description+", "+recent[0].Name
	for i, r := range f.Require {
		f.Require[i] = r.since(recent[0].Since)
	}
	return []*file{build(old), f}
}

// numbered expects the first transaction number of an unused session.
var numbered = merge(doc("lsid", present), numberedOne)

// Servers with retryable writes: all, servers that support errorLabels in fail points, servers that do not add error
// labels, and servers that support TransactionalWrite.
var (
	retrying  = servers("4.2", withRetries)
	labelling = servers("4.4", withRetries)
	before44  = serversBefore44(clusters)
	onlySets  = servers("4.2", sets)
)

// Expected network errors and write concern errors, with the label and without.
var (
	raisesNetwork      = withLabels(raisedNetwork, labels{writable}, nil)
	raisesNetworkPlain = writes.raisesOff(raisedNetwork)
	raisesConcern      = withLabels(serverError, labels{writable}, nil)
	raisesConcernPlain = writes.raisesOff(serverError)
)

func raisesPlain(c code) value { return writes.raisesOff(raisedCode(c)) }

func writeNamed(title string) operation { return writes.operation(title) }

// special is the requirement of an operation that not every server supports, or the zero requirement.
func special(o operation) requirement {
	if o.Since == "" {
		return requirement{}
	}
	return retrying
}

// off is in the descriptions of stories of a client with retryWrites false.
const off = " if retryWrites is false"

func writeStories() []story {
	concern := concernWithLabels(writable)
	const labelled = "write concern error with the label " + writable
	list := []story{
		{Says: "succeeds on the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number" + off + " (R6)", Attempts: 1, By: "noRetry"},
		retried("a network error (W10)", closes),
		failedTwice("network error (R35)", closes, raisesNetwork),
		notRetried("a network error"+off+" (W30)", closes, raisesNetworkPlain).byClient("noRetry"),
		{Says: "is written once if the reply is lost (W10)", Require: onlySets,
			Points: []value{setFailPoint(transactionalWrite, times(1), nil)}, Attempts: 2},
		{Says: "is not written if both attempts fail before the commit (R35)", Require: onlySets,
			Points: []value{setFailPoint(transactionalWrite, always, beforeCommit)}, Attempts: 2, Raises: raisesNetwork},

		retried("Interrupted with the label "+writable+" (W10)", writes.fails(interrupted)).requiring(labelling),
		notRetried("Interrupted (R34)", errorCode(interrupted), raisesPlain(interrupted)),

		retried("a "+labelled+" (W10)", concern).asWriteConcernError().requiring(labelling),
		failedTwice(labelled+" (R35)", concern, raisesConcern).asWriteConcernError().requiring(labelling),
		notRetried("a "+labelled+off+" (W30)", concern,
			serverError).asWriteConcernError().requiring(labelling).byClient("noRetry"),
		notRetried("the write concern error ShutdownInProgress without a label (R34)", concernWithLabels(),
			raisesConcernPlain).
			asWriteConcernError().requiring(labelling),
		notRetried("the write concern error WriteConcernFailed (R34)",
			writeConcernError(writeConcernFailed, writeConcernFailed.Name), raisesConcernPlain).
			asWriteConcernError(),
	}
	with := func(c code) string { return c.Name + " with the label " + writable }
	for _, c := range writeCodes {
		list = append(list, retried(with(c)+" (W10)", writes.fails(c)).requiring(labelling))
	}
	// A code that leaves the server known, one that makes it unknown, and one that clears its pool.
	for _, c := range []code{hostUnreachable, primarySteppedDown, shutdownInProgress} {
		list = append(list,
			failedTwice(with(c)+" (R35)", writes.fails(c), writes.raises(c)).requiring(labelling),
			notRetried(c.Name+" without a label (R34)", errorWithLabels(c), raisesPlain(c)).requiring(labelling),
			notRetried(with(c)+off+" (W30)", writes.fails(c), raisedCode(c)).requiring(labelling).byClient("noRetry"),
			retried(c.Name+", to which a mongod adds the label (W10)", errorCode(c)).requiring(servers("4.4", sets)))
	}
	return list
}

// oldStories returns the stories of every operation on a server before 4.4. Such a server does not add labels.
func oldStories() []story {
	const old = " from a server before 4.4"
	var list []story
	for _, c := range writeCodes {
		list = append(list, retried(c.Name+old+" (W10)", errorCode(c)).requiring(before44))
	}
	for _, c := range []code{hostUnreachable, primarySteppedDown} {
		list = append(list,
			failedTwice(c.Name+old+" (R35)", errorCode(c), writes.raises(c)).requiring(before44),
			notRetried(c.Name+old+off+" (W30)", errorCode(c), raisesPlain(c)).requiring(before44).byClient("noRetry"))
	}
	onlyReads, set := readConcernMajorityNotAvailableYet, serversBefore44(sets)
	concern := writeConcernError(shutdownInProgress, shutdownInProgress.Name)
	return append(list,
		notRetried(onlyReads.Name+old+" (R34)", errorCode(onlyReads), raisesPlain(onlyReads)).requiring(before44),
		retried("the write concern error ShutdownInProgress from a mongod before 4.4 (W10)",
			concern).asWriteConcernError().requiring(set),
		failedTwice("write concern error from a mongod before 4.4 (R35)", concern,
			raisesConcern).asWriteConcernError().requiring(set),
		notRetried("the write concern error ShutdownInProgress from a mongos before 4.4 (R34)", concern,
			raisesConcernPlain).asWriteConcernError().
			requiring(serversBefore44(sharded)))
}

const writeDatabase = "utr-retryable-writes"

// Documents of outcomes.
var (
	first, second, third  = document(1, 11), document(2, 22), document(3, 33)
	raised, fourth, fifth = document(2, 23), document(4, 44), document(5, 55)
)

func document(id, x int) value { return doc("_id", id, "x", x) }

func writeOperations(database string) []operation {
	list := carrying(numbered, table("writes", database))
	for i := range list {
		list[i].Session, list[i].Txn = true, true
	}
	return list
}

func otherWrites(database string) []operation {
	return carrying(unnumbered, table("other writes", database))
}

// carrying sets the expected fields of each attempt.
func carrying(fields value, list []operation) []operation {
	for i := range list {
		list[i].Carries = fields
	}
	return list
}

// writeCodes are the codes to which a driver adds the label RetryableWriteError if the server is too old to
// do so ("RetryableWriteError Labels").
var writeCodes = []code{
	hostUnreachable, hostNotFound, networkTimeout, shutdownInProgress, primarySteppedDown,
	exceededTimeLimit, socketException, notWritablePrimary, interruptedAtShutdown,
	interruptedDueToReplStateChange, notPrimaryNoSecondaryOk, notPrimaryOrSecondary,
}
