package retry

import (
	"cmp"
	"slices"
)

// Class says which of the client's options allows a retry after an overload
// error.
type Class uint8

// The classes.
const (
	// Command is a generic command: neither read nor write.
	Command Class = iota
	Read
	Write
)

// Operation is what the rules know of an operation.
type Operation struct {
	Name  string
	Class Class
	// RetryableRead is true for operations of "Supported Read Operations".
	RetryableRead bool
	// RetryableWrite is true for operations of "Supported Write Operations",
	// and for commit and abort of a transaction.
	RetryableWrite bool
	// EndsTransaction is true for commit and abort, which are retried
	// whatever retryWrites says.
	EndsTransaction bool
	// Why says the reason of an exception.
	Why string
}

// operationTable is sorted by name, and never written to. Names are those of
// the commands, or of the format's operations where one command serves several.
var operationTable = []Operation{
	{Name: "abortTransaction", Class: Write, RetryableWrite: true, EndsTransaction: true},
	{Name: "aggregate", Class: Read, RetryableRead: true},
	{Name: "aggregate with a write stage", Class: Write, Why: "it writes, and carries no transaction number"},
	{Name: "bulkWrite", Class: Write, RetryableWrite: true},
	{Name: "bulkWrite with multi-document writes", Class: Write, Why: "a statement may change several documents"},
	{Name: "commitTransaction", Class: Write, RetryableWrite: true, EndsTransaction: true},
	{Name: "count", Class: Read, RetryableRead: true},
	{Name: "create", Class: Write},
	{Name: "createIndexes", Class: Write},
	{Name: "createSearchIndexes", Class: Write},
	{Name: "delete", Class: Write, RetryableWrite: true},
	{Name: "delete of many", Class: Write, Why: "a statement may change several documents"},
	{Name: "distinct", Class: Read, RetryableRead: true},
	{Name: "drop", Class: Write},
	{Name: "dropDatabase", Class: Write},
	{Name: "dropIndexes", Class: Write},
	{Name: "dropSearchIndex", Class: Write},
	{Name: "endSessions", Class: Command, Why: "its errors are ignored"},
	{Name: "find", Class: Read, RetryableRead: true},
	{Name: "findAndModify", Class: Write, RetryableWrite: true},
	{Name: "getMore", Class: Read, Why: "the driver cannot know whether the cursor was advanced"},
	{Name: "insert", Class: Write, RetryableWrite: true},
	{Name: "killCursors", Class: Command, Why: "its errors are ignored"},
	{Name: "listCollections", Class: Read, RetryableRead: true},
	{Name: "listDatabases", Class: Read, RetryableRead: true},
	{Name: "listIndexes", Class: Read, RetryableRead: true},
	{Name: "mapReduce", Class: Read, Why: "it is not ended early when the socket closes"},
	{Name: "renameCollection", Class: Write},
	{Name: "runCommand", Class: Command, Why: "a generic command is not known to be a read"},
	{Name: "unacknowledged write", Class: Write, Why: "no reply says whether it succeeded"},
	{Name: "update", Class: Write, RetryableWrite: true},
	{Name: "update of many", Class: Write, Why: "a statement may change several documents"},
	{Name: "updateSearchIndex", Class: Write},
}

// Lookup gives the row of an operation. One that is not in the table is a
// generic command.
func Lookup(name string) Operation {
	i, found := slices.BinarySearchFunc(operationTable, name, func(o Operation, name string) int { return cmp.Compare(o.Name, name) })
	if found {
		return operationTable[i]
	}
	return Operation{Name: name, Class: Command, Why: "a generic command is not known to be a read"}
}

// Operations lists the table, sorted by name. The slice is the caller's own.
func Operations() []Operation { return slices.Clone(operationTable) }

// WriteStage reports whether a stage of an aggregation pipeline writes.
func WriteStage(name string) bool { return name == "$out" || name == "$merge" }
