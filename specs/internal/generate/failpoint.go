package main

import (
	"fmt"
	"strings"
)

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
