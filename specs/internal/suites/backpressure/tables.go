package backpressure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
	"github.com/unified-test-runner/utr/specs/internal/suites/reads"
	"github.com/unified-test-runner/utr/specs/internal/suites/writes"
)

const databaseName = "utr-client-backpressure"

// Labels.
const (
	overloaded    = "SystemOverloadedError"
	retryable     = "RetryableError"
	writable      = "RetryableWriteError"
	noWrites      = "NoWritesPerformed"
	written       = "written" // the collection of aggregations that write
	transactional = "onPrimaryTransactionalWrite"
)

// limited is the error of the ingress request rate limiter. No other policy
// retries it.
var limited = suites.Code{Number: 462, Name: "IngressRequestRateLimitExceeded"}

// overload is the data of failCommand for a retryable overload error.
func overload() string { return suites.Labelled(limited, overloaded, retryable) }

// raised expects the error of the rate limiter with these labels and without
// those others of the two.
func raised(labels ...string) string {
	s := fmt.Sprintf("{ isClientError: false, errorCode: %d", limited.Number)
	if len(labels) > 0 {
		s += ", errorLabelsContain: [ " + strings.Join(labels, ", ") + " ]"
	}
	var others []string
	for _, l := range []string{overloaded, retryable} {
		if !slices.Contains(labels, l) {
			others = append(others, l)
		}
	}
	if len(others) > 0 {
		s += ", errorLabelsOmit: [ " + strings.Join(others, ", ") + " ]"
	}
	return s + " }"
}

// class tells which options allow a retry.
type class int

const (
	read class = iota
	write
	generic
)

// operation is a row with what the policy looks at.
type operation struct {
	suites.Operation
	class    class
	numbered bool // a retryable write: its attempts have one transaction number
}

// operations are all that one command carries.
func operations() []operation {
	var list []operation
	for _, o := range reads.Operations(databaseName) {
		list = append(list, operation{Operation: o, class: read})
	}
	list = append(list, operation{class: read, Operation: suites.Operation{Object: "collection", Name: "mapReduce", Command: "mapReduce", Database: databaseName,
		Arguments: `{ map: { $code: "function inc() { return emit(0, this.x + 1) }" }, reduce: { $code: "function sum(key, values) { return values.reduce((acc, x) => acc + x); }" }, out: { inline: 1 } }`,
		Started:   "{ mapReduce: " + suites.Collection + ", out: { inline: 1 } }"}})
	for _, o := range writes.Operations(databaseName) {
		list = append(list, operation{o, write, true})
	}
	for _, o := range writes.Others(databaseName) {
		c := write
		if o.Name == "runCommand" {
			c = generic
		}
		list = append(list, operation{o, c, false})
	}
	run := func(name, command string) operation {
		return operation{class: generic, Operation: suites.Operation{Object: "database", Name: "runCommand", Variant: "with " + name, Command: name,
			Database: databaseName, Arguments: "{ commandName: " + name + ", command: " + command + " }", Started: command, Result: "{ ok: 1 }"}}
	}
	return append(list, run("ping", "{ ping: 1 }"), run("find", "{ find: "+suites.Collection+", filter: { _id: 1 } }"))
}

func named(title string) operation {
	all := operations()
	return all[slices.IndexFunc(all, func(o operation) bool { return o.Title() == title })]
}

const every = "replicaset, sharded, load-balanced"

// requirement is for error labels in fail points.
func (o operation) requirement() string {
	version := "4.4"
	if o.Since != "" {
		version = o.Since
	}
	if o.numbered || o.Watches {
		return fmt.Sprintf("{ minServerVersion: %q, topologies: [ %s ] }", version, every)
	}
	return fmt.Sprintf("{ minServerVersion: %q }", version)
}

// carries is what each attempt of the operation must have.
func (o operation) carries(by string) string {
	switch {
	case o.class == generic, o.Object == "bucket":
		return ""
	case o.numbered && by != "noWrites":
		return `txnNumber: { $numberLong: "1" }`
	default:
		return "txnNumber: { $$exists: false }"
	}
}

// outcome is what is left behind by an operation that writes.
func (o operation) outcome(succeeded bool) []suites.Outcome {
	if o.class == read {
		return nil
	}
	return o.Outcome(succeeded)
}
