// Package codes names error codes of servers.
package codes

// Error codes by the server's names.
const (
	BadValue                           = 2
	HostUnreachable                    = 6
	HostNotFound                       = 7
	Overflow                           = 15
	IllegalOperation                   = 20
	InvalidBSON                        = 22
	LockTimeout                        = 24
	NamespaceNotFound                  = 26
	CursorNotFound                     = 43
	MaxTimeMSExpired                   = 50
	CommandNotFound                    = 59
	StaleShardVersion                  = 63
	WriteConcernFailed                 = 64
	InvalidOptions                     = 72
	UnknownReplWriteConcern            = 79
	NetworkTimeout                     = 89
	ShutdownInProgress                 = 91
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
	InterruptedAtShutdown              = 11600
	InterruptedDueToReplStateChange    = 11602
	StaleConfig                        = 13388
	NotPrimaryNoSecondaryOk            = 13435
	NotPrimaryOrSecondary              = 13436
)
