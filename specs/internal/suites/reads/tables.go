package reads

import "github.com/unified-test-runner/utr/specs/internal/suites"

const databaseName = "utr-retryable-reads"

// Operations are the retryable reads on a database ("Supported Read
// Operations"). Helpers that drivers may have beside them (count,
// findOne, names and objects of enumerations) are rows as well.
func Operations(databaseName string) []operation {
	const someIDs, file = `{ filter: { _id: { $gt: 1 } } }`, `{ $oid: "00000000000000000000000a" }`
	one, documents := `{ filter: { name: `+databaseName+` } }`, `{ filter: { name: documents } }`
	list := suites.Complete(databaseName, []operation{
		{Object: "client", Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate",
			Started: `{ aggregate: 1, pipeline: [ { $changeStream: { allChangesForCluster: true } } ] }`, Watches: true},
		{Object: "client", Name: "listDatabaseNames", Arguments: one, Command: "listDatabases", Result: `[ ` + databaseName + ` ]`},
		{Object: "client", Name: "listDatabaseObjects", Arguments: one, Command: "listDatabases"},
		{Object: "client", Name: "listDatabases", Arguments: one, Result: `[ { name: ` + databaseName + ` } ]`, Session: true},

		{Object: "admin", Name: "aggregate", Result: `[ { seen: true } ]`,
			Arguments: `{ pipeline: [ { $listLocalSessions: {} }, { $limit: 1 }, { $addFields: { seen: true } }, { $project: { _id: 0, seen: 1 } } ] }`},
		{Object: "database", Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate",
			Started: `{ aggregate: 1, pipeline: [ { $changeStream: {} } ] }`, Watches: true},
		{Object: "database", Name: "listCollectionNames", Arguments: documents, Command: "listCollections", Result: `[ documents ]`},
		{Object: "database", Name: "listCollectionObjects", Arguments: documents, Command: "listCollections"},
		{Object: "database", Name: "listCollections", Arguments: documents, Result: `[ { name: documents, type: collection } ]`, Session: true},

		{Name: "aggregate", Arguments: `{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $sort: { _id: 1 } } ] }`,
			Result: `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, Session: true, Txn: true},
		{Name: "count", Arguments: someIDs, Started: `{ count: documents, query: { _id: { $gt: 1 } } }`, Result: `2`, Session: true},
		{Name: "countDocuments", Arguments: someIDs, Command: "aggregate", Result: `2`, Session: true, Txn: true,
			Started: `{ aggregate: documents, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $group: { _id: 1, "n": { $sum: 1 } } } ] }`},
		{Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate",
			Started: `{ aggregate: documents, pipeline: [ { $changeStream: {} } ] }`, Watches: true},
		{Name: "distinct", Arguments: `{ fieldName: x, filter: { _id: { $gt: 1 } } }`,
			Started: `{ distinct: documents, key: x, query: { _id: { $gt: 1 } } }`, Result: `[ 22, 33 ]`, Session: true, Txn: true},
		{Name: "estimatedDocumentCount", Command: "count", Result: `3`},
		{Name: "find", Arguments: `{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }`,
			Result: `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, Session: true, Txn: true},
		{Name: "findOne", Arguments: `{ filter: { _id: 2 } }`, Command: "find", Result: `{ _id: 2, x: 22 }`},
		{Name: "listIndexNames", Command: "listIndexes", Result: `[ _id_ ]`},
		{Name: "listIndexes", Result: `[ { key: { _id: 1 }, name: _id_ } ]`, Session: true},

		{Object: "bucket", Name: "download", Arguments: `{ id: ` + file + ` }`, Command: "find", Result: `{ $$matchesHexBytes: "cafe" }`,
			Started: `{ find: fs.files, filter: { _id: ` + file + ` } }`, Then: `{ find: fs.chunks, filter: { files_id: ` + file + ` } }`},
		{Object: "bucket", Name: "downloadByName", Arguments: `{ filename: coffee }`, Command: "find", Result: `{ $$matchesHexBytes: "cafe" }`,
			Started: `{ find: fs.files, filter: { filename: coffee } }`, Then: `{ find: fs.chunks, filter: { files_id: ` + file + ` } }`},
	})
	for i := range list {
		list[i].Reads = true
	}
	return list
}

// retryable are the codes of "Retryable Error".
var retryable = []suites.Code{
	suites.HostUnreachable, suites.HostNotFound, suites.NetworkTimeout, suites.ShutdownInProgress,
	suites.ReadConcernMajorityNotAvailableYet, suites.PrimarySteppedDown, suites.ExceededTimeLimit, suites.SocketException,
	suites.NotWritablePrimary, suites.InterruptedAtShutdown, suites.InterruptedDueToReplStateChange,
	suites.NotPrimaryNoSecondaryOk, suites.NotPrimaryOrSecondary,
}

// others are neighbours of these that must not be retried.
var others = []suites.Code{suites.MaxTimeMSExpired, suites.Interrupted}
