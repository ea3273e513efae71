package main

import (
	"fmt"
	"strings"
)

var writes = Policy{Database: writeDatabase, Noun: "write", Option: "retryWrites", Label: writable,
	Network: "W10", Handshake: "W10", Pool: "W10", Off: "W30"}

// Suites are the suites of retryable writes.
func writeSuites() Specification {
	var files []*File
	for _, o := range writeOperations(writeDatabase) {
		files = append(files, Of(o, retrying, writes.Both(""), append(writeStories(), oldStories()...),
			"Each error that makes "+o.Title()+" retryable, errors that do not, and retryWrites. Every",
			"attempt has the same transaction number, and what is left behind was written once."))
	}
	for _, build := range []func([]Operation) *File{
		noWritesPerformed, unacknowledged, writeStandalone, writeSessions, writeTransactions, writeTimeouts, writeHandshakeHello, writeHandshakeAuth, writeSequences,
	} {
		files = append(files, split(writeOperations(writeDatabase), build)...)
	}
	files = append(files, split(otherWrites(writeDatabase), writesNeverRetried)...)
	return Specification{Name: "retryable-writes", Files: append(files, bulk(), writeSecondErrors(), writeErrors(), writesNotRetryable(), endings(), writeOtherMongos(), otherMongosForEnds(),
		writePoolCleared(), writeSelectionFails())}
}

// split makes one file of the operations of each schemaVersion, so that those
// of a new one do not keep old runners from the rest.
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

// numbered is what an attempt carries with the first transaction number of a
// session that nothing else used.
const numbered = `lsid: { $$exists: true }, txnNumber: { $numberLong: "1" }`

// Servers with retryable writes: all of them, those that obey error labels in
// fail points, those that give none, and those of the fail point
// TransactionalWrite.
var (
	retrying  = Servers("4.2", Retrying)
	labelling = Servers("4.4", Retrying)
	before44  = Before44(Clusters)
	onlySets  = Servers("4.2", Sets)
)

// Errors that are raised, of the network and of write concerns, with the label
// and without.
var (
	raisesNetwork      = WithLabels(RaisedNetwork, writable, "")
	raisesNetworkPlain = writes.RaisesOff(RaisedNetwork)
	raisesConcern      = WithLabels("{ isClientError: false }", writable, "")
	raisesConcernPlain = writes.RaisesOff("{ isClientError: false }")
)

func raisesPlain(c Code) string { return writes.RaisesOff(RaisedCode(c)) }

func writeNamed(title string) Operation {
	return Named(writeOperations(writeDatabase), "collection."+title)
}

// special is the requirement of an operation that not every server has.
func special(o Operation) string {
	if o.Since == "" {
		return ""
	}
	return retrying
}

// off ends what stories of a client with retryWrites false say.
const off = " with retryWrites false"

// stories are made for every operation.
func writeStories() []Story {
	interrupted, concern := Interrupted, LabelledConcern(writable)
	const labelled = "write concern error with the label " + writable
	list := []Story{
		{Says: "succeeds at the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number" + off + " (R6)", Attempts: 1, By: "noRetry"},
		Retried("a network error (W10)", Closes),
		Twice("network error (R35)", Closes, raisesNetwork),
		NotRetried("a network error"+off+" (W30)", Closes, raisesNetworkPlain).Of("noRetry"),
		{Says: "is written once if the reply is lost (W10)", Require: onlySets,
			Points: []string{SetFailPoint(TransactionalWrite, Times(1), "")}, Attempts: 2},
		{Says: "is not written if both attempts fail before the commit (R35)", Require: onlySets,
			Points: []string{SetFailPoint(TransactionalWrite, Always, BeforeCommit)}, Attempts: 2, Raises: raisesNetwork},

		Retried("Interrupted with the label "+writable+" (W10)", writes.Fails(interrupted)).On(labelling),
		NotRetried("Interrupted (R34)", ErrorCode(interrupted), raisesPlain(interrupted)),

		Retried("a "+labelled+" (W10)", concern).Concerned().On(labelling),
		Twice(labelled+" (R35)", concern, raisesConcern).Concerned().On(labelling),
		NotRetried("a "+labelled+off+" (W30)", concern, "{ isClientError: false }").Concerned().On(labelling).Of("noRetry"),
		NotRetried("write concern error ShutdownInProgress without a label (R34)", LabelledConcern(""), raisesConcernPlain).
			Concerned().On(labelling),
		NotRetried("write concern error WriteConcernFailed (R34)", WriteConcernError(WriteConcernFailed), raisesConcernPlain).
			Concerned(),
	}
	with := func(c Code) string { return c.Name + " with the label " + writable }
	for _, c := range writeCodes {
		list = append(list, Retried(with(c)+" (W10)", writes.Fails(c)).On(labelling))
	}
	// A code that leaves the server known, one that makes it unknown, and one
	// that clears its pool.
	for _, c := range []Code{HostUnreachable, PrimarySteppedDown, ShutdownInProgress} {
		list = append(list,
			Twice(with(c)+" (R35)", writes.Fails(c), writes.Raises(c)).On(labelling),
			NotRetried(c.Name+" without a label (R34)", Labelled(c), raisesPlain(c)).On(labelling),
			NotRetried(with(c)+off+" (W30)", writes.Fails(c), RaisedCode(c)).On(labelling).Of("noRetry"),
			Retried(c.Name+", which a mongod gives the label to (W10)", ErrorCode(c)).On(Servers("4.4", Sets)))
	}
	return list
}

