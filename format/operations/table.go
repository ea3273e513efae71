package operations

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/unified-test-runner/utr/entities"
)

// all returns the table, sorted by kind and name as the rows below are, with arguments sorted by name.
var all = sync.OnceValue(func() []Operation {
	var rows []Operation
	for _, kind := range tables {
		for _, r := range kind.rows {
			arguments := r.parse()
			for i := range arguments {
				if a := &arguments[i]; kind.kind == entities.TestRunner || a.Name == "session" {
					of := special[a.Name]
					a.Type, a.Entity = cmp.Or(of.Type, Text), of.Entity
				}
			}
			rows = append(rows, Operation{kind.kind, r.name, arguments, r.effect, r.result, r.section})
		}
	}
	return rows
})

// row is a row as written below. Arguments are words; an exclamation mark follows required ones.
type row struct {
	name      string
	effect    Effect
	result    Shape
	section   string
	arguments string
}

func (r row) parse() []Argument {
	var out []Argument
	for _, word := range strings.Fields(r.arguments) {
		name, required := strings.CutSuffix(word, "!")
		out = append(out, Argument{Name: name, Required: required})
	}
	slices.SortFunc(out, func(a, b Argument) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Options that many operations share.
const (
	// each is for operations that send a command: Driver Sessions, "MongoCollection changes"; Client
	// Side Operations Timeout, "timeoutMS".
	each = " session timeoutMS "
	// timed is for most reads.
	timed = each + "maxTimeMS comment rawData "
	// write is for all CRUD writes.
	write = each + "comment bypassDocumentValidation rawData writeConcern "
	// iterated is for operations that create a cursor (Client Side Operations Timeout, "Cursors").
	iterated = "batchSize timeoutMode maxAwaitTimeMS "

	aggregateOptions = timed + iterated +
		"allowDiskUse bypassDocumentValidation collation hint let readConcern readPreference writeConcern "
	findOptions = timed + iterated +
		"allowDiskUse allowPartialResults collation cursorType hint let limit max min modifiers " +
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
	transactions   = "Transactions, ClientSession changes"
	specialSection = utf + "Special Test Operations"
)

// special are the arguments of special test operations whose type is not Text.
var special = map[string]Argument{
	"connections": {Type: Count}, "count": {Type: Count}, "ms": {Type: Count}, "timeoutMS": {Type: Count},
	"event": {Type: Document}, "failPoint": {Type: Document}, "operation": {Type: Document}, "entities": {Type: List},
	"client": {Entity: entities.Client}, "session": {Entity: entities.Session}, "thread": {Entity: entities.Thread},
	"topologyDescription": {Entity: entities.Topology}, "priorTopologyDescription": {Entity: entities.Topology},
}

// tables are the rows by kind, sorted.
var tables = []struct {
	kind entities.Kind
	rows []row
}{
	{entities.Bucket, []row{
		{"delete", Writes, Nothing, gridfs + "File deletion", "id! timeoutMS"},
		{"deleteByName", Writes, Nothing, gridfs + "File deletion", "filename! timeoutMS"},
		{"download", Reads, Value, utf + "download and downloadByName", "id! timeoutMS"},
		{"downloadByName", Reads, Value, utf + "download and downloadByName", "filename! revision timeoutMS"},
		{"drop", Anything, Nothing, gridfs + "Dropping an entire GridFS bucket", "timeoutMS"},
		{"find", Reads, RootDocuments, gridfs + "Generic Find on Files Collection",
			"filter! allowDiskUse batchSize limit maxTimeMS noCursorTimeout skip sort timeoutMS"},
		{"rename", Writes, Nothing, gridfs + "Renaming stored files", "id! newFilename! timeoutMS"},
		{"renameByName", Writes, Nothing, gridfs + "Renaming stored files", "filename! newFilename! timeoutMS"},
		{"upload", Anything, Value, utf + "upload and uploadWithId",
			"filename! source! chunkSizeBytes contentType disableMD5 metadata timeoutMS"},
		{"uploadWithId", Anything, Nothing, utf + "upload and uploadWithId",
			"id! filename! source! chunkSizeBytes contentType disableMD5 metadata timeoutMS"},
	}},
	{entities.Client, []row{
		{"appendMetadata", Reads, Nothing, utf + "appendMetadata", "driverInfoOptions!"},
		{"clientBulkWrite", Writes, RootDocument, utf + "clientBulkWrite", write + "models! let ordered verboseResults"},
		{"close", Reads, Nothing, utf + "close", ""},
		{"createChangeStream", Reads, NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
		{"dropDatabase", Anything, Nothing, "Driver Sessions, Explicit vs implicit sessions",
			each + "database! writeConcern"},
		{"listDatabaseNames", Reads, Value, "Enumerating Databases, Enumerating Database Names",
			timed + "authorizedDatabases filter"},
		{"listDatabaseObjects", Reads, RootDocuments, "Enumerating Databases, Enumerating MongoDatabase Objects", timed +
			"authorizedDatabases filter"},
		{"listDatabases", Reads, RootDocuments, "Enumerating Databases, Enumerating Full Database Information", timed +
			"authorizedDatabases filter nameOnly"},
	}},
	{entities.ClientEncryption, []row{
		{"addKeyAltName", Anything, RootDocument, csfle + "ClientEncryption", "id! keyAltName!"},
		{"createDataKey", Anything, Value, csfle + "ClientEncryption", "kmsProvider! opts"},
		{"createEncryptedCollection", Anything, RootDocument, csfle + "ClientEncryption", "database! collection! opts"},
		{"decrypt", Anything, Value, csfle + "ClientEncryption", "value!"},
		{"deleteKey", Anything, RootDocument, csfle + "ClientEncryption", "id!"},
		{"encrypt", Anything, Value, csfle + "ClientEncryption", "value! opts!"},
		{"encryptExpression", Anything, RootDocument, csfle + "ClientEncryption", "expr! opts!"},
		{"getKey", Anything, RootDocument, csfle + "ClientEncryption", "id!"},
		{"getKeyByAltName", Anything, RootDocument, csfle + "ClientEncryption", "keyAltName!"},
		{"getKeys", Anything, RootDocuments, csfle + "ClientEncryption", ""},
		{"removeKeyAltName", Anything, RootDocument, csfle + "ClientEncryption", "id! keyAltName!"},
		{"rewrapManyDataKey", Anything, RootDocument, csfle + "ClientEncryption", "filter! opts"},
	}},
	{entities.Collection, []row{
		{"aggregate", Anything, RootDocuments, utf + "aggregate", aggregateOptions + "pipeline!"},
		{"bulkWrite", Writes, RootDocument, utf + "bulkWrite", write + "requests! let ordered"},
		{"count", Reads, Value, crud + "Read (deprecated)",
			timed + "filter collation hint limit readConcern readPreference skip"},
		{"countDocuments", Reads, Value, crud + "Count API Details",
			timed + "filter! collation hint limit readConcern readPreference skip"},
		{"createChangeStream", Reads, NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
		{"createFindCursor", Reads, NewCursor, utf + "createFindCursor", findOptions + "filter!"},
		{"createIndex", Anything, Value, indexes + "Standard API", each +
			"keys! 2dsphereIndexVersion background bits bucketSize collation comment commitQuorum " +
			"default_language expireAfterSeconds hidden language_override max maxTimeMS min name partialFilterExpression rawData sparse " +
			"storageEngine textIndexVersion unique version weights wildcardProjection writeConcern"},
		{"createSearchIndex", Anything, Value, searchIndexes, each + "model!"},
		{"createSearchIndexes", Anything, Value, searchIndexes, each + "models!"},
		{"deleteMany", Writes, RootDocument, crud + "Insert, Update, Replace, Delete, and Bulk Writes",
			write + "filter! collation hint let"},
		{"deleteOne", Writes, RootDocument, crud + "Insert, Update, Replace, Delete, and Bulk Writes",
			write + "filter! collation hint let"},
		{"distinct", Reads, Value, crud + "Read", timed + "fieldName! filter collation hint readConcern readPreference"},
		{"dropIndex", Anything, Nothing, indexes + "Standard API", each + "name! comment maxTimeMS rawData writeConcern"},
		{"dropIndexes", Anything, Nothing, indexes + "Standard API", each + "comment maxTimeMS rawData writeConcern"},
		{"dropSearchIndex", Anything, Nothing, searchIndexes, each + "name!"},
		{"estimatedDocumentCount", Reads, Value, crud + "Count API Details", timed + "readConcern readPreference"},
		{"find", Reads, RootDocuments, utf + "find", findOptions + "filter!"},
		{"findOne", Reads, RootDocument, crud + "Read", findOptions + "filter"},
		{"findOneAndDelete", Writes, RootDocument, crud + "Find And Modify", findAndModifyOptions + "filter!"},
		{"findOneAndReplace", Writes, RootDocument, utf + "findOneAndReplace and findOneAndUpdate", findAndModifyOptions +
			"filter! replacement! returnDocument upsert"},
		{"findOneAndUpdate", Writes, RootDocument, utf + "findOneAndReplace and findOneAndUpdate", findAndModifyOptions +
			"filter! update! arrayFilters returnDocument upsert"},
		{"insertMany", Writes, RootDocument, utf + "insertMany", write + "documents! ordered"},
		{"insertOne", Writes, RootDocument, utf + "insertOne", write + "document!"},
		{"listIndexNames", Reads, Value, indexes + "Getting Index Names", timed + iterated},
		{"listIndexes", Reads, RootDocuments, indexes + "Enumerating Indexes", timed + iterated},
		{"listSearchIndexes", Anything, RootDocuments, utf + "listSearchIndexes", each + "aggregationOptions name"},
		{"mapReduce", Anything, Value, "Retryable Reads, Unsupported Read Operations", timed +
			"map! reduce! out! bypassDocumentValidation collation finalize jsMode limit query scope sort verbose readConcern readPreference writeConcern"},
		{"rename", Anything, Nothing, "renameCollection command", each + "to! comment dropTarget maxTimeMS writeConcern"},
		{"replaceOne", Writes, RootDocument, crud + "Insert, Update, Replace, Delete, and Bulk Writes", write +
			"filter! replacement! collation hint let sort upsert"},
		{"updateMany", Writes, RootDocument, crud + "Insert, Update, Replace, Delete, and Bulk Writes",
			updateOptions + "filter! update!"},
		{"updateOne", Writes, RootDocument, crud + "Insert, Update, Replace, Delete, and Bulk Writes",
			updateOptions + "filter! update! sort"},
		{"updateSearchIndex", Anything, Nothing, utf + "updateSearchIndex", each + "definition! name!"},
	}},
	{entities.Cursor, []row{
		{"close", Reads, Nothing, utf + "close", "timeoutMS"},
		{"iterateOnce", Reads, RootDocument, utf + "iterateOnce", ""},
		{"iterateUntilDocumentOrError", Reads, RootDocument, utf + "iterateUntilDocumentOrError", ""},
	}},
	{entities.Database, []row{
		{"aggregate", Anything, RootDocuments, utf + "aggregate", aggregateOptions + "pipeline!"},
		{"createChangeStream", Reads, NewCursor, utf + "createChangeStream", watchOptions + "pipeline!"},
		{"createCollection", Anything, NewCollection, "Collection Management; create command", each +
			"collection! capped changeStreamPreAndPostImages clusteredIndex " +
			"collation comment encryptedFields expireAfterSeconds indexOptionDefaults max maxTimeMS pipeline size storageEngine timeseries " +
			"validationAction validationLevel validator viewOn writeConcern"},
		{"createCommandCursor", Anything, NewCursor, utf + "createCommandCursor", each +
			"batchSize command! commandName comment cursorType maxTimeMS readPreference timeoutMode"},
		{"dropCollection", Anything, Nothing, "Collection Management; drop command", each +
			"collection! comment encryptedFields maxTimeMS writeConcern"},
		{"listCollectionNames", Reads, Value, "Enumerating Collections, Getting Collection Names", timed + iterated +
			"authorizedCollections filter nameOnly"},
		{"listCollectionObjects", Reads, RootDocuments, "Enumerating Collections, Returning a List of Collection Objects",
			timed + iterated + "authorizedCollections filter nameOnly"},
		{"listCollections", Reads, RootDocuments, utf + "listCollections",
			timed + iterated + "authorizedCollections filter nameOnly"},
		{"modifyCollection", Anything, RootDocument, "Collection Management; collMod command", each +
			"collection! changeStreamPreAndPostImages comment expireAfterSeconds " +
			"index maxTimeMS pipeline timeseries validationAction validationLevel validator viewOn writeConcern"},
		{"runCommand", Anything, RootDocument, utf + "runCommand",
			each + "command! commandName readConcern readPreference writeConcern"},
		{"runCursorCommand", Anything, RootDocuments, utf + "runCursorCommand", each +
			"batchSize command! commandName comment cursorType maxTimeMS readPreference timeoutMode"},
	}},
	{entities.Session, []row{
		{"abortTransaction", Reads, Nothing, transactions, "timeoutMS"},
		{"commitTransaction", Reads, Nothing, transactions, "timeoutMS"},
		{"endSession", Reads, Nothing, "Driver Sessions, ClientSession", ""},
		{"getSnapshotTime", Reads, Value, utf + "getSnapshotTime", ""},
		{"startTransaction", Reads, Nothing, transactions, transactionOptions},
		{"withTransaction", Reads, Nothing, utf + "withTransaction", transactionOptions + "callback! timeoutMS"},
	}},
	{entities.TestRunner, []row{
		{"assertCollectionExists", Reads, Nothing, specialSection, "collectionName! databaseName!"},
		{"assertCollectionNotExists", Reads, Nothing, specialSection, "collectionName! databaseName!"},
		{"assertDifferentLsidOnLastTwoCommands", Reads, Nothing, specialSection, "client!"},
		{"assertEventCount", Reads, Nothing, specialSection, "client! count! event!"},
		{"assertIndexExists", Reads, Nothing, specialSection, "collectionName! databaseName! indexName!"},
		{"assertIndexNotExists", Reads, Nothing, specialSection, "collectionName! databaseName! indexName!"},
		{"assertNumberConnectionsCheckedOut", Reads, Nothing, specialSection, "client! connections!"},
		{"assertSameLsidOnLastTwoCommands", Reads, Nothing, specialSection, "client!"},
		{"assertSessionDirty", Reads, Nothing, specialSection, "session!"},
		{"assertSessionNotDirty", Reads, Nothing, specialSection, "session!"},
		{"assertSessionPinned", Reads, Nothing, specialSection, "session!"},
		{"assertSessionTransactionState", Reads, Nothing, specialSection, "session! state!"},
		{"assertSessionUnpinned", Reads, Nothing, specialSection, "session!"},
		{"assertTopologyType", Reads, Nothing, specialSection, "topologyDescription! topologyType!"},
		{"createEntities", Reads, Nothing, specialSection, "entities!"},
		// In the format failPoint has no session. Suites of Transactions have one, without effect.
		{"failPoint", Reads, Nothing, specialSection, "client! failPoint! session"},
		{"recordTopologyDescription", Reads, Nothing, specialSection, "client! id!"},
		{"runOnThread", Reads, Nothing, specialSection, "operation! thread!"},
		{"targetedFailPoint", Reads, Nothing, specialSection, "failPoint! session!"},
		{"wait", Reads, Nothing, specialSection, "ms!"},
		{"waitForEvent", Reads, Nothing, specialSection, "client! count! event!"},
		{"waitForPrimaryChange", Reads, Nothing, specialSection, "client! priorTopologyDescription! timeoutMS"},
		{"waitForThread", Reads, Nothing, specialSection, "thread!"},
	}},
}
