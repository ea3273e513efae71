package command

import (
	_ "embed" // for errorcodes.txt
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Error codes of the embedded server, by the server's names where it has them.
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
	CodeFailPointSetFailed                       int32 = 266
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

//go:embed errorcodes.txt
var errorCodesText string

// errorCode is a line of errorcodes.txt.
type errorCode struct {
	name       string // "-" if it has no name
	categories []string
	since      int    // wire version that introduced the name
	former     string // name before wire version until
	until      int
}

var errorCodes = parseErrorCodes(errorCodesText)

func parseErrorCodes(text string) map[int32]errorCode {
	out := map[int32]errorCode{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		number, _ := strconv.ParseInt(words[0], 10, 32)
		e := errorCode{name: words[1]}
		for _, word := range words[2:] {
			if wire, ok := strings.CutPrefix(word, "since="); ok {
				e.since, _ = strconv.Atoi(wire)
			} else if former, wire, ok := strings.Cut(word, "<"); ok {
				e.former = former
				e.until, _ = strconv.Atoi(wire)
			} else {
				e.categories = append(e.categories, word)
			}
		}
		out[int32(number)] = e
	}
	return out
}

// latestWire is greater than every wire version.
const latestWire = math.MaxInt

// CodeName returns the name of an error code in the latest server version.
func CodeName(code int32) string { return CodeNameIn(code, latestWire) }

// CodeNameIn returns the name of an error code in a wire version.
func CodeNameIn(code int32, wire int) string {
	e, known := errorCodes[code]
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
	e := errorCodes[code]
	return wire >= e.since && slices.Contains(e.categories, string(c))
}

// Errorf returns an Error with a code. The server derives its name, which depends on the version.
func Errorf(code int32, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// FirstError keeps the first error of a parser.
type FirstError struct{ Err error }

// Note keeps err if it is the first error.
func (f *FirstError) Note(err error) {
	if f.Err == nil {
		f.Err = err
	}
}

// Fail notes an error with a code.
func (f *FirstError) Fail(code int32, format string, args ...any) {
	f.Note(Errorf(code, format, args...))
}

// Refuse notes an error if a condition is true.
func (f *FirstError) Refuse(when bool, code int32, format string, args ...any) {
	if when {
		f.Fail(code, format, args...)
	}
}
