package command

import (
	"fmt"
	"maps"
)

// codeNames are the server's names of error codes; a code that is not here
// is named LocationN.
var codeNames = map[int32]string{
	1: "InternalError", 2: "BadValue", 4: "NoSuchKey", 5: "GraphContainsCycle",
	6: "HostUnreachable", 7: "HostNotFound", 8: "UnknownError", 9: "FailedToParse",
	10: "CannotMutateObject", 11: "UserNotFound", 12: "UnsupportedFormat", 13: "Unauthorized",
	14: "TypeMismatch", 15: "Overflow", 16: "InvalidLength", 17: "ProtocolError",
	18: "AuthenticationFailed", 20: "IllegalOperation", 22: "InvalidBSON", 23: "AlreadyInitialized",
	24: "LockTimeout", 26: "NamespaceNotFound", 27: "IndexNotFound", 28: "PathNotViable",
	31: "RoleNotFound", 34: "CannotBackfillArray", 38: "FileNotOpen", 40: "ConflictingUpdateOperators",
	43: "CursorNotFound", 45: "CollectionIsEmpty", 48: "NamespaceExists",
	50: "MaxTimeMSExpired", 51: "ManualInterventionRequired", 52: "DollarPrefixedFieldName",
	53: "InvalidIdField", 54: "NotSingleValueField", 55: "InvalidDBRef", 56: "EmptyFieldName",
	57: "DottedFieldName", 59: "CommandNotFound", 61: "ShardKeyNotFound", 62: "OplogOperationUnsupported",
	63: "StaleShardVersion", 64: "WriteConcernFailed", 65: "MultipleErrorsOccurred", 66: "ImmutableField",
	67: "CannotCreateIndex", 68: "IndexAlreadyExists", 69: "AuthSchemaIncompatible", 70: "ShardNotFound",
	71: "ReplicaSetNotFound", 72: "InvalidOptions", 73: "InvalidNamespace", 74: "NodeNotFound",
	75: "WriteConcernLegacyOK", 76: "NoReplicationEnabled", 78: "CommandResultSchemaViolation", 79: "UnknownReplWriteConcern",
	85: "IndexOptionsConflict", 86: "IndexKeySpecsConflict",
	88: "ServiceNotAvailable", 89: "NetworkTimeout", 91: "ShutdownInProgress", 94: "NotYetInitialized",
	96: "OperationFailed", 97: "NoProjectionFound", 95: "NotSecondary", 100: "UnsatisfiableWriteConcern",
	103: "NewReplicaSetConfigurationIncompatible", 112: "WriteConflict",
	115: "CommandNotSupported", 117: "ConflictingOperationInProgress", 118: "NamespaceNotSharded",
	121: "DocumentValidationFailure", 123: "NotAReplicaSet",
	124: "IncompatibleElectionProtocol", 125: "CommandFailed", 126: "RPCProtocolNegotiationFailed", 133: "FailedToSatisfyReadPreference",
	134: "ReadConcernMajorityNotAvailableYet", 136: "CappedPositionLost",
	141: "InvalidSSLConfiguration", 139: "JSInterpreterFailure", 146: "ExceededMemoryLimit", 148: "ReadConcernMajorityNotEnabled", 150: "StaleEpoch", 165: "ViewDepthLimitExceeded",
	166: "CommandNotSupportedOnView", 167: "OptionNotSupportedOnView", 168: "InvalidPipelineOperator",
	169: "CommandOnShardedViewNotSupportedOnMongod", 175: "QueryPlanKilled", 180: "DurationOverflow", 182: "InvalidViewDefinition",
	189: "PrimarySteppedDown",
	197: "InvalidIndexSpecificationOption", 202: "NetworkInterfaceExceededTimeLimit", 211: "KeyNotFound",
	217: "IncompleteTransactionHistory", 215: "DatabaseDropPending", 222: "CloseChangeStream", 225: "TransactionTooOld",
	234: "RetryChangeStream", 237: "CursorKilled", 239: "SnapshotTooOld",
	244: "TransactionAborted", 241: "ConversionFailure", 246: "SnapshotUnavailable",
	251: "NoSuchTransaction", 256: "TransactionCommitted", 257: "TransactionTooLarge",
	258: "UnknownFeatureCompatibilityVersion", 260: "InvalidResumeToken", 261: "TooManyLogicalSessions", 262: "ExceededTimeLimit",
	263: "OperationNotSupportedInTransaction", 267: "PreparedTransactionInProgress",
	280: "ChangeStreamFatalError",
	286: "ChangeStreamHistoryLost", 290: "TransactionExceededLifetimeLimitSeconds", 291: "NoQueryExecutionPlans", 292: "QueryExceededMemoryLimitNoDiskUseAllowed",
	303: "StaleChunkHistory", 314: "ObjectIsBusy", 322: "APIVersionError", 323: "APIStrictError",
	324: "APIDeprecationError", 352: "UnsupportedOpQueryCommand", 357: "TransactionAPIMustRetryTransaction",
	358: "TransactionAPIMustRetryCommit",

	9001: "SocketException", 10003: "CannotGrowDocumentInCappedNamespace", 10058: "LegacyDuplicateKey", 10107: "NotWritablePrimary",
	10334: "BSONObjectTooLarge", 11000: "DuplicateKey", 11600: "InterruptedAtShutdown", 11601: "Interrupted",
	11602: "InterruptedDueToReplStateChange", 13297: "DatabaseDifferCase", 13388: "StaleConfig", 13435: "NotPrimaryNoSecondaryOk",
	13436: "NotPrimaryOrSecondary", 14031: "OutOfDiskSpace", 17280: "KeyTooLong", 46841: "ClientMarkedKilled",
}

// CodeNames is a copy of the table of names by code.
func CodeNames() map[int32]string { return maps.Clone(codeNames) }

// CodeName is the server's name of an error code, and LocationN for a code
// without one.
func CodeName(code int32) string {
	if n, ok := codeNames[code]; ok {
		return n
	}
	return fmt.Sprintf("Location%d", code)
}

// Errorf is an Error of a code, with the code's name.
func Errorf(code int32, format string, args ...any) *Error {
	return &Error{Code: code, Name: CodeName(code), Message: fmt.Sprintf(format, args...)}
}
