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
func update(filter, change string, upsert bool) string {
	u := "upsert: { $$unsetOrMatches: false }"
	if upsert {
		u = "upsert: true"
	}
	return fmt.Sprintf("{ q: %s, u: %s, multi: { $$unsetOrMatches: false }, %s }", filter, change, u)
}

func inserts(documents ...string) string {
	return "{ insert: " + suites.Collection + ", documents: [ " + strings.Join(documents, ", ") + " ] }"
}

func updates(statements ...string) string {
	return "{ update: " + suites.Collection + ", updates: [ " + strings.Join(statements, ", ") + " ] }"
}

func deletes(statements ...string) string {
	return "{ delete: " + suites.Collection + ", deletes: [ " + strings.Join(statements, ", ") + " ] }"
}

// Operations are the retryable writes on a database ("Supported Write
// Operations") that one command carries. A write that was applied twice would
// show: updates count, and deletes have a filter that more than one document
// matches.
func Operations(databaseName string) []suites.Operation {
	const updatedOne = "{ matchedCount: 1, modifiedCount: 1, upsertedCount: 0 }"
	const insertedTwo = `{ $$unsetOrMatches: { insertedIds: { $$unsetOrMatches: { "0": 4, "1": 5 } } } }`
	list := []suites.Operation{
		{Name: "insertOne", Command: "insert", Arguments: "{ document: " + fourth + " }", Started: inserts(fourth),
			Result: "{ $$unsetOrMatches: { insertedId: { $$unsetOrMatches: 4 } } }",
			Wrote:  []string{first, second, third, fourth}},
		{Name: "insertMany", Variant: "ordered", Command: "insert", Arguments: "{ documents: [ " + fourth + ", " + fifth + " ], ordered: true }",
			Started: suites.Merge(inserts(fourth, fifth), "ordered: true"), Result: insertedTwo,
			Wrote: []string{first, second, third, fourth, fifth}},
		{Name: "insertMany", Variant: "unordered", Command: "insert", Arguments: "{ documents: [ " + fourth + ", " + fifth + " ], ordered: false }",
			Started: suites.Merge(inserts(fourth, fifth), "ordered: false"), Result: insertedTwo,
			Wrote: []string{first, second, third, fourth, fifth}},
		{Name: "updateOne", Command: "update", Arguments: "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }",
			Started: updates(update("{ _id: 2 }", "{ $inc: { x: 1 } }", false)), Result: updatedOne,
			Wrote: []string{first, raised, third}},
		{Name: "updateOne", Variant: "with upsert", Command: "update", Arguments: "{ filter: { _id: 4 }, update: { $inc: { x: 44 } }, upsert: true }",
			Started: updates(update("{ _id: 4 }", "{ $inc: { x: 44 } }", true)),
			Result:  "{ matchedCount: 0, modifiedCount: 0, upsertedCount: 1, upsertedId: 4 }",
			Wrote:   []string{first, second, third, fourth}},
		{Name: "replaceOne", Command: "update", Arguments: "{ filter: { _id: 2 }, replacement: { x: 222 } }",
			Started: updates(update("{ _id: 2 }", "{ x: 222 }", false)), Result: updatedOne,
			Wrote: []string{first, replaced, third}},
		{Name: "deleteOne", Command: "delete", Arguments: "{ filter: { _id: { $gt: 1 } } }",
			Started: deletes("{ q: { _id: { $gt: 1 } }, limit: 1 }"), Result: "{ deletedCount: 1 }",
			Wrote: []string{first, third}},

		{Name: "findOneAndUpdate", Command: "findAndModify",
			Arguments: "{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 }, update: { $inc: { x: 1 } }, returnDocument: Before }",
			Started:   "{ findAndModify: " + suites.Collection + ", query: { _id: { $gt: 1 } }, sort: { _id: 1 }, update: { $inc: { x: 1 } } }",
			Result:    second, Wrote: []string{first, raised, third}},
		{Name: "findOneAndReplace", Command: "findAndModify",
			Arguments: "{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 }, replacement: { x: 222 }, returnDocument: After }",
			Started:   "{ findAndModify: " + suites.Collection + ", query: { _id: { $gt: 1 } }, sort: { _id: 1 }, update: { x: 222 }, new: true }",
			Result:    replaced, Wrote: []string{first, replaced, third}},
		{Name: "findOneAndDelete", Command: "findAndModify",
			Arguments: "{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }",
			Started:   "{ findAndModify: " + suites.Collection + ", query: { _id: { $gt: 1 } }, sort: { _id: 1 }, remove: true }",
			Result:    second, Wrote: []string{first, third}},

		{Name: "bulkWrite", Variant: "ordered", Command: "update", Arguments: "{ requests: [ " +
			"{ updateOne: { filter: { _id: 2 }, update: { $inc: { x: 1 } } } }, { replaceOne: { filter: { _id: 3 }, replacement: { x: 333 } } } ], ordered: true }",
			Started: suites.Merge(updates(update("{ _id: 2 }", "{ $inc: { x: 1 } }", false), update("{ _id: 3 }", "{ x: 333 }", false)), "ordered: true"),
			Result:  "{ matchedCount: 2, modifiedCount: 2, upsertedCount: 0, deletedCount: 0 }",
			Wrote:   []string{first, raised, "{ _id: 3, x: 333 }"}},
		{Name: "bulkWrite", Variant: "unordered", Command: "delete", Arguments: "{ requests: [ " +
			"{ deleteOne: { filter: { _id: 2 } } }, { deleteOne: { filter: { _id: 3 } } } ], ordered: false }",
			Started: suites.Merge(deletes("{ q: { _id: 2 }, limit: 1 }", "{ q: { _id: 3 }, limit: 1 }"), "ordered: false"),
			Result:  "{ deletedCount: 2, insertedCount: 0, matchedCount: 0, modifiedCount: 0, upsertedCount: 0 }",
			Wrote:   []string{first}},
	}
	for i := range list {
		list[i].Object, list[i].Database = "collection", databaseName
	}
	namespace := `namespace: ` + databaseName + `.` + suites.Collection
	for _, ordered := range []bool{true, false} {
		variant := map[bool]string{true: "ordered", false: "unordered"}[ordered]
		list = append(list, suites.Operation{
			Object: "client", Name: "clientBulkWrite", Variant: variant, Command: "bulkWrite", Database: "admin", Since: "8.0", Least: "1.21",
			Arguments: fmt.Sprintf("{ models: [ { insertOne: { %[1]s, document: %[2]s } }, { updateOne: { %[1]s, filter: { _id: 2 }, update: { $inc: { x: 1 } } } }, "+
				"{ replaceOne: { %[1]s, filter: { _id: 1 }, replacement: { x: 111 } } }, { deleteOne: { %[1]s, filter: { _id: { $gt: 2, $lt: 6 } } } } ], ordered: %[3]t }", namespace, fifth, ordered),
			Started: fmt.Sprintf("{ bulkWrite: 1, ordered: %t, ops: { $$type: array }, nsInfo: [ { ns: %s.%s } ] }", ordered, databaseName, suites.Collection),
			Result:  "{ insertedCount: 1, matchedCount: 2, modifiedCount: 2, upsertedCount: 0, deletedCount: 1 }",
			Wrote:   []string{"{ _id: 1, x: 111 }", raised, fifth},
		})
	}
	for i := range list {
		list[i].Session, list[i].Txn, list[i].Carries = true, true, numbered
	}
	return list
}

