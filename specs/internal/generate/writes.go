package main

var writes = Policy{Database: writeDatabase, Noun: "write", Option: "retryWrites", Label: writable,
	Network: "W10", Codes: "W10", Once: "R35", Expires: "R37", Handshake: "W10", Pool: "W10", Off: "W30"}

func writeSuites() Specification {
	var files []*File
	for _, o := range writeOperations(writeDatabase) {
		files = append(files, Of(o, retrying, writes.Both(""), append(writeStories(), oldStories()...),
			"Every error after which "+o.Title()+" is retried, errors after which it is not, and retryWrites.",
			"All attempts have the same transaction number, and the data is written once."))
	}
	for _, build := range []func([]Operation) *File{
		noWritesPerformed, writes.unacknowledged, writes.standalone, writes.sessions, writeTransactions, writeTimeouts, writeHandshakeHello, writeHandshakeAuth, writeSequences,
	} {
		files = append(files, split(writeOperations(writeDatabase), build)...)
	}
	files = append(files, split(otherWrites(writeDatabase), writes.neverRetried)...)
	return Specification{Name: "retryable-writes", Files: append(files, writes.bulk(), writeSecondErrors(), writes.writeErrors(), writesNotRetryable(), endings(), writeOtherMongos(), otherMongosForEnds(),
		writePoolCleared(), writes.unselected("utrWriteSelection"))}
}

// split builds a file of the operations of all servers, and one of the newer operations, which require a
// later schemaVersion.
func split(operations []Operation, build func([]Operation) *File) []*File {
	var old, recent []Operation
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
		f.Require[i] = AtLeast(recent[0].Since, r)
	}
	return []*File{build(old), f}
}

// numbered expects the first transaction number of an unused session.
const numbered = `lsid: { $$exists: true }, txnNumber: { $numberLong: "1" }`

// Servers with retryable writes: all, those that support errorLabels in fail points, those that add no error
// labels, and those that support TransactionalWrite.
var (
	retrying  = Servers("4.2", Retrying)
	labelling = Servers("4.4", Retrying)
	before44  = Before44(Clusters)
	onlySets  = Servers("4.2", Sets)
)

// Expected network errors and write concern errors, with the label and without.
var (
	raisesNetwork      = WithLabels(RaisedNetwork, writable, "")
	raisesNetworkPlain = writes.RaisesOff(RaisedNetwork)
	raisesConcern      = WithLabels("{ isClientError: false }", writable, "")
	raisesConcernPlain = writes.RaisesOff("{ isClientError: false }")
)

func raisesPlain(c Code) string { return writes.RaisesOff(RaisedCode(c)) }

func writeNamed(title string) Operation { return writes.operation(title) }

// special is the requirement of an operation that not every server supports, or "".
func special(o Operation) string {
	if o.Since == "" {
		return ""
	}
	return retrying
}

// off is in the descriptions of stories of a client with retryWrites false.
const off = " if retryWrites is false"

