package operations

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// all is the table, built once: sorted by kind and name, arguments sorted by
// name.
var all = sync.OnceValue(func() []Operation {
	var rows []Operation
	for _, kind := range [...]struct {
		kind Kind
		rows []row
	}{
		{Bucket, bucketRows},
		{Client, clientRows},
		{ClientEncryption, clientEncryptionRows},
		{Collection, collectionRows},
		{Cursor, cursorRows},
		{Database, databaseRows},
		{Session, sessionRows},
		{TestRunner, testRunnerRows},
	} {
		for _, r := range kind.rows {
			rows = append(rows, Operation{kind.kind, r.name, r.parse(), r.result, r.section})
		}
	}
	slices.SortFunc(rows, compare)
	return rows
})

// row is a row as written below: the arguments are words, those that are
// required end in an exclamation mark.
type row struct {
	name      string
	result    Shape
	section   string
	arguments string
}

func (r row) parse() []Argument {
	var out []Argument
	for _, word := range strings.Fields(r.arguments) {
		name, required := strings.CutSuffix(word, "!")
		out = append(out, Argument{name, required})
	}
	slices.SortFunc(out, func(a, b Argument) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Options that many operations share.
const (
	// each is taken by what sends a command: Driver Sessions, "Introducing a
	// ClientSession"; Client Side Operations Timeout, "timeoutMS".
	each = " session timeoutMS "
	// timed is what most reads and find-and-modify operations take besides.
	timed = each + "maxTimeMS comment rawData "
	// write is what all CRUD writes take.
	write = each + "comment bypassDocumentValidation rawData writeConcern "
	// iterated is what operations take that make a cursor (Client Side
	// Operations Timeout, "Cursors").
	iterated = "batchSize timeoutMode maxAwaitTimeMS "

	aggregateOptions = timed + iterated + "allowDiskUse bypassDocumentValidation collation hint let readConcern readPreference writeConcern "
	findOptions      = timed + iterated + "allowDiskUse allowPartialResults collation cursorType hint let limit max min modifiers " +
		"noCursorTimeout oplogReplay projection readConcern readPreference returnKey showRecordId skip snapshot sort maxScan "
	watchOptions = each + "batchSize collation comment fullDocument fullDocumentBeforeChange maxAwaitTimeMS " +
		"readConcern readPreference resumeAfter showExpandedEvents startAfter startAtOperationTime "
	updateOptions        = write + "arrayFilters collation hint let upsert "
	findAndModifyOptions = write + "maxTimeMS collation hint let projection sort "
	transactionOptions   = "maxCommitTimeMS readConcern readPreference writeConcern "
)

// Specifications that the rows come from.
const (
	utf            = "Unified Test Format, "
	crud           = "CRUD, "
	gridfs         = "GridFS, "
	csfle          = "Client Side Encryption, "
	indexes        = "Index Management, "
	searchIndexes  = "Index Management, Search Indexes"
	changeStreams  = "Change Streams, Driver API"
	transactions   = "Transactions, ClientSession changes"
	specialSection = utf + "Special Test Operations"
)

var clientRows = []row{
	{"appendMetadata", Nothing, utf + "appendMetadata", "driverInfoOptions!"},
	{"clientBulkWrite", RootDocument, utf + "clientBulkWrite", write + "models! let ordered verboseResults"},
	{"close", Nothing, utf + "close", ""},
	{"createChangeStream", NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
	{"dropDatabase", Nothing, "Sessions, explicit sessions", each + "database! writeConcern"},
	{"listDatabaseNames", Value, "Enumerating Databases, Enumerating Database Names", timed + "authorizedDatabases filter"},
	{"listDatabaseObjects", RootDocuments, "Enumerating Databases, Enumerating MongoDatabase Objects", timed + "authorizedDatabases filter"},
	{"listDatabases", RootDocuments, "Enumerating Databases, Enumerating Full Database Information", timed + "authorizedDatabases filter nameOnly"},
}

var clientEncryptionRows = []row{
	{"addKeyAltName", RootDocument, csfle + "ClientEncryption", "id! keyAltName!"},
	{"createDataKey", Value, csfle + "ClientEncryption", "kmsProvider! opts"},
	{"createEncryptedCollection", RootDocument, csfle + "ClientEncryption", "database! collection! opts"},
	{"decrypt", Value, csfle + "ClientEncryption", "value!"},
	{"deleteKey", RootDocument, csfle + "ClientEncryption", "id!"},
	{"encrypt", Value, csfle + "ClientEncryption", "value! opts!"},
	{"encryptExpression", RootDocument, csfle + "ClientEncryption", "expr! opts!"},
	{"getKey", RootDocument, csfle + "ClientEncryption", "id!"},
	{"getKeyByAltName", RootDocument, csfle + "ClientEncryption", "keyAltName!"},
	{"getKeys", RootDocuments, csfle + "ClientEncryption", ""},
	{"removeKeyAltName", RootDocument, csfle + "ClientEncryption", "id! keyAltName!"},
	{"rewrapManyDataKey", RootDocument, csfle + "ClientEncryption", "filter! opts"},
}

var databaseRows = []row{
	{"aggregate", RootDocuments, utf + "aggregate", aggregateOptions + "pipeline!"},
	{"createChangeStream", NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
	{"createCollection", NewCollection, "Collection Management; create command", each + "collection! capped changeStreamPreAndPostImages clusteredIndex " +
		"collation comment encryptedFields expireAfterSeconds indexOptionDefaults max maxTimeMS pipeline size storageEngine timeseries " +
		"validationAction validationLevel validator viewOn writeConcern"},
	{"createCommandCursor", NewCursor, utf + "createCommandCursor", each + "batchSize command! commandName comment cursorType maxTimeMS readPreference timeoutMode"},
	{"dropCollection", Nothing, "Collection Management; drop command", each + "collection! comment encryptedFields maxTimeMS writeConcern"},
	{"listCollectionNames", Value, "Enumerating Collections, Getting Collection Names", timed + iterated + "authorizedCollections filter nameOnly"},
	{"listCollectionObjects", RootDocuments, "Enumerating Collections, Returning a List of Collection Objects", timed + iterated + "authorizedCollections filter nameOnly"},
	{"listCollections", RootDocuments, utf + "listCollections", timed + iterated + "authorizedCollections filter nameOnly"},
	{"modifyCollection", RootDocument, "Collection Management; collMod command", each + "collection! changeStreamPreAndPostImages comment expireAfterSeconds " +
		"index maxTimeMS pipeline timeseries validationAction validationLevel validator viewOn writeConcern"},
	{"runCommand", RootDocument, utf + "runCommand", each + "command! commandName readConcern readPreference writeConcern"},
	{"runCursorCommand", RootDocuments, utf + "runCursorCommand", each + "batchSize command! commandName comment cursorType maxTimeMS readPreference timeoutMode"},
}

var collectionRows = []row{
	{"aggregate", RootDocuments, utf + "aggregate", aggregateOptions + "pipeline!"},
	{"bulkWrite", RootDocument, utf + "bulkWrite", write + "requests! let ordered"},
	{"count", Value, crud + "Read (deprecated)", timed + "filter collation hint limit readConcern readPreference skip"},
	{"countDocuments", Value, crud + "Count API Details", timed + "filter! collation hint limit readConcern readPreference skip"},
	{"createChangeStream", NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
	{"createFindCursor", NewCursor, utf + "createFindCursor", findOptions + "filter!"},
	{"createIndex", Value, indexes + "Standard API", each + "keys! 2dsphereIndexVersion background bits bucketSize collation comment commitQuorum " +
		"default_language expireAfterSeconds hidden language_override max maxTimeMS min name partialFilterExpression rawData sparse " +
		"storageEngine textIndexVersion unique version weights wildcardProjection writeConcern"},
	{"createSearchIndex", Value, searchIndexes, each + "model!"},
	{"createSearchIndexes", Value, searchIndexes, each + "models!"},
	{"deleteMany", RootDocument, crud + "Delete", write + "filter! collation hint let"},
	{"deleteOne", RootDocument, crud + "Delete", write + "filter! collation hint let"},
	{"distinct", Value, crud + "Read", timed + "fieldName! filter collation hint readConcern readPreference"},
	{"dropIndex", Nothing, indexes + "Standard API", each + "name! comment maxTimeMS rawData writeConcern"},
	{"dropIndexes", Nothing, indexes + "Standard API", each + "comment maxTimeMS rawData writeConcern"},
	{"dropSearchIndex", Nothing, searchIndexes, each + "name!"},
	{"estimatedDocumentCount", Value, crud + "Count API Details", timed + "readConcern readPreference"},
	{"find", RootDocuments, utf + "find", findOptions + "filter!"},
	{"findOne", RootDocument, crud + "Read", findOptions + "filter"},
	{"findOneAndDelete", RootDocument, crud + "Find And Modify", findAndModifyOptions + "filter!"},
	{"findOneAndReplace", RootDocument, utf + "findOneAndReplace and findOneAndUpdate", findAndModifyOptions + "filter! replacement! returnDocument upsert"},
	{"findOneAndUpdate", RootDocument, utf + "findOneAndReplace and findOneAndUpdate", findAndModifyOptions + "filter! update! arrayFilters returnDocument upsert"},
	{"insertMany", RootDocument, utf + "insertMany", write + "documents! ordered"},
	{"insertOne", RootDocument, utf + "insertOne", write + "document!"},
	{"listIndexNames", Value, indexes + "Getting Index Names", timed + iterated},
	{"listIndexes", RootDocuments, indexes + "Getting Full Index Information", timed + iterated},
	{"listSearchIndexes", RootDocuments, utf + "listSearchIndexes", each + "aggregationOptions name"},
	{"mapReduce", Value, "Retryable Reads, Unsupported Read Operations", timed + "map! reduce! out! bypassDocumentValidation collation finalize jsMode limit query scope sort verbose readConcern readPreference writeConcern"},
	{"rename", Nothing, "renameCollection command", each + "to! comment dropTarget maxTimeMS writeConcern"},
	{"replaceOne", RootDocument, crud + "Update", write + "filter! replacement! collation hint let sort upsert"},
	{"updateMany", RootDocument, crud + "Update", updateOptions + "filter! update!"},
	{"updateOne", RootDocument, crud + "Update", updateOptions + "filter! update! sort"},
	{"updateSearchIndex", Nothing, utf + "updateSearchIndex", each + "definition! name!"},
}

var sessionRows = []row{
	{"abortTransaction", Nothing, transactions, "timeoutMS"},
	{"commitTransaction", Nothing, transactions, "timeoutMS"},
	{"endSession", Nothing, "Driver Sessions, ClientSession", ""},
	{"getSnapshotTime", Value, utf + "getSnapshotTime", ""},
	{"startTransaction", Nothing, transactions, transactionOptions},
	{"withTransaction", Nothing, utf + "withTransaction", transactionOptions + "callback! timeoutMS"},
}

var bucketRows = []row{
	{"delete", Nothing, gridfs + "File deletion", "id! timeoutMS"},
	{"deleteByName", Nothing, gridfs + "File deletion", "filename! timeoutMS"},
	{"download", Value, utf + "download and downloadByName", "id! timeoutMS"},
	{"downloadByName", Value, utf + "download and downloadByName", "filename! revision timeoutMS"},
	{"drop", Nothing, gridfs + "Drop", "timeoutMS"},
	{"find", RootDocuments, gridfs + "Generic Find on Files Collection", "filter! allowDiskUse batchSize limit maxTimeMS noCursorTimeout skip sort timeoutMS"},
	{"rename", Nothing, gridfs + "Renaming stored files", "id! newFilename! timeoutMS"},
	{"renameByName", Nothing, gridfs + "Renaming stored files", "filename! newFilename! timeoutMS"},
	{"upload", Value, utf + "upload and uploadWithId", "filename! source! chunkSizeBytes contentType disableMD5 metadata timeoutMS"},
	{"uploadWithId", Nothing, utf + "upload and uploadWithId", "id! filename! source! chunkSizeBytes contentType disableMD5 metadata timeoutMS"},
}

var cursorRows = []row{
	{"close", Nothing, utf + "close", "timeoutMS"},
	{"iterateOnce", RootDocument, utf + "iterateOnce", ""},
	{"iterateUntilDocumentOrError", RootDocument, utf + "iterateUntilDocumentOrError", ""},
}

var testRunnerRows = []row{
	{"assertCollectionExists", Nothing, specialSection, "collectionName! databaseName!"},
	{"assertCollectionNotExists", Nothing, specialSection, "collectionName! databaseName!"},
	{"assertDifferentLsidOnLastTwoCommands", Nothing, specialSection, "client!"},
	{"assertEventCount", Nothing, specialSection, "client! count! event!"},
	{"assertIndexExists", Nothing, specialSection, "collectionName! databaseName! indexName!"},
	{"assertIndexNotExists", Nothing, specialSection, "collectionName! databaseName! indexName!"},
	{"assertNumberConnectionsCheckedOut", Nothing, specialSection, "client! connections!"},
	{"assertSameLsidOnLastTwoCommands", Nothing, specialSection, "client!"},
	{"assertSessionDirty", Nothing, specialSection, "session!"},
	{"assertSessionNotDirty", Nothing, specialSection, "session!"},
	{"assertSessionPinned", Nothing, specialSection, "session!"},
	{"assertSessionTransactionState", Nothing, specialSection, "session! state!"},
	{"assertSessionUnpinned", Nothing, specialSection, "session!"},
	{"assertTopologyType", Nothing, specialSection, "topologyDescription! topologyType!"},
	{"createEntities", Nothing, specialSection, "entities!"},
	// The format gives failPoint no session; suites of Transactions carry one,
	// and it has no effect.
	{"failPoint", Nothing, specialSection, "client! failPoint! session"},
	{"recordTopologyDescription", Nothing, specialSection, "client! id!"},
	{"runOnThread", Nothing, specialSection, "operation! thread!"},
	{"targetedFailPoint", Nothing, specialSection, "failPoint! session!"},
	{"wait", Nothing, specialSection, "ms!"},
	{"waitForEvent", Nothing, specialSection, "client! count! event!"},
	{"waitForPrimaryChange", Nothing, specialSection, "client! priorTopologyDescription! timeoutMS"},
	{"waitForThread", Nothing, specialSection, "thread!"},
}
