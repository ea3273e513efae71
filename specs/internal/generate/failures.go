package main

import (
	"fmt"
	"strings"
)

// Code is a server error.
type Code struct {
	Number int
	Name   string
}

var (
	BadValue                           = Code{2, "BadValue"}
	HostUnreachable                    = Code{6, "HostUnreachable"}
	HostNotFound                       = Code{7, "HostNotFound"}
	FailedToParse                      = Code{9, "FailedToParse"}
	AuthenticationFailed               = Code{18, "AuthenticationFailed"}
	CursorNotFound                     = Code{43, "CursorNotFound"}
	MaxTimeMSExpired                   = Code{50, "MaxTimeMSExpired"}
	WriteConcernTimeout                = Code{64, "WriteConcernTimeout"}
	WriteConcernFailed                 = Code{64, "WriteConcernFailed"}
	ImmutableField                     = Code{66, "ImmutableField"}
	NetworkTimeout                     = Code{89, "NetworkTimeout"}
	ShutdownInProgress                 = Code{91, "ShutdownInProgress"}
	WriteConflict                      = Code{112, "WriteConflict"}
	FailedToSatisfyReadPreference      = Code{133, "FailedToSatisfyReadPreference"}
	ReadConcernMajorityNotAvailableYet = Code{134, "ReadConcernMajorityNotAvailableYet"}
	PrimarySteppedDown                 = Code{189, "PrimarySteppedDown"}
	RetryChangeStream                  = Code{234, "RetryChangeStream"}
	ExceededTimeLimit                  = Code{262, "ExceededTimeLimit"}
	limited                            = Code{462, "IngressRequestRateLimitExceeded"} // no other policy retries it
	SocketException                    = Code{9001, "SocketException"}
	NotWritablePrimary                 = Code{10107, "NotWritablePrimary"}
	DuplicateKey                       = Code{11000, "DuplicateKey"}
	InterruptedAtShutdown              = Code{11600, "InterruptedAtShutdown"}
	Interrupted                        = Code{11601, "Interrupted"}
	InterruptedDueToReplStateChange    = Code{11602, "InterruptedDueToReplStateChange"}
	NotPrimaryNoSecondaryOk            = Code{13435, "NotPrimaryNoSecondaryOk"}
	NotPrimaryOrSecondary              = Code{13436, "NotPrimaryOrSecondary"}
)

// Error labels.
const (
	noWrites                       = "NoWritesPerformed"
	retryable                      = "RetryableError"
	writable                       = "RetryableWriteError"
	overloaded                     = "SystemOverloadedError"
	TransientTransactionError      = "TransientTransactionError"
	UnknownTransactionCommitResult = "UnknownTransactionCommitResult"
)

// Closes is the data of failCommand for a network error.
const Closes = "closeConnection: true"

// ErrorCode is the data of failCommand for a server error.
func ErrorCode(c Code) string { return fmt.Sprintf("errorCode: %d", c.Number) }

// Labelled is the data of failCommand for a server error with exactly these labels. They replace those of
// the server (since 4.4).
func Labelled(c Code, labels ...string) string {
	return fmt.Sprintf("errorCode: %d, errorLabels: [ %s ]", c.Number, strings.Join(labels, ", "))
}

// WriteConcernError is the data of failCommand for a write concern error with the server's labels.
func WriteConcernError(c Code) string {
	return fmt.Sprintf("writeConcernError: { code: %d, errmsg: %q }", c.Number, c.Name)
}

// LabelledConcern is the data of failCommand for a write concern error ShutdownInProgress with only this
// label, or without labels if it is "".
func LabelledConcern(label string) string {
	return WriteConcernError(ShutdownInProgress) + ", errorLabels: [ " + label + " ]"
}

// Values of expectError.
const (
	AnyError      = "{ isError: true }"
	TimeoutError  = "{ isTimeoutError: true }"
	RaisedNetwork = "{ isClientError: true }"
)

// RaisedCode expects a server error with a code.
func RaisedCode(c Code) string { return RaisedLabels(c, "", "") }

// RaisedLabels is RaisedCode WithLabels.
func RaisedLabels(c Code, contain, omit string) string {
	return WithLabels(fmt.Sprintf("{ isClientError: false, errorCode: %d }", c.Number), contain, omit)
}

// WithLabels adds errorLabelsContain and errorLabelsOmit to an expected error. Labels are separated by
// commas; "" adds nothing.
func WithLabels(raises, contain, omit string) string {
	if contain != "" {
		raises = Merge(raises, "errorLabelsContain: [ "+contain+" ]")
	}
	if omit != "" {
		raises = Merge(raises, "errorLabelsOmit: [ "+omit+" ]")
	}
	return raises
}

// FailPoint makes commands fail, with a mode such as Times(1) or Always.
func FailPoint(commands, mode, data string) string {
	return SetFailPoint("failCommand", mode, fmt.Sprintf("failCommands: [ %s ], %s", commands, data))
}

// SetFailPoint sets any fail point on the server of the client setup.
func SetFailPoint(name, mode, data string) string {
	if data != "" {
		data = ", data: { " + data + " }"
	}
	return Special("failPoint", fmt.Sprintf("client: setup, failPoint: { configureFailPoint: %s, mode: %s%s }", name, mode, data))
}

// FailHello closes new connections of the client with this appName during hello.
func FailHello(app, mode string) string {
	return FailPoint("hello, isMaster", mode, "appName: "+app+", "+Closes)
}

// TargetedFailPoint sets failCommand on the mongos to which the session is pinned.
func TargetedFailPoint(command, mode, data string) string {
	return Special("targetedFailPoint", fmt.Sprintf("session: session, failPoint: { configureFailPoint: failCommand, mode: %s, data: "+
		"{ failCommands: [ %s ], %s } }", mode, command, data))
}

// Times is the mode of a fail point that is active n times.
func Times(n int) string { return fmt.Sprintf("{ times: %d }", n) }

// Modes of fail points.
const (
	Always    = "alwaysOn"
	SkipFirst = "{ skip: 1 }"
)

// TransactionalWrite is a fail point in the storage engine of a replica set. It applies retryable writes
// and loses their replies, or with BeforeCommit fails them without applying them.
const (
	TransactionalWrite = "onPrimaryTransactionalWrite"
	BeforeCommit       = "failBeforeCommitExceptionCode: 1"
)

// Sequence makes each attempt fail in its own way, on any server. Elements are the data of failCommand
// without failCommands, LostReply, or "" for a success. Only utr's embedded deployment has this fail
// point, which Sequences requires.
func Sequence(commands string, elements ...string) string {
	list := make([]string, len(elements))
	for i, e := range elements {
		list[i] = strings.ReplaceAll("{ "+e+" }", "{  }", "{}")
	}
	return SetFailPoint("failCommandSequence", Always, fmt.Sprintf("failCommands: [ %s ], sequence: [ %s ]", commands, strings.Join(list, ", ")))
}

// LostReply runs a command and loses its reply.
const LostReply = "loseReply: true"