// oldStories are made for every operation of a server before 4.4, which gives no
// labels.
func oldStories() []Story {
	const old = " of a server before 4.4"
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
		Retried("write concern error ShutdownInProgress of a mongod before 4.4 (W10)", concern).Concerned().On(set),
		Twice("write concern error of a mongod before 4.4 (R35)", concern, raisesConcern).Concerned().On(set),
		NotRetried("write concern error ShutdownInProgress of a mongos before 4.4 (R34)", concern, raisesConcernPlain).Concerned().
			On(Before44(Sharded)))
}

const writeDatabase = "utr-retryable-writes"

// Documents that writes leave behind.
const (
	first, second, third = "{ _id: 1, x: 11 }", "{ _id: 2, x: 22 }", "{ _id: 3, x: 33 }"
	raised, replaced     = "{ _id: 2, x: 23 }", "{ _id: 2, x: 222 }"
	fourth, fifth        = "{ _id: 4, x: 44 }", "{ _id: 5, x: 55 }"
)

// update is a statement of an update command. Drivers may leave out what is
// false.
func update(filter, change string) string {
	return "{ q: " + filter + ", u: " + change + ", multi: { $$unsetOrMatches: false }, upsert: { $$unsetOrMatches: false } }"
}

func inserts(documents ...string) string { return writing("insert", "documents", documents) }
func updates(updates ...string) string   { return writing("update", "updates", updates) }
func deletes(deletes ...string) string   { return writing("delete", "deletes", deletes) }

func writing(command, key string, statements []string) string {
	return "{ " + command + ": " + Collection + ", " + key + ": [ " + strings.Join(statements, ", ") + " ] }"
}

