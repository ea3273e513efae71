package command

import "fmt"

// The error codes that commands here answer with, by the server's names where it
// has one.
const (
	CodeInternalError                            int32 = 1
	CodeBadValue                                 int32 = 2
	CodeFailedToParse                            int32 = 9
	CodeUserNotFound                             int32 = 11
	CodeUnauthorized                             int32 = 13
	CodeTypeMismatch                             int32 = 14
	CodeOverflow                                 int32 = 15
	CodeInvalidLength                            int32 = 16
	CodeProtocolError                            int32 = 17
	CodeAuthenticationFailed                     int32 = 18
	CodeIllegalOperation                         int32 = 20
	CodeInvalidBSON                              int32 = 22
	CodeAlreadyInitialized                       int32 = 23
	CodeNamespaceNotFound                        int32 = 26
	CodeIndexNotFound                            int32 = 27
	CodePathNotViable                            int32 = 28
	CodeCannotBackfillArray                      int32 = 34
	CodeConflictingUpdateOperators               int32 = 40
	CodeCursorNotFound                           int32 = 43
	CodeNoMatchingDocument                       int32 = 47
	CodeNamespaceExists                          int32 = 48
	CodeMaxTimeMSExpired                         int32 = 50
	CodeDollarPrefixedFieldName                  int32 = 52
	CodeInvalidIdField                           int32 = 53
	CodeEmptyFieldName                           int32 = 56
	CodeCommandNotFound                          int32 = 59
	CodeWriteConcernTimeout                      int32 = 64
	CodeImmutableField                           int32 = 66
	CodeCannotCreateIndex                        int32 = 67
	CodeInvalidOptions                           int32 = 72
	CodeInvalidNamespace                         int32 = 73
	CodeNodeNotFound                             int32 = 74
	CodeNoReplicationEnabled                     int32 = 76
	CodeUnknownReplWriteConcern                  int32 = 79
	CodeIndexOptionsConflict                     int32 = 85
	CodeIndexKeySpecsConflict                    int32 = 86
	CodeInvalidReplicaSetConfig                  int32 = 93
	CodeNotYetInitialized                        int32 = 94
	CodeNotSecondary                             int32 = 95
	CodeOperationFailed                          int32 = 96
	CodeUnsatisfiableWriteConcern                int32 = 100
	CodeNewReplicaSetConfigurationIncompatible   int32 = 103
	CodeNodeNotElectable                         int32 = 104
	CodeWriteConflict                            int32 = 112
	CodeConflictingOperationInProgress           int32 = 117
	CodeDocumentValidationFailure                int32 = 121
	CodeNotAReplicaSet                           int32 = 123
	CodeCommandFailed                            int32 = 125
	CodeJSInterpreterFailure                     int32 = 139
	CodeCursorInUse                              int32 = 143
	CodeExceededMemoryLimit                      int32 = 146
	CodeViewDepthLimitExceeded                   int32 = 165
	CodeCommandNotSupportedOnView                int32 = 166
	CodeOptionNotSupportedOnView                 int32 = 167
	CodeInvalidPipelineOperator                  int32 = 168
	CodeQueryPlanKilled                          int32 = 175
	CodeClientMetadataAppNameTooLarge            int32 = 184
	CodeClientMetadataCannotBeMutated            int32 = 186
	CodeInvalidIndexSpecificationOption          int32 = 197
	CodeClusterTimeFailsRateLimiter              int32 = 205
	CodeQueryFeatureNotAllowed                   int32 = 224
	CodeTransactionTooOld                        int32 = 225
	CodeCursorKilled                             int32 = 237
	CodeNotImplemented                           int32 = 238
	CodeSnapshotTooOld                           int32 = 239
	CodeSnapshotUnavailable                      int32 = 246
	CodeNoSuchTransaction                        int32 = 251
	CodeTransactionCommitted                     int32 = 256
	CodeInvalidResumeToken                       int32 = 260
	CodeExceededTimeLimit                        int32 = 262
	CodeOperationNotSupportedInTransaction       int32 = 263
	CodeChangeStreamFatalError                   int32 = 280
	CodeChangeStreamHistoryLost                  int32 = 286
	CodeQueryExceededMemoryLimitNoDiskUseAllowed int32 = 292
	CodeAPIVersionError                          int32 = 322
	CodeAPIStrictError                           int32 = 323
	CodeAPIDeprecationError                      int32 = 324
	CodeMechanismUnavailable                     int32 = 334
	CodeUnsupportedOpQueryCommand                int32 = 352
	CodeLoadBalancerSupportMismatch              int32 = 354
	CodeCannotConvertIndexToUnique               int32 = 359
	CodeIngressRequestRateLimitExceeded          int32 = 462
	CodeNotWritablePrimary                       int32 = 10107
	CodeBSONObjectTooLarge                       int32 = 10334
	CodeDuplicateKey                             int32 = 11000
	CodeInterrupted                              int32 = 11601
	CodeInterruptedDueToReplStateChange          int32 = 11602
	CodeExtraInfoMissing                         int32 = 13111
	CodeMergeStageNoMatchingDocument             int32 = 13113
	CodeStaleConfig                              int32 = 13388
	CodeNotPrimaryNoSecondaryOk                  int32 = 13435
	CodeNotPrimaryOrSecondary                    int32 = 13436
	CodeSearchNotEnabled                         int32 = 31082
	CodeIDLFailedToParse                         int32 = 40414
	CodeIDLUnknownField                          int32 = 40415
	CodeNoDatabase                               int32 = 40571
	CodeNotARetryableWriteCommand                int32 = 50768
	CodeUserAlreadyExists                        int32 = 51003
	CodeValueTooSmall                            int32 = 51024
	CodeAPIVersionRequired                       int32 = 498870
	CodeAPIVersionMissing                        int32 = 4886600
)

