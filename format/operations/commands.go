package operations

import (
	"cmp"
	"maps"
)

// commands are the commands of operations that have other names. The methods of all drivers that send a command have
// the name of the command in spans (OpenTelemetry, "Covered operations").
var commands = map[string]string{
	"clientBulkWrite":             "bulkWrite",
	"close":                       "killCursors", // of a cursor
	"countDocuments":              "aggregate",
	"createChangeStream":          "aggregate",
	"createFindCursor":            "find",
	"createIndex":                 "createIndexes",
	"createSearchIndex":           "createSearchIndexes",
	"deleteMany":                  "delete",
	"deleteOne":                   "delete",
	"dropIndex":                   "dropIndexes",
	"estimatedDocumentCount":      "count",
	"findOne":                     "find",
	"findOneAndDelete":            "findAndModify",
	"findOneAndReplace":           "findAndModify",
	"findOneAndUpdate":            "findAndModify",
	"insertMany":                  "insert",
	"insertOne":                   "insert",
	"iterateOnce":                 "getMore",
	"iterateUntilDocumentOrError": "getMore",
	"listCollectionNames":         "listCollections",
	"listCollectionObjects":       "listCollections",
	"listDatabaseNames":           "listDatabases",
	"listDatabaseObjects":         "listDatabases",
	"listIndexNames":              "listIndexes",
	"replaceOne":                  "update",
	"updateMany":                  "update",
	"updateOne":                   "update",
}

// Command returns the command of an operation, by which all drivers name it, or its own name.
func Command(operation string) string { return cmp.Or(commands[operation], operation) }

// Commands returns the commands of the operations that have other names.
func Commands() map[string]string { return maps.Clone(commands) }
