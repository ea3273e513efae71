package main

import (
	"fmt"
	"strings"
)

// FailPoint makes commands fail as often as mode says.
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

// FailHello breaks the hello of new connections of the client with this
// appName.
func FailHello(app, mode string) string {
	return FailPoint("hello, isMaster", mode, "appName: "+app+", "+Closes)
}

// TargetedFailPoint sets failCommand on the mongos to which the session is
// pinned.
func TargetedFailPoint(command, mode, data string) string {
	return Special("targetedFailPoint", fmt.Sprintf("session: session, failPoint: { configureFailPoint: failCommand, mode: %s, data: "+
		"{ failCommands: [ %s ], %s } }", mode, command, data))
}

// Times is the mode of a fail point that strikes n times.
func Times(n int) string { return fmt.Sprintf("{ times: %d }", n) }

// Modes of fail points.
const (
	Always    = "alwaysOn"
	SkipFirst = "{ skip: 1 }"
)

// TransactionalWrite fails retryable writes in the storage engine of a replica
// set: without data their replies are lost.
const TransactionalWrite = "onPrimaryTransactionalWrite"

// BeforeCommit is the data of TransactionalWrite for writes that are not made.
const BeforeCommit = "failBeforeCommitExceptionCode: 1"

// Sequence gives each attempt a failure of its own, whichever server it goes
// to: elements are the data of failCommand without failCommands, LostReply, or
// "" for an attempt that is left alone. It is a fail point of utr's embedded
// deployment, and Sequences the requirement for it.
func Sequence(commands string, elements ...string) string {
	list := make([]string, len(elements))
	for i, e := range elements {
		list[i] = strings.ReplaceAll("{ "+e+" }", "{  }", "{}")
	}
	return SetFailPoint("failCommandSequence", Always, fmt.Sprintf("failCommands: [ %s ], sequence: [ %s ]", commands, strings.Join(list, ", ")))
}

// LostReply lets a command run, and its reply be lost.
const LostReply = "loseReply: true"
