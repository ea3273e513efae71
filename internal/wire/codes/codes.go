// Package codes names the error codes of servers and the error labels of servers and drivers that clients of this
// module depend on. Package embedded/internal/fault has the codes that a server returns, and how versions name them.
package codes

// Error codes by the server's names.
const (
	BadValue                           = 2
	HostUnreachable                    = 6
	HostNotFound                       = 7
	FailedToParse                      = 9
	Unauthorized                       = 13
	Overflow                           = 15
	AuthenticationFailed               = 18
	IllegalOperation                   = 20
	InvalidBSON                        = 22
	AlreadyInitialized                 = 23
	LockTimeout                        = 24
	NamespaceNotFound                  = 26
	CursorNotFound                     = 43
	NamespaceExists                    = 48
	MaxTimeMSExpired                   = 50
	CommandNotFound                    = 59
	StaleShardVersion                  = 63
	WriteConcernFailed                 = 64
	ImmutableField                     = 66
	InvalidOptions                     = 72
	NoReplicationEnabled               = 76
	UnknownReplWriteConcern            = 79
	NetworkTimeout                     = 89
	ShutdownInProgress                 = 91
	InvalidReplicaSetConfig            = 93
	UnsatisfiableWriteConcern          = 100
	WriteConflict                      = 112
	FailedToSatisfyReadPreference      = 133
	ReadConcernMajorityNotAvailableYet = 134
	StaleEpoch                         = 150
	PrimarySteppedDown                 = 189
	KeyNotFound                        = 211
	RetryChangeStream                  = 234
	NoSuchTransaction                  = 251
	ExceededTimeLimit                  = 262
	AdmissionQueueOverflow             = 433
	IngressRequestRateLimitExceeded    = 462
	AtlasError                         = 8000
	SocketException                    = 9001
	NotWritablePrimary                 = 10107
	BSONObjectTooLarge                 = 10334
	DuplicateKey                       = 11000
	InterruptedAtShutdown              = 11600
	Interrupted                        = 11601
	InterruptedDueToReplStateChange    = 11602
	StaleConfig                        = 13388
	NotPrimaryNoSecondaryOk            = 13435
	NotPrimaryOrSecondary              = 13436
	UserAlreadyExists                  = 51003
)

// Error labels.
const (
	NoWritesPerformed              = "NoWritesPerformed"
	ResumableChangeStreamError     = "ResumableChangeStreamError"
	RetryableError                 = "RetryableError"
	RetryableWriteError            = "RetryableWriteError"
	SystemOverloadedError          = "SystemOverloadedError"
	TransientTransactionError      = "TransientTransactionError"
	UnknownTransactionCommitResult = "UnknownTransactionCommitResult"
)