// Operations are the retryable writes on a database ("Supported Write
// Operations") that one command carries. A write that was applied twice would
// show: updates count, and deletes have a filter that more than one document
// matches.
func writeOperations(databaseName string) []Operation {
	const updatedOne = "{ matchedCount: 1, modifiedCount: 1, upsertedCount: 0 }"
	const insertedTwo = `{ $$unsetOrMatches: { insertedIds: { $$unsetOrMatches: { "0": 4, "1": 5 } } } }`
	const two, sorted = "documents: [ " + fourth + ", " + fifth + " ]", "filter: { _id: { $gt: 1 } }, sort: { _id: 1 }"
	const changed = "{ findAndModify: documents, query: { _id: { $gt: 1 } }, sort: { _id: 1 }, "
	list := []Operation{
		{Name: "insertOne", Command: "insert", Arguments: "{ document: " + fourth + " }", Started: inserts(fourth),
			Result: "{ $$unsetOrMatches: { insertedId: { $$unsetOrMatches: 4 } } }", Wrote: []string{first, second, third, fourth}},
		{Name: "insertMany", Variant: "ordered", Command: "insert", Arguments: "{ " + two + ", ordered: true }",
			Started: Merge(inserts(fourth, fifth), "ordered: true"), Result: insertedTwo, Wrote: []string{first, second, third, fourth, fifth}},
		{Name: "insertMany", Variant: "unordered", Command: "insert", Arguments: "{ " + two + ", ordered: false }",
			Started: Merge(inserts(fourth, fifth), "ordered: false"), Result: insertedTwo, Wrote: []string{first, second, third, fourth, fifth}},
		{Name: "updateOne", Command: "update", Arguments: "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }",
			Started: updates(update("{ _id: 2 }", "{ $inc: { x: 1 } }")), Result: updatedOne, Wrote: []string{first, raised, third}},
		{Name: "updateOne", Variant: "with upsert", Command: "update", Arguments: "{ filter: { _id: 4 }, update: { $inc: { x: 44 } }, upsert: true }",
			Started: updates("{ q: { _id: 4 }, u: { $inc: { x: 44 } }, multi: { $$unsetOrMatches: false }, upsert: true }"),
			Result:  "{ matchedCount: 0, modifiedCount: 0, upsertedCount: 1, upsertedId: 4 }", Wrote: []string{first, second, third, fourth}},
		{Name: "replaceOne", Command: "update", Arguments: "{ filter: { _id: 2 }, replacement: { x: 222 } }",
			Started: updates(update("{ _id: 2 }", "{ x: 222 }")), Result: updatedOne, Wrote: []string{first, replaced, third}},
		{Name: "deleteOne", Command: "delete", Arguments: "{ filter: { _id: { $gt: 1 } } }",
			Started: deletes("{ q: { _id: { $gt: 1 } }, limit: 1 }"), Result: "{ deletedCount: 1 }", Wrote: []string{first, third}},

		{Name: "findOneAndUpdate", Command: "findAndModify", Arguments: "{ " + sorted + ", update: { $inc: { x: 1 } }, returnDocument: Before }",
			Started: changed + "update: { $inc: { x: 1 } } }", Result: second, Wrote: []string{first, raised, third}},
		{Name: "findOneAndReplace", Command: "findAndModify", Arguments: "{ " + sorted + ", replacement: { x: 222 }, returnDocument: After }",
			Started: changed + "update: { x: 222 }, new: true }", Result: replaced, Wrote: []string{first, replaced, third}},
		{Name: "findOneAndDelete", Command: "findAndModify", Arguments: "{ " + sorted + " }",
			Started: changed + "remove: true }", Result: second, Wrote: []string{first, third}},

		{Name: "bulkWrite", Variant: "ordered", Command: "update", Arguments: "{ requests: [ " +
			"{ updateOne: { filter: { _id: 2 }, update: { $inc: { x: 1 } } } }, { replaceOne: { filter: { _id: 3 }, replacement: { x: 333 } } } ], ordered: true }",
			Started: Merge(updates(update("{ _id: 2 }", "{ $inc: { x: 1 } }"), update("{ _id: 3 }", "{ x: 333 }")), "ordered: true"),
			Result:  "{ matchedCount: 2, modifiedCount: 2, upsertedCount: 0, deletedCount: 0 }", Wrote: []string{first, raised, "{ _id: 3, x: 333 }"}},
		{Name: "bulkWrite", Variant: "unordered", Command: "delete",
			Arguments: "{ requests: [ { deleteOne: { filter: { _id: 2 } } }, { deleteOne: { filter: { _id: 3 } } } ], ordered: false }",
			Started:   Merge(deletes("{ q: { _id: 2 }, limit: 1 }", "{ q: { _id: 3 }, limit: 1 }"), "ordered: false"),
			Result:    "{ deletedCount: 2, insertedCount: 0, matchedCount: 0, modifiedCount: 0, upsertedCount: 0 }", Wrote: []string{first}},
	}
	namespace := databaseName + "." + Collection
	for _, order := range []string{"ordered", "unordered"} {
		ordered := order == "ordered"
		list = append(list, Operation{
			Object: "client", Name: "clientBulkWrite", Variant: order, Command: "bulkWrite", Since: "8.0",
			Arguments: fmt.Sprintf("{ models: [ { insertOne: { namespace: %[1]s, document: %[2]s } }, "+
				"{ updateOne: { namespace: %[1]s, filter: { _id: 2 }, update: { $inc: { x: 1 } } } }, "+
				"{ replaceOne: { namespace: %[1]s, filter: { _id: 1 }, replacement: { x: 111 } } }, "+
				"{ deleteOne: { namespace: %[1]s, filter: { _id: { $gt: 2, $lt: 6 } } } } ], ordered: %[3]t }", namespace, fifth, ordered),
			Started: fmt.Sprintf("{ bulkWrite: 1, ordered: %t, ops: { $$type: array }, nsInfo: [ { ns: %s } ] }", ordered, namespace),
			Result:  "{ insertedCount: 1, matchedCount: 2, modifiedCount: 2, upsertedCount: 0, deletedCount: 1 }",
			Wrote:   []string{"{ _id: 1, x: 111 }", raised, fifth},
		})
	}
	for i := range list {
		list[i].Session, list[i].Txn, list[i].Carries = true, true, numbered
	}
	return Complete(databaseName, list)
}

