package suites

import (
	"fmt"
	"strings"
)

// Code is a server error.
type Code struct {
	Number int
	Name   string
}

// Closes is the data of failCommand for a network error.
const Closes = "closeConnection: true"

// ErrorCode is the data of failCommand for a server error.
func ErrorCode(c Code) string { return fmt.Sprintf("errorCode: %d", c.Number) }

// Labelled is the data of failCommand for a server error with these labels and
// no others: they replace those that the server would have given (since 4.4).
func Labelled(c Code, labels ...string) string {
	return fmt.Sprintf("errorCode: %d, errorLabels: [ %s ]", c.Number, strings.Join(labels, ", "))
}

// RaisedCode expects a server error of that code.
func RaisedCode(c Code) string { return RaisedLabels(c, "", "") }

// RaisedLabels expects a server error of that code which contains the first
// labels and omits the others, each separated by commas; "" says nothing.
func RaisedLabels(c Code, contain, omit string) string {
	s := fmt.Sprintf("{ isClientError: false, errorCode: %d", c.Number)
	if contain != "" {
		s += ", errorLabelsContain: [ " + contain + " ]"
	}
	if omit != "" {
		s += ", errorLabelsOmit: [ " + omit + " ]"
	}
	return s + " }"
}

// RaisedNetwork expects a network error.
const RaisedNetwork = "{ isClientError: true }"

// FailPoint makes commands fail as often as mode says.
func FailPoint(commands, mode, data string) string {
	return SetFailPoint("failCommand", mode, fmt.Sprintf("failCommands: [ %s ], %s", commands, data))
}

// SetFailPoint sets any fail point on the server of the client setup.
func SetFailPoint(name, mode, data string) string {
	if data != "" {
		data = ", data: { " + data + " }"
	}
	return fmt.Sprintf("{ name: failPoint, object: testRunner, arguments: { client: setup, failPoint: { configureFailPoint: %s, mode: %s%s } } }", name, mode, data)
}

// TargetedFailPoint sets failCommand on the mongos to which a session is pinned.
func TargetedFailPoint(session, mode, data string) string {
	return fmt.Sprintf("{ name: targetedFailPoint, object: testRunner, arguments: { session: %s, failPoint: { configureFailPoint: failCommand, mode: %s, data: { %s } } } }", session, mode, data)
}

// Times is the mode of a fail point that strikes n times.
func Times(n int) string { return fmt.Sprintf("{ times: %d }", n) }

// Always is the mode of a fail point that strikes until it is set off.
const Always = "alwaysOn"

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

// Sequences is for tests with Sequence, on topologies in flow YAML, "" for all.
func Sequences(topologies string) string {
	if topologies != "" {
		topologies = ", topologies: [ " + topologies + " ]"
	}
	return `{ minServerVersion: "4.4"` + topologies + `, serverParameters: { failCommandSequence: true } }`
}
