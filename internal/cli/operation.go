package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/internal/meant"
	"github.com/unified-test-runner/utr/reference/retry"
)

// performs maps operations of suites to those of the retry core, where the names differ.
var performs = map[string]string{
	"clientBulkWrite":             "bulkWrite",
	"close":                       "killCursors",
	"countDocuments":              "aggregate",
	"createChangeStream":          "aggregate",
	"createCollection":            "create",
	"createCommandCursor":         "runCommand",
	"createFindCursor":            "find",
	"createIndex":                 "createIndexes",
	"createSearchIndex":           "createSearchIndexes",
	"deleteMany":                  "multi-document delete",
	"deleteOne":                   "delete",
	"download":                    "find",
	"downloadByName":              "find",
	"dropCollection":              "drop",
	"dropIndex":                   "dropIndexes",
	"endSession":                  "endSessions",
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
	"listSearchIndexes":           "aggregate",
	"modifyCollection":            "collMod",
	"rename":                      "renameCollection",
	"replaceOne":                  "update",
	"runCursorCommand":            "runCommand",
	"updateMany":                  "multi-document update",
	"updateOne":                   "update",
}

// operationNamed returns an operation of the retry core by its name, or by that of an operation of suites. For
// the core, any other command is a generic one.
func operationNamed(name string) (retry.Operation, error) {
	names := mapSlice(retry.Operations(), func(o retry.Operation) string { return o.Name })
	if command := performs[name]; command != "" {
		name = command
	}
	if slices.Contains(names, name) {
		return retry.Lookup(name), nil
	}
	return retry.Operation{},
		usage("unknown operation %q%s (known operations: %s, and their names in suites; any other command is a runCommand)",
			name, meant.Hint(name, slices.AppendSeq(slices.Clone(names), maps.Keys(performs))), strings.Join(names, ", "))
}
