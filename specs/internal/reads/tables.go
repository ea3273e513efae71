package reads

// The namespace of all suites.
const (
	databaseName   = "utr-retryable-reads"
	collectionName = "documents"
)

// operation is a retryable read ("Supported Read Operations"). Arguments,
// commands and results are flow YAML.
type operation struct {
	object    string // entity that it is called on: client, database, admin, collection, bucket
	name      string // as the format calls it
	arguments string
	command   string // name of the command that carries it
	started   string // what the command must have
	database  string // where the command is sent
	result    string // "" if drivers may return what the format cannot compare
	then      string // started event of a command that follows a success, of the same name
	watches   bool   // it opens a change stream: not on a standalone
	session   bool   // the format's session argument is common for it
	txn       bool   // the server allows it in a transaction
}

// operations are the retryable reads. Helpers that drivers may have beside
// them (count, findOne, names and objects of enumerations) are rows as well.
var operations = []operation{
	{object: "client", name: "createChangeStream", arguments: `{ pipeline: [] }`, command: "aggregate", database: "admin",
		started: `{ aggregate: 1, pipeline: [ { $changeStream: { allChangesForCluster: true } } ] }`, watches: true},
	{object: "client", name: "listDatabaseNames", arguments: `{ filter: { name: ` + databaseName + ` } }`, command: "listDatabases", database: "admin",
		started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`, result: `[ ` + databaseName + ` ]`},
	{object: "client", name: "listDatabaseObjects", arguments: `{ filter: { name: ` + databaseName + ` } }`, command: "listDatabases", database: "admin",
		started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`},
	{object: "client", name: "listDatabases", arguments: `{ filter: { name: ` + databaseName + ` } }`, command: "listDatabases", database: "admin",
		started: `{ listDatabases: 1, filter: { name: ` + databaseName + ` } }`, result: `[ { name: ` + databaseName + ` } ]`, session: true},

	{object: "admin", name: "aggregate", command: "aggregate", database: "admin",
		arguments: `{ pipeline: [ { $listLocalSessions: {} }, { $limit: 1 }, { $addFields: { seen: true } }, { $project: { _id: 0, seen: 1 } } ] }`,
		started:   `{ aggregate: 1, pipeline: [ { $listLocalSessions: {} }, { $limit: 1 }, { $addFields: { seen: true } }, { $project: { _id: 0, seen: 1 } } ] }`,
		result:    `[ { seen: true } ]`},
	{object: "database", name: "createChangeStream", arguments: `{ pipeline: [] }`, command: "aggregate", database: databaseName,
		started: `{ aggregate: 1, pipeline: [ { $changeStream: {} } ] }`, watches: true},
	{object: "database", name: "listCollectionNames", arguments: `{ filter: { name: ` + collectionName + ` } }`, command: "listCollections", database: databaseName,
		started: `{ listCollections: 1, filter: { name: ` + collectionName + ` } }`, result: `[ ` + collectionName + ` ]`},
	{object: "database", name: "listCollectionObjects", arguments: `{ filter: { name: ` + collectionName + ` } }`, command: "listCollections", database: databaseName,
		started: `{ listCollections: 1, filter: { name: ` + collectionName + ` } }`},
	{object: "database", name: "listCollections", arguments: `{ filter: { name: ` + collectionName + ` } }`, command: "listCollections", database: databaseName,
		started: `{ listCollections: 1, filter: { name: ` + collectionName + ` } }`, result: `[ { name: ` + collectionName + `, type: collection } ]`, session: true},

	{object: "collection", name: "aggregate", arguments: `{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $sort: { _id: 1 } } ] }`, command: "aggregate", database: databaseName,
		started: `{ aggregate: ` + collectionName + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $sort: { _id: 1 } } ] }`,
		result:  `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, session: true, txn: true},
	{object: "collection", name: "count", arguments: `{ filter: { _id: { $gt: 1 } } }`, command: "count", database: databaseName,
		started: `{ count: ` + collectionName + `, query: { _id: { $gt: 1 } } }`, result: `2`, session: true},
	{object: "collection", name: "countDocuments", arguments: `{ filter: { _id: { $gt: 1 } } }`, command: "aggregate", database: databaseName,
		started: `{ aggregate: ` + collectionName + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $group: { _id: 1, "n": { $sum: 1 } } } ] }`,
		result:  `2`, session: true, txn: true},
	{object: "collection", name: "createChangeStream", arguments: `{ pipeline: [] }`, command: "aggregate", database: databaseName,
		started: `{ aggregate: ` + collectionName + `, pipeline: [ { $changeStream: {} } ] }`, watches: true},
	{object: "collection", name: "distinct", arguments: `{ fieldName: x, filter: { _id: { $gt: 1 } } }`, command: "distinct", database: databaseName,
		started: `{ distinct: ` + collectionName + `, key: x, query: { _id: { $gt: 1 } } }`, result: `[ 22, 33 ]`, session: true, txn: true},
	{object: "collection", name: "estimatedDocumentCount", arguments: `{}`, command: "count", database: databaseName,
		started: `{ count: ` + collectionName + ` }`, result: `3`},
	{object: "collection", name: "find", arguments: `{ filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }`, command: "find", database: databaseName,
		started: `{ find: ` + collectionName + `, filter: { _id: { $gt: 1 } }, sort: { _id: 1 } }`,
		result:  `[ { _id: 2, x: 22 }, { _id: 3, x: 33 } ]`, session: true, txn: true},
	{object: "collection", name: "findOne", arguments: `{ filter: { _id: 2 } }`, command: "find", database: databaseName,
		started: `{ find: ` + collectionName + `, filter: { _id: 2 } }`, result: `{ _id: 2, x: 22 }`},
	{object: "collection", name: "listIndexNames", arguments: `{}`, command: "listIndexes", database: databaseName,
		started: `{ listIndexes: ` + collectionName + ` }`, result: `[ _id_ ]`},
	{object: "collection", name: "listIndexes", arguments: `{}`, command: "listIndexes", database: databaseName,
		started: `{ listIndexes: ` + collectionName + ` }`, result: `[ { key: { _id: 1 }, name: _id_ } ]`, session: true},

	{object: "bucket", name: "download", arguments: `{ id: { $oid: "00000000000000000000000a" } }`, command: "find", database: databaseName,
		started: `{ find: fs.files, filter: { _id: { $oid: "00000000000000000000000a" } } }`, result: `{ $$matchesHexBytes: "cafe" }`,
		then: `{ find: fs.chunks, filter: { files_id: { $oid: "00000000000000000000000a" } } }`},
	{object: "bucket", name: "downloadByName", arguments: `{ filename: coffee }`, command: "find", database: databaseName,
		started: `{ find: fs.files, filter: { filename: coffee } }`, result: `{ $$matchesHexBytes: "cafe" }`,
		then: `{ find: fs.chunks, filter: { files_id: { $oid: "00000000000000000000000a" } } }`},
}

// code is a server error.
type code struct {
	number int
	name   string
}

// retryable are the codes of "Retryable Error".
var retryable = []code{
	{6, "HostUnreachable"}, {7, "HostNotFound"}, {89, "NetworkTimeout"}, {91, "ShutdownInProgress"},
	{134, "ReadConcernMajorityNotAvailableYet"}, {189, "PrimarySteppedDown"}, {262, "ExceededTimeLimit"}, {9001, "SocketException"},
	{10107, "NotWritablePrimary"}, {11600, "InterruptedAtShutdown"}, {11602, "InterruptedDueToReplStateChange"},
	{13435, "NotPrimaryNoSecondaryOk"}, {13436, "NotPrimaryOrSecondary"},
}

// others are neighbours of these that must not be retried.
var others = []code{{50, "MaxTimeMSExpired"}, {11601, "Interrupted"}}
