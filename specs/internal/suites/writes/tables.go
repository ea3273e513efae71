package writes

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

const databaseName = "utr-retryable-writes"

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
	return "{ " + command + ": " + suites.Collection + ", " + key + ": [ " + strings.Join(statements, ", ") + " ] }"
}

// Operations are the retryable writes on a database ("Supported Write
// Operations") that one command carries. A write that was applied twice would
// show: updates count, and deletes have a filter that more than one document
// matches.
func Operations(databaseName string) []operation {
	const updatedOne = "{ matchedCount: 1, modifiedCount: 1, upsertedCount: 0 }"
	const insertedTwo = `{ $$unsetOrMatches: { insertedIds: { $$unsetOrMatches: { "0": 4, "1": 5 } } } }`
	const two, sorted = "documents: [ " + fourth + ", " + fifth + " ]", "filter: { _id: { $gt: 1 } }, sort: { _id: 1 }"
	const changed = "{ findAndModify: documents, query: { _id: { $gt: 1 } }, sort: { _id: 1 }, "
	list := []operation{
		{Name: "insertOne", Command: "insert", Arguments: "{ document: " + fourth + " }", Started: inserts(fourth),
			Result: "{ $$unsetOrMatches: { insertedId: { $$unsetOrMatches: 4 } } }", Wrote: []string{first, second, third, fourth}},
		{Name: "insertMany", Variant: "ordered", Command: "insert", Arguments: "{ " + two + ", ordered: true }",
			Started: suites.Merge(inserts(fourth, fifth), "ordered: true"), Result: insertedTwo, Wrote: []string{first, second, third, fourth, fifth}},
		{Name: "insertMany", Variant: "unordered", Command: "insert", Arguments: "{ " + two + ", ordered: false }",
			Started: suites.Merge(inserts(fourth, fifth), "ordered: false"), Result: insertedTwo, Wrote: []string{first, second, third, fourth, fifth}},
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
			Started: suites.Merge(updates(update("{ _id: 2 }", "{ $inc: { x: 1 } }"), update("{ _id: 3 }", "{ x: 333 }")), "ordered: true"),
			Result:  "{ matchedCount: 2, modifiedCount: 2, upsertedCount: 0, deletedCount: 0 }", Wrote: []string{first, raised, "{ _id: 3, x: 333 }"}},
		{Name: "bulkWrite", Variant: "unordered", Command: "delete",
			Arguments: "{ requests: [ { deleteOne: { filter: { _id: 2 } } }, { deleteOne: { filter: { _id: 3 } } } ], ordered: false }",
			Started:   suites.Merge(deletes("{ q: { _id: 2 }, limit: 1 }", "{ q: { _id: 3 }, limit: 1 }"), "ordered: false"),
			Result:    "{ deletedCount: 2, insertedCount: 0, matchedCount: 0, modifiedCount: 0, upsertedCount: 0 }", Wrote: []string{first}},
	}
	namespace := databaseName + "." + suites.Collection
	for _, order := range []string{"ordered", "unordered"} {
		ordered := order == "ordered"
		list = append(list, operation{
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
	return suites.Complete(databaseName, list)
}

// Others are operations of which a statement may write several documents, or
// that are no retryable writes for another reason ("Unsupported Write
// Operations").
func Others(databaseName string) []operation {
	const changes = "{ q: { _id: { $gt: 1 } }, u: { $inc: { x: 1 } }, multi: true, upsert: { $$unsetOrMatches: false } }"
	const changeMany, many = "{ filter: { _id: { $gt: 1 } }, update: { $inc: { x: 1 } } }", "{ filter: { _id: { $gt: 1 } } }"
	const removes, upserted = "{ q: { _id: { $gt: 1 } }, limit: 0 }", "update: { $set: { x: 44 } }, upsert: true"
	namespace := "namespace: " + databaseName + "." + suites.Collection
	list := []operation{
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
		suites.RunCommand("insert", inserts(fourth)),
		suites.RunCommand("update", updates("{ q: { _id: 4 }, u: { $set: { x: 44 } }, upsert: true }")),
		suites.RunCommand("findAndModify", "{ findAndModify: documents, query: { _id: 4 }, "+upserted+" }"),
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
		list[i].Carries = suites.Unnumbered
		if o.Name == "runCommand" {
			list[i].Wrote = []string{first, second, third, fourth}
		}
	}
	return suites.Complete(databaseName, list)
}

// written is the collection that aggregations write to.
const written = "written"

// retryable are the codes that a driver gives the label RetryableWriteError
// to, if the server is too old to do so ("RetryableWriteError Labels").
var retryable = []suites.Code{
	suites.HostUnreachable, suites.HostNotFound, suites.NetworkTimeout, suites.ShutdownInProgress, suites.PrimarySteppedDown,
	suites.ExceededTimeLimit, suites.SocketException, suites.NotWritablePrimary, suites.InterruptedAtShutdown,
	suites.InterruptedDueToReplStateChange, suites.NotPrimaryNoSecondaryOk, suites.NotPrimaryOrSecondary,
}
