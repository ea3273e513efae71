package compare

// operation is a row of the table: how an operation is written in a suite, and
// which of its commands are to fail.
type operation struct {
	write      bool
	minServer  string   // version that it came with, if later than sequences of failures
	replicated bool     // not for standalones
	before     []string // operations that no fault strikes
	operations []string // flow YAML, the closing brace last
	commands   string   // flow YAML of failCommands
	// blind: nothing tells when the server is through with it, so that what it
	// left behind is not looked at.
	blind bool
}

func read(name, object, arguments, command string) operation {
	return operation{operations: []string{call(name, object, arguments)}, commands: command}
}

func write(name, object, arguments, command string) operation {
	o := read(name, object, arguments, command)
	o.write = true
	return o
}

func call(name, object, arguments string) string {
	if arguments == "" {
		return "{ name: " + name + ", object: " + object + " }"
	}
	return "{ name: " + name + ", object: " + object + ", arguments: { " + arguments + " } }"
}

const (
	insertFour    = "document: { _id: 4, x: 44 }"
	incrementOne  = "filter: { _id: 1 }, update: { $inc: { x: 1 } }"
	replaceOne    = "filter: { _id: 1 }, replacement: { x: 111 }"
	threeRequests = "requests: [ { insertOne: { document: { _id: 4, x: 44 } } }, { updateOne: { filter: { _id: 1 }, update: { $inc: { x: 1 } } } }, { deleteOne: { filter: { _id: 2 } } } ]"
	models        = "models: [ { insertOne: { namespace: utr-compare.documents, document: { _id: 4, x: 44 } } }, { updateOne: { namespace: utr-compare.documents, filter: { _id: 1 }, update: { $inc: { x: 1 } } } } ]"
)

// operations is the table, by the name that schedules use.
var operations = map[string]operation{
	"find":                   read("find", "collection", "filter: {}", "find"),
	"getMore":                {operations: []string{call("find", "collection", "filter: {}, batchSize: 2")}, commands: "getMore"},
	"aggregate":              read("aggregate", "collection", "pipeline: [ { $match: { x: { $gt: 11 } } } ]", "aggregate"),
	"countDocuments":         read("countDocuments", "collection", "filter: {}", "aggregate"),
	"estimatedDocumentCount": read("estimatedDocumentCount", "collection", "", "count"),
	"distinct":               read("distinct", "collection", "fieldName: x, filter: {}", "distinct"),
	"listCollectionNames":    read("listCollectionNames", "database", "filter: {}", "listCollections"),
	"listDatabaseNames":      read("listDatabaseNames", "client", "filter: {}", "listDatabases"),
	"listIndexes":            read("listIndexes", "collection", "", "listIndexes"),
	"findOneInSession":       read("findOne", "collection", "session: session, filter: { _id: 1 }", "find"),

	"insertOne":         write("insertOne", "collection", insertFour, "insert"),
	"insertMany":        write("insertMany", "collection", "documents: [ { _id: 4 }, { _id: 5 } ]", "insert"),
	"insertManyAnyhow":  write("insertMany", "collection", "documents: [ { _id: 4 }, { _id: 1 }, { _id: 5 } ], ordered: false", "insert"),
	"updateOne":         write("updateOne", "collection", incrementOne, "update"),
	"replaceOne":        write("replaceOne", "collection", replaceOne, "update"),
	"deleteOne":         write("deleteOne", "collection", "filter: { _id: 1 }", "delete"),
	"findOneAndUpdate":  write("findOneAndUpdate", "collection", incrementOne+", returnDocument: After", "findAndModify"),
	"findOneAndReplace": write("findOneAndReplace", "collection", replaceOne+", returnDocument: Before", "findAndModify"),
	"findOneAndDelete":  write("findOneAndDelete", "collection", "filter: { _id: 1 }", "findAndModify"),
	"bulkWrite":         write("bulkWrite", "collection", threeRequests, "insert, update, delete"),
	"bulkWriteAnyhow":   write("bulkWrite", "collection", threeRequests+", ordered: false", "insert, update, delete"),
	"clientBulkWrite": {write: true, minServer: "8.0",
		operations: []string{call("clientBulkWrite", "client", models+", verboseResults: true")}, commands: "bulkWrite"},

	"updateMany":     write("updateMany", "collection", "filter: {}, update: { $inc: { x: 1 } }", "update"),
	"deleteMany":     write("deleteMany", "collection", "filter: { x: { $gt: 11 } }", "delete"),
	"aggregateOut":   write("aggregate", "collection", "pipeline: [ { $out: copy } ]", "aggregate"),
	"unacknowledged": {write: true, operations: []string{call("insertOne", "unacknowledged", "document: { x: 1 }")}, commands: "insert", blind: true},
	"runCommand":     read("runCommand", "database", "commandName: ping, command: { ping: 1 }", "ping"),
	"createIndex":    write("createIndex", "collection", "keys: { x: 1 }, name: x_1", "createIndexes"),

	"insertInTransaction": {write: true, replicated: true,
		before: []string{call("startTransaction", "session", "")},
		operations: []string{call("insertOne", "collection", "session: session, "+insertFour),
			call("commitTransaction", "session", "")}, commands: "insert"},
	"commitTransaction": {write: true, replicated: true,
		before:     []string{call("startTransaction", "session", ""), call("insertOne", "collection", "session: session, "+insertFour)},
		operations: []string{call("commitTransaction", "session", "")}, commands: "commitTransaction"},
	"abortTransaction": {write: true, replicated: true,
		before:     []string{call("startTransaction", "session", ""), call("insertOne", "collection", "session: session, "+insertFour)},
		operations: []string{call("abortTransaction", "session", "")}, commands: "abortTransaction"},
	"withTransaction": {write: true, replicated: true,
		operations: []string{call("withTransaction", "session", "callback: [ { name: insertOne, object: collection, ignoreResultAndError: true, arguments: { session: session, "+insertFour+" } } ]")},
		commands:   "insert, commitTransaction"},
}
