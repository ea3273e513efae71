package retry

import "slices"

// Class determines which client option enables a retry after an overload error.
type Class uint8

// The classes. A Command is a generic command, neither a read nor a write.
const (
	Command Class = iota
	Read
	Write
)

// Operation holds the properties of an operation that the rules depend on.
type Operation struct {
	Name  string
	Class Class
	// RetryableRead and RetryableWrite are true for "Supported Read Operations" and "Supported Write Operations";
	// RetryableWrite also for commitTransaction and abortTransaction.
	RetryableRead, RetryableWrite bool
	// commitTransaction and abortTransaction, which are retried regardless of retryWrites
	EndsTransaction bool
	Why             string // the operation is never retried
}

// operationTable is sorted by name and never modified. Names are command names, with a suffix if only some uses of a
// command are retryable.
var operationTable = []Operation{
	{Name: "abortTransaction", Class: Write, RetryableWrite: true, EndsTransaction: true},
	{Name: "aggregate", Class: Read, RetryableRead: true},
	{Name: "aggregate with a write stage", Class: Write, Why: "it writes without a transaction number"},
	{Name: "bulkWrite", Class: Write, RetryableWrite: true},
	{Name: "bulkWrite with multi-document writes", Class: Write, Why: "a statement may change several documents"},
	{Name: "collMod", Class: Write},
	{Name: "commitTransaction", Class: Write, RetryableWrite: true, EndsTransaction: true},
	{Name: "count", Class: Read, RetryableRead: true},
	{Name: "create", Class: Write},
	{Name: "createIndexes", Class: Write},
	{Name: "createSearchIndexes", Class: Write},
	{Name: "delete", Class: Write, RetryableWrite: true},
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
	{Name: "mapReduce into a collection", Class: Write, Why: "it writes without a transaction number"},
	{Name: "multi-document delete", Class: Write, Why: "a statement may change several documents"},
	{Name: "multi-document update", Class: Write, Why: "a statement may change several documents"},
	{Name: "renameCollection", Class: Write},
	{Name: "runCommand", Class: Command, Why: genericCommand},
	{Name: "unacknowledged write", Class: Write, Why: "it has no reply"},
	{Name: "update", Class: Write, RetryableWrite: true},
	{Name: "updateSearchIndex", Class: Write},
}

// Lookup returns an operation by name. An operation that is not in the table is a generic command.
func Lookup(name string) Operation {
	if i := slices.IndexFunc(operationTable, func(o Operation) bool { return o.Name == name }); i >= 0 {
		return operationTable[i]
	}
	return Operation{Name: name, Class: Command, Why: genericCommand}
}

// Operations lists the operations, sorted by name. The caller may modify the slice.
func Operations() []Operation { return slices.Clone(operationTable) }

const genericCommand = "a generic command may not be a read"
