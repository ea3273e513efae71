// Package fault has the errors of commands: codes with their names and categories, and errors with codes.
package fault

import (
	_ "embed" // for errorcodes.txt
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Error codes of the embedded server, by the server's names where it has them.
const (
	InternalError                            int32 = 1
	BadValue                                 int32 = 2
	NoSuchKey                                int32 = 4
	FailedToParse                            int32 = 9
	UnsupportedFormat                        int32 = 12
	UserNotFound                             int32 = 11
	Unauthorized                             int32 = 13
	TypeMismatch                             int32 = 14
	Overflow                                 int32 = 15
	InvalidLength                            int32 = 16
	ProtocolError                            int32 = 17
	AuthenticationFailed                     int32 = 18
	IllegalOperation                         int32 = 20
	InvalidBSON                              int32 = 22
	AlreadyInitialized                       int32 = 23
	NamespaceNotFound                        int32 = 26
	IndexNotFound                            int32 = 27
	PathNotViable                            int32 = 28
	RoleNotFound                             int32 = 31
	CannotBackfillArray                      int32 = 34
	ConflictingUpdateOperators               int32 = 40
	CursorNotFound                           int32 = 43
	NoMatchingDocument                       int32 = 47
	NamespaceExists                          int32 = 48
	MaxTimeMSExpired                         int32 = 50
	DollarPrefixedFieldName                  int32 = 52
	InvalidIDField                           int32 = 53
	NotSingleValueField                      int32 = 54
	EmptyFieldName                           int32 = 56
	CommandNotFound                          int32 = 59
	ImmutableField                           int32 = 66
	WriteConcernTimeout                      int32 = 64
	CannotCreateIndex                        int32 = 67
	InvalidOptions                           int32 = 72
	InvalidNamespace                         int32 = 73
	NodeNotFound                             int32 = 74
	NoReplicationEnabled                     int32 = 76
	UnknownReplWriteConcern                  int32 = 79
	IndexOptionsConflict                     int32 = 85
	IndexKeySpecsConflict                    int32 = 86
	InvalidReplicaSetConfig                  int32 = 93
	NotYetInitialized                        int32 = 94
	NotSecondary                             int32 = 95
	OperationFailed                          int32 = 96
	UnsatisfiableWriteConcern                int32 = 100
	NotExactValueField                       int32 = 111
	WriteConflict                            int32 = 112
	CannotIndexParallelArrays                int32 = 171
	MergeStageNoMatchingDocument             int32 = 13113
	ConversionFailure                        int32 = 241
	ConflictingOperationInProgress           int32 = 117
	DocumentValidationFailure                int32 = 121
	NotAReplicaSet                           int32 = 123
	CommandFailed                            int32 = 125
	CappedPositionLost                       int32 = 136
	JSInterpreterFailure                     int32 = 139
	CursorInUse                              int32 = 143
	ExceededMemoryLimit                      int32 = 146
	ViewDepthLimitExceeded                   int32 = 165
	CommandNotSupportedOnView                int32 = 166
	OptionNotSupportedOnView                 int32 = 167
	InvalidPipelineOperator                  int32 = 168
	QueryPlanKilled                          int32 = 175
	ClientMetadataMissingField               int32 = 183
	ClientMetadataDocumentTooLarge           int32 = 185
	ClientMetadataAppNameTooLarge            int32 = 184
	ClientMetadataCannotBeMutated            int32 = 186
	InvalidIndexSpecificationOption          int32 = 197
	ClusterTimeFailsRateLimiter              int32 = 205
	InvalidUUID                              int32 = 207
	QueryFeatureNotAllowed                   int32 = 224
	TransactionTooOld                        int32 = 225
	IncompleteTransactionHistory             int32 = 217
	ShardNotFound                            int32 = 70
	CursorKilled                             int32 = 237
	IncompatibleCollationVersion             int32 = 161
	MaxStalenessOutOfRange                   int32 = 160
	NotImplemented                           int32 = 238
	SnapshotTooOld                           int32 = 239
	SnapshotUnavailable                      int32 = 246
	NoSuchTransaction                        int32 = 251
	TransactionCommitted                     int32 = 256
	InvalidResumeToken                       int32 = 260
	ExceededTimeLimit                        int32 = 262
	OperationNotSupportedInTransaction       int32 = 263
	FailPointSetFailed                       int32 = 266
	ChangeStreamFatalError                   int32 = 280
	ChangeStreamHistoryLost                  int32 = 286
	QueryExceededMemoryLimitNoDiskUseAllowed int32 = 292
	APIVersionError                          int32 = 322
	APIStrictError                           int32 = 323
	APIDeprecationError                      int32 = 324
	MechanismUnavailable                     int32 = 334
	APIMismatchError                         int32 = 347
	UnsupportedOpQueryCommand                int32 = 352
	LoadBalancerSupportMismatch              int32 = 354
	CannotConvertIndexToUnique               int32 = 359
	IngressRequestRateLimitExceeded          int32 = 462
	NotAnObject                              int32 = 10065 // no name
	NotWritablePrimary                       int32 = 10107
	BSONObjectTooLarge                       int32 = 10334
	CannotGrowDocumentInCappedNamespace      int32 = 10003
	DuplicateKey                             int32 = 11000
	Interrupted                              int32 = 11601
	InterruptedDueToReplStateChange          int32 = 11602
	PointOutOfRange                          int32 = 13027
	ExtraInfoMissing                         int32 = 13111
	StaleConfig                              int32 = 13388
	NotPrimaryNoSecondaryOk                  int32 = 13435
	NotPrimaryOrSecondary                    int32 = 13436
	SearchNotEnabled                         int32 = 31082
	NoExtraInfo                              int32 = 40671
	IDLFailedToParse                         int32 = 40414
	IDLDuplicateField                        int32 = 40413
	IDLUnknownField                          int32 = 40415
	NoDatabase                               int32 = 40571
	NotARetryableWriteCommand                int32 = 50768
	RoleAlreadyExists                        int32 = 51002
	UserAlreadyExists                        int32 = 51003
	ValueTooSmall                            int32 = 51024
	APIVersionRequired                       int32 = 498870
	APIVersionMissing                        int32 = 4886600
)

//go:embed errorcodes.txt
var errorCodesText string

// errorCode is a line of errorcodes.txt.
type errorCode struct {
	name       string         // "-" if it has no name
	categories map[string]int // and the wire versions from which on it is in them
	since      int            // wire version that introduced the name
	former     string         // name before wire version until
	until      int
}

var errorCodes = sync.OnceValue(func() map[int32]errorCode { return parseErrorCodes(errorCodesText) })

func parseErrorCodes(text string) map[int32]errorCode {
	out := map[int32]errorCode{}
	for code, words := range Table(text) {
		number, _ := strconv.ParseInt(code, 10, 32)
		e := errorCode{name: words[0], categories: map[string]int{}}
		for _, word := range words[1:] {
			if wire, ok := strings.CutPrefix(word, "since="); ok {
				e.since, _ = strconv.Atoi(wire)
			} else if former, wire, ok := strings.Cut(word, "<"); ok {
				e.former = former
				e.until, _ = strconv.Atoi(wire)
			} else {
				category, wire, _ := strings.Cut(word, "@")
				e.categories[category], _ = strconv.Atoi(wire)
			}
		}
		out[int32(number)] = e
	}
	return out
}

// latestWire is greater than every wire version.
const latestWire = math.MaxInt

// Name returns the name of an error code in the latest server version.
func Name(code int32) string { return NameIn(code, latestWire) }

// NameIn returns the name of an error code in a wire version.
func NameIn(code int32, wire int) string {
	e, known := errorCodes()[code]
	switch {
	case wire < e.until:
		return e.former
	case !known || e.name == "-" || wire < e.since:
		return fmt.Sprintf("Location%d", code)
	}
	return e.name
}

// Category is a category of error codes in the server's list.
type Category string

// The categories that the embedded server needs.
const (
	// Retriable errors have the label RetryableWriteError in retryable writes, and ResumableChangeStreamError in
	// change streams.
	Retriable Category = "Retriable"
	// NotPrimary errors of a replica set member include its topologyVersion.
	NotPrimary Category = "NotPrimary"
	// SystemOverloaded errors have the label SystemOverloadedError.
	SystemOverloaded Category = "SystemOverloaded"
	// Resumable errors have the label ResumableChangeStreamError in change streams, like retriable ones.
	Resumable Category = "Resumable"
	// NonResumable errors have the label NonResumableChangeStreamError in every command.
	NonResumable Category = "NonResumable"
	// CloseConnection errors close the connection.
	CloseConnection Category = "CloseConnection"
	// NeedsInfo errors contain further fields, without which a fail point cannot set them.
	NeedsInfo Category = "NeedsInfo"
	// Transient errors have the label TransientTransactionError in every command of a transaction. Before the commit
	// retriable errors have it, too.
	Transient Category = "Transient"
	// Interruption errors end the whole command, not only one of its statements.
	Interruption Category = "Interruption"
)

// Has reports whether a code is in the category.
func (c Category) Has(code int32) bool { return c.In(code, latestWire) }

// In reports whether a code is in the category, and exists in a wire version.
func (c Category) In(code int32, wire int) bool {
	e := errorCodes()[code]
	since, in := e.categories[string(c)]
	return in && wire >= max(e.since, since)
}

// Error is an error of a command. The dispatcher adds the labels that follow from the code (RetryableWriteError,
// TransientTransactionError) and topologyVersion.
type Error struct {
	Code    int32  // 0: the reply has neither code nor codeName
	Message string // errmsg
	Labels  []string
	Extra   bson.D // more top-level fields of the reply, after codeName
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a code. The server derives its name from its version.
func Errorf(code int32, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Within returns an error with the place where a server encountered it, as servers report errors of other parts.
func Within(where string, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	c := *e
	c.Message = where + " :: caused by :: " + e.Message
	return &c
}

// First keeps the first error of a parser.
type First struct{ Err error }

// Note keeps err if it is the first error.
func (f *First) Note(err error) {
	if f.Err == nil {
		f.Err = err
	}
}

// Fail notes an error with a code.
func (f *First) Fail(code int32, format string, args ...any) {
	f.Note(Errorf(code, format, args...))
}

// Refuse notes an error if a condition is true.
func (f *First) Refuse(when bool, code int32, format string, args ...any) {
	if when {
		f.Fail(code, format, args...)
	}
}