// Others are operations of which a statement may write several documents, or
// that are no retryable writes for another reason ("Unsupported Write
// Operations").
func otherWrites(databaseName string) []Operation {
	const changes = "{ q: { _id: { $gt: 1 } }, u: { $inc: { x: 1 } }, multi: true, upsert: { $$unsetOrMatches: false } }"
	const changeMany, many = "{ filter: { _id: { $gt: 1 } }, update: { $inc: { x: 1 } } }", "{ filter: { _id: { $gt: 1 } } }"
	const removes, upserted = "{ q: { _id: { $gt: 1 } }, limit: 0 }", "update: { $set: { x: 44 } }, upsert: true"
	namespace := "namespace: " + databaseName + "." + Collection
	list := []Operation{
		{Name: "updateMany", Command: "update", Arguments: changeMany, Started: updates(changes), Wrote: []string{first, raised, "{ _id: 3, x: 34 }"}},
		{Name: "deleteMany", Command: "delete", Arguments: many, Started: deletes(removes), Wrote: []string{first}},
		{Name: "bulkWrite", Variant: "ordered with updateMany", Command: "update",
			Arguments: "{ requests: [ { updateMany: " + changeMany + " } ], ordered: true }",
			Started:   updates(changes), Wrote: []string{first, raised, "{ _id: 3, x: 34 }"}},
		{Name: "bulkWrite", Variant: "unordered with deleteMany", Command: "delete",
			Arguments: "{ requests: [ { deleteMany: " + many + " } ], ordered: false }",
			Started:   deletes(removes), Wrote: []string{first}},
		{Name: "aggregate", Variant: "with $out", Arguments: "{ pipeline: [ { $match: { _id: 1 } }, { $out: " + written + " } ] }"},
		{Name: "aggregate", Variant: "with $merge", Arguments: "{ pipeline: [ { $match: { _id: 1 } }, { $merge: { into: " + written + " } } ] }"},
		{Name: "createIndex", Command: "createIndexes", Arguments: "{ keys: { x: 1 }, name: x_1 }",
			Started: "{ createIndexes: documents, indexes: [ { name: x_1, key: { x: 1 } } ] }"},
		{Name: "dropIndexes", Started: `{ dropIndexes: documents, index: "*" }`},
		RunCommand("insert", inserts(fourth)),
		RunCommand("update", updates("{ q: { _id: 4 }, u: { $set: { x: 44 } }, upsert: true }")),
		RunCommand("findAndModify", "{ findAndModify: documents, query: { _id: 4 }, "+upserted+" }"),
		{Object: "database", Name: "createCollection", Command: "create", Arguments: "{ collection: fresh }", Started: "{ create: fresh }",
			Before: []string{"{ name: dropCollection, object: database-setup, arguments: { collection: fresh } }"}},
		{Object: "database", Name: "dropCollection", Command: "drop", Arguments: "{ collection: " + written + " }",
			Started: "{ drop: " + written + " }"},
		{Object: "client", Name: "clientBulkWrite", Variant: "with updateMany", Command: "bulkWrite", Since: "8.0",
			Arguments: "{ models: [ { insertOne: { " + namespace + ", document: " + fourth + " } }, " +
				"{ updateMany: { " + namespace + ", filter: { _id: 2 }, update: { $inc: { x: 1 } } } } ] }",
			Started: "{ bulkWrite: 1, ops: { $$type: array } }", Wrote: []string{first, raised, third, fourth}},
		{Object: "client", Name: "clientBulkWrite", Variant: "with deleteMany", Command: "bulkWrite", Since: "8.0",
			Arguments: "{ models: [ { deleteMany: { " + namespace + ", filter: { _id: { $gt: 1 } } } } ], ordered: false }",
			Started:   "{ bulkWrite: 1, ops: { $$type: array } }", Wrote: []string{first}},
	}
	for i, o := range list {
		list[i].Carries = Unnumbered
		if o.Name == "runCommand" {
			list[i].Wrote = []string{first, second, third, fourth}
		}
	}
	return Complete(databaseName, list)
}

// retryable are the codes that a driver gives the label RetryableWriteError
// to, if the server is too old to do so ("RetryableWriteError Labels").
var writeCodes = []Code{
	HostUnreachable, HostNotFound, NetworkTimeout, ShutdownInProgress, PrimarySteppedDown,
	ExceededTimeLimit, SocketException, NotWritablePrimary, InterruptedAtShutdown,
	InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary,
}