func writeStories() []Story {
	concern := LabelledConcern(writable)
	const labelled = "write concern error with the label " + writable
	list := []Story{
		{Says: "succeeds on the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number" + off + " (R6)", Attempts: 1, By: "noRetry"},
		Retried("a network error (W10)", Closes),
		Twice("network error (R35)", Closes, raisesNetwork),
		NotRetried("a network error"+off+" (W30)", Closes, raisesNetworkPlain).Of("noRetry"),
		{Says: "is written once if the reply is lost (W10)", Require: onlySets,
			Points: []string{SetFailPoint(TransactionalWrite, Times(1), "")}, Attempts: 2},
		{Says: "is not written if both attempts fail before the commit (R35)", Require: onlySets,
			Points: []string{SetFailPoint(TransactionalWrite, Always, BeforeCommit)}, Attempts: 2, Raises: raisesNetwork},

		Retried("Interrupted with the label "+writable+" (W10)", writes.Fails(Interrupted)).On(labelling),
		NotRetried("Interrupted (R34)", ErrorCode(Interrupted), raisesPlain(Interrupted)),

		Retried("a "+labelled+" (W10)", concern).Concerned().On(labelling),
		Twice(labelled+" (R35)", concern, raisesConcern).Concerned().On(labelling),
		NotRetried("a "+labelled+off+" (W30)", concern, "{ isClientError: false }").Concerned().On(labelling).Of("noRetry"),
		NotRetried("the write concern error ShutdownInProgress without a label (R34)", LabelledConcern(""), raisesConcernPlain).
			Concerned().On(labelling),
		NotRetried("the write concern error WriteConcernFailed (R34)", WriteConcernError(WriteConcernFailed), raisesConcernPlain).
			Concerned(),
	}
	with := func(c Code) string { return c.Name + " with the label " + writable }
	for _, c := range writeCodes {
		list = append(list, Retried(with(c)+" (W10)", writes.Fails(c)).On(labelling))
	}
	// A code that leaves the server known, one that makes it unknown, and one that clears its pool.
	for _, c := range []Code{HostUnreachable, PrimarySteppedDown, ShutdownInProgress} {
		list = append(list,
			Twice(with(c)+" (R35)", writes.Fails(c), writes.Raises(c)).On(labelling),
			NotRetried(c.Name+" without a label (R34)", Labelled(c), raisesPlain(c)).On(labelling),
			NotRetried(with(c)+off+" (W30)", writes.Fails(c), RaisedCode(c)).On(labelling).Of("noRetry"),
			Retried(c.Name+", to which a mongod adds the label (W10)", ErrorCode(c)).On(Servers("4.4", Sets)))
	}
	return list
}

// oldStories returns the stories of every operation on a server before 4.4, which adds no labels.
func oldStories() []Story {
	const old = " from a server before 4.4"
	var list []Story
	for _, c := range writeCodes {
		list = append(list, Retried(c.Name+old+" (W10)", ErrorCode(c)).On(before44))
	}
	for _, c := range []Code{HostUnreachable, PrimarySteppedDown} {
		list = append(list,
			Twice(c.Name+old+" (R35)", ErrorCode(c), writes.Raises(c)).On(before44),
			NotRetried(c.Name+old+off+" (W30)", ErrorCode(c), raisesPlain(c)).On(before44).Of("noRetry"))
	}
	onlyReads, set := ReadConcernMajorityNotAvailableYet, Before44(Sets)
	concern := WriteConcernError(ShutdownInProgress)
	return append(list,
		NotRetried(onlyReads.Name+old+" (R34)", ErrorCode(onlyReads), raisesPlain(onlyReads)).On(before44),
		Retried("the write concern error ShutdownInProgress from a mongod before 4.4 (W10)", concern).Concerned().On(set),
		Twice("write concern error from a mongod before 4.4 (R35)", concern, raisesConcern).Concerned().On(set),
		NotRetried("the write concern error ShutdownInProgress from a mongos before 4.4 (R34)", concern, raisesConcernPlain).Concerned().
			On(Before44(Sharded)))
}

const writeDatabase = "utr-retryable-writes"

// Documents of outcomes.
const (
	first, second, third = "{ _id: 1, x: 11 }", "{ _id: 2, x: 22 }", "{ _id: 3, x: 33 }"
	raised, replaced     = "{ _id: 2, x: 23 }", "{ _id: 2, x: 222 }"
	fourth, fifth        = "{ _id: 4, x: 44 }", "{ _id: 5, x: 55 }"
)

func writeOperations(database string) []Operation {
	list := carrying(numbered, table("writes", database))
	for i := range list {
		list[i].Session, list[i].Txn = true, true
	}
	return list
}

func otherWrites(database string) []Operation {
	return carrying(Unnumbered, table("other writes", database))
}

// carrying sets the expected fields of each attempt.
func carrying(fields string, list []Operation) []Operation {
	for i := range list {
		list[i].Carries = fields
	}
	return list
}

// writeCodes are the codes to which a driver adds the label RetryableWriteError if the server is too old to
// do so ("RetryableWriteError Labels").
var writeCodes = []Code{
	HostUnreachable, HostNotFound, NetworkTimeout, ShutdownInProgress, PrimarySteppedDown,
	ExceededTimeLimit, SocketException, NotWritablePrimary, InterruptedAtShutdown,
	InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary,
}