// codeNames are the server's names of error codes, in its latest versions; a
// code that is not here has none.
var codeNames = map[int32]string{
	1: "InternalError", 2: "BadValue", 4: "NoSuchKey", 5: "GraphContainsCycle", 6: "HostUnreachable",
	7: "HostNotFound", 8: "UnknownError", 9: "FailedToParse", 10: "CannotMutateObject", 11: "UserNotFound",
	12: "UnsupportedFormat", 13: "Unauthorized", 14: "TypeMismatch", 15: "Overflow", 16: "InvalidLength",
	17: "ProtocolError", 18: "AuthenticationFailed", 19: "CannotReuseObject", 20: "IllegalOperation",
	21: "EmptyArrayOperation", 22: "InvalidBSON", 23: "AlreadyInitialized", 24: "LockTimeout",
	25: "RemoteValidationError", 26: "NamespaceNotFound", 27: "IndexNotFound", 28: "PathNotViable",
	29: "NonExistentPath", 30: "InvalidPath", 31: "RoleNotFound", 32: "RolesNotRelated", 33: "PrivilegeNotFound",
	34: "CannotBackfillArray", 35: "UserModificationFailed", 36: "RemoteChangeDetected", 37: "FileRenameFailed",
	38: "FileNotOpen", 39: "FileStreamFailed", 40: "ConflictingUpdateOperators", 41: "FileAlreadyOpen",
	42: "LogWriteFailed", 43: "CursorNotFound", 45: "UserDataInconsistent", 46: "LockBusy",
	47: "NoMatchingDocument", 48: "NamespaceExists", 49: "InvalidRoleModification", 50: "MaxTimeMSExpired",
	51: "ManualInterventionRequired", 52: "DollarPrefixedFieldName", 53: "InvalidIdField",
	54: "NotSingleValueField", 55: "InvalidDBRef", 56: "EmptyFieldName", 57: "DottedFieldName",
	58: "RoleModificationFailed", 59: "CommandNotFound", 61: "ShardKeyNotFound", 62: "OplogOperationUnsupported",
	63: "StaleShardVersion", 64: "WriteConcernTimeout", 65: "MultipleErrorsOccurred", 66: "ImmutableField",
	67: "CannotCreateIndex", 68: "IndexAlreadyExists", 69: "AuthSchemaIncompatible", 70: "ShardNotFound",
	71: "ReplicaSetNotFound", 72: "InvalidOptions", 73: "InvalidNamespace", 74: "NodeNotFound",
	75: "WriteConcernLegacyOK", 76: "NoReplicationEnabled", 77: "OperationIncomplete",
	78: "CommandResultSchemaViolation", 79: "UnknownReplWriteConcern", 80: "RoleDataInconsistent",
	81: "NoMatchParseContext", 82: "NoProgressMade", 83: "RemoteResultsUnavailable", 85: "IndexOptionsConflict",
	86: "IndexKeySpecsConflict", 87: "CannotSplit", 89: "NetworkTimeout", 90: "CallbackCanceled",
	91: "ShutdownInProgress", 92: "SecondaryAheadOfPrimary", 93: "InvalidReplicaSetConfig",
	94: "NotYetInitialized", 95: "NotSecondary", 96: "OperationFailed", 97: "NoProjectionFound",
	98: "DBPathInUse", 100: "UnsatisfiableWriteConcern", 101: "OutdatedClient", 102: "IncompatibleAuditMetadata",
	103: "NewReplicaSetConfigurationIncompatible", 104: "NodeNotElectable", 105: "IncompatibleShardingMetadata",
	106: "DistributedClockSkewed", 107: "LockFailed", 108: "InconsistentReplicaSetNames",
	109: "ConfigurationInProgress", 110: "CannotInitializeNodeWithData", 111: "NotExactValueField",
	112: "WriteConflict", 113: "InitialSyncFailure", 114: "InitialSyncOplogSourceMissing",
	115: "CommandNotSupported", 116: "DocTooLargeForCapped", 117: "ConflictingOperationInProgress",
	118: "NamespaceNotSharded", 119: "InvalidSyncSource", 120: "OplogStartMissing",
	121: "DocumentValidationFailure", 123: "NotAReplicaSet", 124: "IncompatibleElectionProtocol",
	125: "CommandFailed", 126: "RPCProtocolNegotiationFailed", 127: "UnrecoverableRollbackError",
	128: "LockNotFound", 129: "LockStateChangeFailed", 130: "SymbolNotFound",
	133: "FailedToSatisfyReadPreference", 134: "ReadConcernMajorityNotAvailableYet", 135: "StaleTerm",
	136: "CappedPositionLost", 137: "IncompatibleShardingConfigVersion", 138: "RemoteOplogStale",
	139: "JSInterpreterFailure", 140: "InvalidSSLConfiguration", 141: "SSLHandshakeFailed",
	142: "JSUncatchableError", 143: "CursorInUse", 144: "IncompatibleCatalogManager",
	145: "PooledConnectionsDropped", 146: "ExceededMemoryLimit", 147: "ZLibError",
	148: "ReadConcernMajorityNotEnabled", 149: "NoConfigPrimary", 150: "StaleEpoch",
	151: "OperationCannotBeBatched", 152: "OplogOutOfOrder", 153: "ChunkTooBig",
	154: "InconsistentShardIdentity", 155: "CannotApplyOplogWhilePrimary", 157: "CanRepairToDowngrade",
	158: "MustUpgrade", 159: "DurationOverflow", 160: "MaxStalenessOutOfRange",
	161: "IncompatibleCollationVersion", 162: "CollectionIsEmpty", 163: "ZoneStillInUse",
	164: "InitialSyncActive", 165: "ViewDepthLimitExceeded", 166: "CommandNotSupportedOnView",
	167: "OptionNotSupportedOnView", 168: "InvalidPipelineOperator",
	169: "CommandOnShardedViewNotSupportedOnMongod", 170: "TooManyMatchingDocuments",
	171: "CannotIndexParallelArrays", 172: "TransportSessionClosed", 173: "TransportSessionNotFound",
	174: "TransportSessionUnknown", 175: "QueryPlanKilled", 176: "FileOpenFailed", 177: "ZoneNotFound",
	178: "RangeOverlapConflict", 181: "AmbiguousIndexKeyPattern", 182: "InvalidViewDefinition",
	183: "ClientMetadataMissingField", 184: "ClientMetadataAppNameTooLarge",
	185: "ClientMetadataDocumentTooLarge", 186: "ClientMetadataCannotBeMutated",
	187: "LinearizableReadConcernError", 188: "IncompatibleServerVersion", 189: "PrimarySteppedDown",
	190: "MasterSlaveConnectionFailure", 192: "FailPointEnabled", 194: "BalancerInterrupted",
	195: "ViewPipelineMaxSizeExceeded", 197: "InvalidIndexSpecificationOption", 199: "ReplicaSetMonitorRemoved",
	200: "ChunkRangeCleanupPending", 201: "CannotBuildIndexKeys", 202: "NetworkInterfaceExceededTimeLimit",
	203: "ShardingStateNotInitialized", 204: "TimeProofMismatch", 205: "ClusterTimeFailsRateLimiter",
	206: "NoSuchSession", 207: "InvalidUUID", 208: "TooManyLocks", 209: "StaleClusterTime",
	210: "CannotVerifyAndSignLogicalTime", 211: "KeyNotFound", 212: "IncompatibleRollbackAlgorithm",
	213: "DuplicateSession", 214: "AuthenticationRestrictionUnmet", 215: "DatabaseDropPending",
	216: "ElectionInProgress", 217: "IncompleteTransactionHistory", 218: "UpdateOperationFailed",
	219: "FTDCPathNotSet", 220: "FTDCPathAlreadySet", 221: "IndexModified", 222: "CloseChangeStream",
	223: "IllegalOpMsgFlag", 224: "QueryFeatureNotAllowed", 225: "TransactionTooOld", 226: "AtomicityFailure",
	227: "CannotImplicitlyCreateCollection", 228: "SessionTransferIncomplete", 229: "MustDowngrade",
	230: "DNSHostNotFound", 231: "DNSProtocolError", 232: "MaxSubPipelineDepthExceeded",
	233: "TooManyDocumentSequences", 234: "RetryChangeStream", 235: "InternalErrorNotSupported",
	236: "ForTestingErrorExtraInfo", 237: "CursorKilled", 238: "NotImplemented", 239: "SnapshotTooOld",
	240: "DNSRecordTypeMismatch", 241: "ConversionFailure", 242: "CannotCreateCollection",
	243: "IncompatibleWithUpgradedServer", 245: "BrokenPromise", 246: "SnapshotUnavailable",
	247: "ProducerConsumerQueueBatchTooLarge", 248: "ProducerConsumerQueueEndClosed", 249: "StaleDbVersion",
	250: "StaleChunkHistory", 251: "NoSuchTransaction", 252: "ReentrancyNotAllowed",
	256: "TransactionCommitted", 257: "TransactionTooLarge", 258: "UnknownFeatureCompatibilityVersion",
	259: "KeyedExecutorRetry", 260: "InvalidResumeToken", 261: "TooManyLogicalSessions",
	262: "ExceededTimeLimit", 263: "OperationNotSupportedInTransaction", 264: "TooManyFilesOpen",
	265: "OrphanedRangeCleanUpFailed", 266: "FailPointSetFailed", 267: "PreparedTransactionInProgress",
	268: "CannotBackup", 269: "DataModifiedByRepair", 270: "RepairedReplicaSetNode",
	271: "JSInterpreterFailureWithStack", 272: "MigrationConflict", 276: "IndexBuildAborted",
	277: "AlarmAlreadyFulfilled", 278: "UnsatisfiableCommitQuorum", 279: "ClientDisconnect",
	280: "ChangeStreamFatalError", 283: "WouldChangeOwningShard", 285: "IndexBuildAlreadyInProgress",
	286: "ChangeStreamHistoryLost", 288: "ChecksumMismatch", 290: "TransactionExceededLifetimeLimitSeconds",
	291: "NoQueryExecutionPlans", 292: "QueryExceededMemoryLimitNoDiskUseAllowed", 293: "InvalidSeedList",
	294: "InvalidTopologyType", 295: "InvalidHeartBeatFrequency", 296: "TopologySetNameRequired",
	298: "InvalidServerType", 299: "OCSPCertificateStatusRevoked", 301: "DataCorruptionDetected",
	302: "OCSPCertificateStatusUnknown", 303: "SplitHorizonChange", 308: "CurrentConfigNotCommittedYet",
	309: "ExhaustCommandFinished", 310: "PeriodicJobIsStopped", 313: "ResumableRangeDeleterDisabled",
	314: "ObjectIsBusy", 317: "ConnectionPoolExpired", 319: "MovePrimaryInProgress", 322: "APIVersionError",
	323: "APIStrictError", 324: "APIDeprecationError", 332: "CannotDowngrade", 334: "MechanismUnavailable",
	338: "ReshardCollectionInProgress", 339: "NoSuchReshardCollection", 340: "ReshardCollectionCommitted",
	341: "ReshardCollectionAborted", 344: "AuditingNotEnabled", 346: "ChangeStreamInvalidated",
	347: "APIMismatchError", 348: "ChangeStreamTopologyChange", 351: "ChangeStreamStartAfterInvalidate",
	352: "UnsupportedOpQueryCommand", 354: "LoadBalancerSupportMismatch", 357: "InvalidBSONType",
	358: "InternalTransactionNotSupported", 359: "CannotConvertIndexToUnique", 361: "CollectionUUIDMismatch",
	363: "RetryableTransactionInProgress", 365: "TemporarilyUnavailable", 371: "UserWritesBlocked",
	376: "ChangeStreamNotEnabled", 378: "NonConformantBSON", 384: "ConnectionError", 388: "TransactionTooLargeForCache",
	391: "ReauthenticationRequired", 402: "ResourceExhausted", 403: "UnsupportedShardingEventNotification",
	407: "PooledConnectionAcquisitionExceededTimeLimit", 411: "QueryRejectedBySettings",
	433: "AdmissionQueueOverflow", 449: "RateLimitExceeded", 450: "PooledConnectionAcquisitionRejected",
	462: "IngressRequestRateLimitExceeded", 9001: "SocketException", 10003: "CannotGrowDocumentInCappedNamespace",
	10107: "NotWritablePrimary", 10334: "BSONObjectTooLarge", 11000: "DuplicateKey",
	11600: "InterruptedAtShutdown", 11601: "Interrupted", 11602: "InterruptedDueToReplStateChange",
	12586: "BackgroundOperationInProgressForDatabase", 12587: "BackgroundOperationInProgressForNamespace",
	13113: "MergeStageNoMatchingDocument", 13297: "DatabaseDifferCase", 13388: "StaleConfig",
	13435: "NotPrimaryNoSecondaryOk", 13436: "NotPrimaryOrSecondary", 14031: "OutOfDiskSpace",
	28769: "NamespaceCannotBeSharded", 31082: "SearchNotEnabled", 40413: "IDLDuplicateField",
	40414: "IDLFailedToParse", 40415: "IDLUnknownField", 46841: "ClientMarkedKilled",
	50768: "NotARetryableWriteCommand",
}

// CodeName is the server's name of an error code, as its latest versions have
// it.
func CodeName(code int32) string {
	if n, ok := codeNames[code]; ok {
		return n
	}
	return Unnamed(code)
}

// Unnamed is what a code without a name is called.
func Unnamed(code int32) string { return fmt.Sprintf("Location%d", code) }

// Errorf is an Error of a code. Its name is left to the server, whose version
// decides it.
func Errorf(code int32, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
