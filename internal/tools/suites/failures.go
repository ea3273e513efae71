package main

import "github.com/unified-test-runner/utr/internal/wire/codes"

// code is a server error.
type code struct {
	Number int
	Name   string
}

var (
	badValue                           = code{codes.BadValue, "BadValue"}
	hostUnreachable                    = code{codes.HostUnreachable, "HostUnreachable"}
	hostNotFound                       = code{codes.HostNotFound, "HostNotFound"}
	failedToParse                      = code{codes.FailedToParse, "FailedToParse"}
	authenticationFailed               = code{codes.AuthenticationFailed, "AuthenticationFailed"}
	cursorNotFound                     = code{codes.CursorNotFound, "CursorNotFound"}
	maxTimeMSExpired                   = code{codes.MaxTimeMSExpired, "MaxTimeMSExpired"}
	writeConcernTimeout                = code{codes.WriteConcernFailed, "WriteConcernTimeout"}
	writeConcernFailed                 = code{codes.WriteConcernFailed, "WriteConcernFailed"}
	immutableField                     = code{codes.ImmutableField, "ImmutableField"}
	networkTimeout                     = code{codes.NetworkTimeout, "NetworkTimeout"}
	shutdownInProgress                 = code{codes.ShutdownInProgress, "ShutdownInProgress"}
	writeConflict                      = code{codes.WriteConflict, "WriteConflict"}
	failedToSatisfyReadPreference      = code{codes.FailedToSatisfyReadPreference, "FailedToSatisfyReadPreference"}
	readConcernMajorityNotAvailableYet = code{codes.ReadConcernMajorityNotAvailableYet,
		"ReadConcernMajorityNotAvailableYet"}
	primarySteppedDown              = code{codes.PrimarySteppedDown, "PrimarySteppedDown"}
	retryChangeStream               = code{codes.RetryChangeStream, "RetryChangeStream"}
	exceededTimeLimit               = code{codes.ExceededTimeLimit, "ExceededTimeLimit"}
	limited                         = code{codes.IngressRequestRateLimitExceeded, "IngressRequestRateLimitExceeded"} // other policies do not retry it
	socketException                 = code{codes.SocketException, "SocketException"}
	notWritablePrimary              = code{codes.NotWritablePrimary, "NotWritablePrimary"}
	duplicateKey                    = code{codes.DuplicateKey, "DuplicateKey"}
	interruptedAtShutdown           = code{codes.InterruptedAtShutdown, "InterruptedAtShutdown"}
	interrupted                     = code{codes.Interrupted, "Interrupted"}
	interruptedDueToReplStateChange = code{codes.InterruptedDueToReplStateChange, "InterruptedDueToReplStateChange"}
	notPrimaryNoSecondaryOk         = code{codes.NotPrimaryNoSecondaryOk, "NotPrimaryNoSecondaryOk"}
	notPrimaryOrSecondary           = code{codes.NotPrimaryOrSecondary, "NotPrimaryOrSecondary"}
)

// labels are error labels.
type labels = []string

const (
	noWrites             = codes.NoWritesPerformed
	retryable            = codes.RetryableError
	writable             = codes.RetryableWriteError
	overloaded           = codes.SystemOverloadedError
	transientTransaction = codes.TransientTransactionError
	unknownCommitResult  = codes.UnknownTransactionCommitResult
)

// closes is the data of failCommand for a network error.
var closes = doc("closeConnection", true)

// errorCode is the data of failCommand for a server error.
func errorCode(c code) value { return doc("errorCode", c.Number) }

// errorWithLabels is the data of failCommand for a server error with exactly these labels. They replace the labels of
// the server (since 4.4).
func errorWithLabels(c code, names ...string) value {
	return doc("errorCode", c.Number, "errorLabels", list(names...))
}

// writeConcernError is the data of failCommand for a write concern error with a message.
func writeConcernError(c code, message string) value {
	return doc("writeConcernError", doc("code", c.Number, "errmsg", quoted(message)))
}

// concernWithLabels is the data of failCommand for a write concern error ShutdownInProgress with only these labels.
func concernWithLabels(names ...string) value {
	return merge(writeConcernError(shutdownInProgress, shutdownInProgress.Name), doc("errorLabels", list(names...)))
}

// Values of expectError.
var (
	anyError      = doc("isError", true)
	serverError   = doc("isClientError", false)
	timeoutError  = doc("isTimeoutError", true)
	raisedNetwork = doc("isClientError", true)
)

// raisedCode expects a server error with a code.
func raisedCode(c code) value { return raisedLabels(c, nil, nil) }

// raisedLabels is raisedCode withLabels.
func raisedLabels(c code, contain, omit labels) value {
	return withLabels(merge(serverError, doc("errorCode", c.Number)), contain, omit)
}

// withLabels adds errorLabelsContain and errorLabelsOmit to an expected error.
func withLabels(raises value, contain, omit labels) value {
	if len(contain) > 0 {
		raises = merge(raises, doc("errorLabelsContain", list(contain...)))
	}
	if len(omit) > 0 {
		raises = merge(raises, doc("errorLabelsOmit", list(omit...)))
	}
	return raises
}

// failPoint makes commands fail, with a mode such as times(1) or always.
func failPoint(mode, data value, commands ...string) value {
	return setFailPoint("failCommand", mode, merge(doc("failCommands", list(commands...)), data))
}

// setFailPoint sets any fail point on the server of the client setup.
func setFailPoint(name string, mode, data value) value {
	return runnerOperation("failPoint", "client", "setup", "failPoint", configuration(name, mode, data))
}

func configuration(name string, mode, data value) value {
	v := doc("configureFailPoint", name, "mode", mode)
	if data != nil {
		v = merge(v, doc("data", data))
	}
	return v
}

// failHello closes new connections of the client with this appName during hello.
func failHello(app string, mode value) value {
	return failPoint(mode, merge(doc("appName", app), closes), "hello", "isMaster")
}

// targetedFailPoint sets failCommand on the mongos to which the session is pinned.
func targetedFailPoint(command string, mode, data value) value {
	return runnerOperation("targetedFailPoint", "session", "session",
		"failPoint", configuration("failCommand", mode, merge(doc("failCommands", list(command)), data)))
}

// times is the mode of a fail point that is active n times.
func times(n int) value { return doc("times", n) }

// skip is the mode of a fail point that is active after n times.
func skip(n int) value { return doc("skip", n) }

// Other modes of fail points.
var (
	always = node("alwaysOn")
	never  = quoted("off")
)

// transactionalWrite is a fail point in the storage engine of a replica set. It applies retryable writes and loses
// their replies. With beforeCommit, it closes the connection before the write is applied, and with
// errorBeforeCommit it returns an error instead.
const transactionalWrite = "onPrimaryTransactionalWrite"

var beforeCommit = doc("failBeforeCommitExceptionCode", 1)

func errorBeforeCommit(c code) value {
	return doc("closeConnection", false, "failBeforeCommitExceptionCode", c.Number)
}

// sequence makes each attempt fail in its own way, on any server. Elements are the data of failCommand without
// failCommands, or lostReply. Only utr's embedded deployment has this fail point: sequenceServers requires it.
func sequence(command string, elements ...value) value {
	return setFailPoint("failCommandSequence", always, doc("failCommands", list(command), "sequence", list(elements...)))
}

// lostReply runs a command and loses its reply.
var lostReply = doc("loseReply", true)
