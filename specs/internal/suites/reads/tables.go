package reads

import "github.com/unified-test-runner/utr/specs/internal/suites"

const databaseName = "utr-retryable-reads"

// Operations are the retryable reads on a database ("Supported Read
// Operations"). Helpers that drivers may have beside them (count,
// findOne, names and objects of enumerations) are rows as well.
func Operations(databaseName string) []suites.Operation {
	list := []suites.Operation{
		{Object: "client", Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate", Database: "admin",
			Started: `{ aggregate: 1, pipeline: [ { $changeStream: { allChangesForCluster: true } } ] }`, Watches: true},
		{Object: "client", Name: "listDatabaseNames", Arguments: `{ filter: { name: ` + databaseName + ` } }`, Command: "listDatabases", Database: "admin",
			Started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`, Result: `[ ` + databaseName + ` ]`},
		{Object: "client", Name: "listDatabaseObjects", Arguments: `{ filter: { name: ` + databaseName + ` } }`, Command: "listDatabases", Database: "admin",
			Started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`},
		{Object: "client", Name: "listDatabases", Arguments: `{ filter: { name: ` + databaseName + ` } }`, Command: "listDatabases", Database: "admin",
			Started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`, Result: `[ { name: ` + databaseName + ` } ]`, Session: true},

		{Object: "admin", Name: "aggregate", Command: "aggregate", Database: "admin",
			Arguments: `{ pipeline: [ { $listLocalSessions: {} }, { $limit: 1 }, { $addFields: { seen: true } }, { $project: { _id: 0, seen: 1 } } ] }`,
			Started:   `{ aggregate: 1, pipeline: [ { $listLocalSessions: {} }, { $limit: 1 }, { $addFields: { seen: true } }, { $project: { _id: 0, seen: 1 } } ] }`,
			Result:    `[ { seen: true } ]`},
		{Object: "database", Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate", Database: databaseName,
			Started: `{ aggregate: 1, pipeline: [ { $changeStream: {} } ] }`, Watches: true},
		{Object: "database", Name: "listCollectionNames", Arguments: `{ filter: { name: ` + suites.Collection + ` } }`, Command: "listCollections", Database: databaseName,
			Started: `{ listCollections: 1, filter: { name: ` + suites.Collection + ` } }`, Result: `[ ` + suites.Collection + ` ]`},
		{Object: "database", Name: "listCollectionObjects", Arguments: `{ filter: { name: ` + suites.Collection + ` } }`, Command: "listCollections", Database: databaseName,
			Started: `{ listCollections: 1, filter: { name: ` + suites.Collection + ` } }`},
		{Object: "database", Name: "listCollections", Arguments: `{ filter: { name: ` + suites.Collection + ` } }`, Command: "listCollections", Database: databaseName,
			Started: `{ listCollections: 1, filter: { name: ` + suites.Collection + ` } }`, Result: `[ { name: ` + suites.Collection + `, type: collection } ]`, Session: true},

		{Object: "collection", Name: "aggregate", Arguments: `{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $sort: { _id: 1 } } ] }`, Command: "aggregate", Database: databaseName,
			Started: `{ aggregate: ` + suites.Collection + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $sort: { _id: 1 } } ] }`,
			Result:  `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, Session: true, Txn: true},
		{Object: "collection", Name: "count", Arguments: `{ filter: { _id: { $gt: 1 } } }`, Command: "count", Database: databaseName,
			Started: `{ count: ` + suites.Collection + `, query: { _id: { $gt: 1 } } }`, Result: `2`, Session: true},
		{Object: "collection", Name: "countDocuments", Arguments: `{ filter: { _id: { $gt: 1 } } }`, Command: "aggregate", Database: databaseName,
			Started: `{ aggregate: ` + suites.Collection + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $group: { _id: 1, "n": { $sum: 1 } } } ] }`,
			Result:  `2`, Session: true, Txn: true},
		{Object: "collection", Name: "createChangeStream", Arguments: `{ pipeline: [] }`, Command: "aggregate", Database: databaseName,
			Started: `{ aggregate: ` + suites.Collection + `, pipeline: [ { $changeStream: {} } ] }`, Watches: true},
		{Object: "collection", Name: "distinct", Arguments: `{ fieldName: x, filter: { _id: { $gt: 1 } } }`, Command: "distinct", Database: databaseName,
			Started: `{ distinct: ` + suites.Collection + `, key: x, query: { _id: { $gt: 1 } } }`, Result: `[ 22, 33 ]`, Session: true, Txn: true},
		{Object: "collection", Name: "estimatedDocumentCount", Arguments: `{}`, Command: "count", Database: databaseName,
			Started: `{ count: ` + suites.Collection + ` }`, Result: `3`},
		{Object: "collection", Name: "find", Arguments: `{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }`, Command: "find", Database: databaseName,
			Started: `{ find: ` + suites.Collection + `, filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }`,
			Result:  `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, Session: true, Txn: true},
		{Object: "collection", Name: "findOne", Arguments: `{ filter: { _id: 2 } }`, Command: "find", Database: databaseName,
			Started: `{ find: ` + suites.Collection + `, filter: { _id: 2 } }`, Result: `{ _id: 2, x: 22 }`},
		{Object: "collection", Name: "listIndexNames", Arguments: `{}`, Command: "listIndexes", Database: databaseName,
			Started: `{ listIndexes: ` + suites.Collection + ` }`, Result: `[ _id_ ]`},
		{Object: "collection", Name: "listIndexes", Arguments: `{}`, Command: "listIndexes", Database: databaseName,
			Started: `{ listIndexes: ` + suites.Collection + ` }`, Result: `[ { key: { _id: 1 }, name: _id_ } ]`, Session: true},

		{Object: "bucket", Name: "download", Arguments: `{ id: { $oid: "00000000000000000000000a" } }`, Command: "find", Database: databaseName,
			Started: `{ find: fs.files, filter: { _id: { $oid: "00000000000000000000000a" } } }`, Result: `{ $$matchesHexBytes: "cafe" }`,
			Then: `{ find: fs.chunks, filter: { files_id: { $oid: "00000000000000000000000a" } } }`},
		{Object: "bucket", Name: "downloadByName", Arguments: `{ filename: coffee }`, Command: "find", Database: databaseName,
			Started: `{ find: fs.files, filter: { filename: coffee } }`, Result: `{ $$matchesHexBytes: "cafe" }`,
			Then: `{ find: fs.chunks, filter: { files_id: { $oid: "00000000000000000000000a" } } }`},
	}
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