// Others are operations of which a statement may write several documents, or
// that are no retryable writes for another reason ("Unsupported Write
// Operations").
func Others(databaseName string) []suites.Operation {
	namespace := `namespace: ` + databaseName + `.` + suites.Collection
	const changes = "{ q: { _id: { $gt: 1 } }, u: { $inc: { x: 1 } }, multi: true, upsert: { $$unsetOrMatches: false } }"
	const model = "{ updateMany: { filter: { _id: { $gt: 1 } }, update: { $inc: { x: 1 } } } }"
	list := []suites.Operation{
		{Name: "updateMany", Command: "update", Arguments: "{ filter: { _id: { $gt: 1 } }, update: { $inc: { x: 1 } } }",
			Started: updates(changes), Wrote: []string{first, raised, "{ _id: 3, x: 34 }"}},
		{Name: "deleteMany", Command: "delete", Arguments: "{ filter: { _id: { $gt: 1 } } }",
			Started: deletes("{ q: { _id: { $gt: 1 } }, limit: 0 }"), Wrote: []string{first}},
		{Name: "bulkWrite", Variant: "ordered with updateMany", Command: "update", Arguments: "{ requests: [ " + model + " ], ordered: true }",
			Started: updates(changes), Wrote: []string{first, raised, "{ _id: 3, x: 34 }"}},
		{Name: "bulkWrite", Variant: "unordered with deleteMany", Command: "delete",
			Arguments: "{ requests: [ { deleteMany: { filter: { _id: { $gt: 1 } } } } ], ordered: false }",
			Started:   deletes("{ q: { _id: { $gt: 1 } }, limit: 0 }"), Wrote: []string{first}},
		{Name: "aggregate", Variant: "with $out", Command: "aggregate", Arguments: "{ pipeline: [ { $match: { _id: 1 } }, { $out: " + written + " } ] }",
			Started: "{ aggregate: " + suites.Collection + ", pipeline: [ { $match: { _id: 1 } }, { $out: " + written + " } ] }"},
		{Name: "aggregate", Variant: "with $merge", Command: "aggregate", Arguments: "{ pipeline: [ { $match: { _id: 1 } }, { $merge: { into: " + written + " } } ] }",
			Started: "{ aggregate: " + suites.Collection + ", pipeline: [ { $match: { _id: 1 } }, { $merge: { into: " + written + " } } ] }"},
		{Name: "createIndex", Command: "createIndexes", Arguments: "{ keys: { x: 1 }, name: x_1 }",
			Started: "{ createIndexes: " + suites.Collection + ", indexes: [ { name: x_1, key: { x: 1 } } ] }"},
		{Name: "dropIndexes", Command: "dropIndexes", Arguments: "{}", Started: "{ dropIndexes: " + suites.Collection + `, index: "*" }`},
	}
	for i := range list {
		list[i].Object = "collection"
	}
	run := func(name, command string) suites.Operation {
		return suites.Operation{Object: "database", Name: "runCommand", Variant: "with " + name, Command: name,
			Arguments: "{ commandName: " + name + ", command: " + command + " }", Started: command, Wrote: []string{first, second, third, fourth}}
	}
	list = append(list, run("insert", inserts(fourth)),
		run("update", updates("{ q: { _id: 4 }, u: { $set: { x: 44 } }, upsert: true }")),
		run("findAndModify", "{ findAndModify: "+suites.Collection+", query: { _id: 4 }, update: { $set: { x: 44 } }, upsert: true }"),
		suites.Operation{Object: "database", Name: "createCollection", Command: "create", Arguments: "{ collection: fresh }", Started: "{ create: fresh }",
			Before: []string{"{ name: dropCollection, object: database-setup, arguments: { collection: fresh } }"}},
		suites.Operation{Object: "database", Name: "dropCollection", Command: "drop", Arguments: "{ collection: " + written + " }", Started: "{ drop: " + written + " }"},
	)
	for i := range list {
		list[i].Database = databaseName
	}
	list = append(list,
		suites.Operation{
			Object: "client", Name: "clientBulkWrite", Variant: "with updateMany", Command: "bulkWrite", Database: "admin", Since: "8.0", Least: "1.21",
			Arguments: "{ models: [ { insertOne: { " + namespace + ", document: " + fourth + " } }, { updateMany: { " + namespace + ", filter: { _id: 2 }, update: { $inc: { x: 1 } } } } ] }",
			Started:   "{ bulkWrite: 1, ops: { $$type: array } }", Wrote: []string{first, raised, third, fourth}},
		suites.Operation{
			Object: "client", Name: "clientBulkWrite", Variant: "with deleteMany", Command: "bulkWrite", Database: "admin", Since: "8.0", Least: "1.21",
			Arguments: "{ models: [ { deleteMany: { " + namespace + ", filter: { _id: { $gt: 1 } } } } ], ordered: false }",
			Started:   "{ bulkWrite: 1, ops: { $$type: array } }", Wrote: []string{first}},
	)
	for i := range list {
		list[i].Carries = suites.Unnumbered
	}
	return list
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
