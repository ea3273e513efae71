package backpressure

import (
	"github.com/unified-test-runner/utr/specs/internal/suites"
	"github.com/unified-test-runner/utr/specs/internal/suites/reads"
	"github.com/unified-test-runner/utr/specs/internal/suites/writes"
)

const databaseName = "utr-client-backpressure"

// Labels.
const (
	overloaded = suites.SystemOverloadedError
	retryable  = suites.RetryableError
	writable   = suites.RetryableWriteError
	noWrites   = suites.NoWritesPerformed
	both       = overloaded + ", " + retryable
	written    = "written" // the collection of aggregations that write
)

// limited is the error of the ingress request rate limiter. No other policy
// retries it.
var limited = suites.RateLimitExceeded

// Data of failCommand for a retryable overload error, and for errors with one
// of its labels; and the retryable overload error as it is raised.
var (
	overload       = suites.Labelled(limited, overloaded, retryable)
	overloadedOnly = suites.Labelled(limited, overloaded)
	raised         = suites.RaisedLabels(limited, both, "")
	raisedOnly     = suites.RaisedLabels(limited, overloaded, retryable)
	unreachable    = suites.HostUnreachable
)

// numbered is what the attempts of a retryable write carry.
const numbered = `txnNumber: { $numberLong: "1" }`

// generic operations are subject to both options.
func generic(o operation) bool { return o.Name == "runCommand" }

// operations are all that one command carries.
func operations() []operation {
	list := append(reads.Operations(databaseName), operation{Object: "collection", Name: "mapReduce", Command: "mapReduce",
		Database: databaseName, Reads: true, Started: "{ mapReduce: " + suites.Collection + ", out: { inline: 1 } }",
		Arguments: `{ map: { $code: "function inc() { return emit(0, this.x + 1) }" }, ` +
			`reduce: { $code: "function sum(key, values) { return values.reduce((acc, x) => acc + x); }" }, out: { inline: 1 } }`})
	for i := range list {
		list[i].Carries = suites.Unnumbered
	}
	for _, o := range writes.Operations(databaseName) {
		o.Carries = numbered
		list = append(list, o)
	}
	list = append(list, writes.Others(databaseName)...)
	for _, o := range []operation{suites.RunCommand("ping", "{ ping: 1 }"),
		suites.RunCommand("find", "{ find: "+suites.Collection+", filter: { _id: 1 } }")} {
		o.Database, o.Result = databaseName, "{ ok: 1 }"
		list = append(list, o)
	}
	for i, o := range list {
		if generic(o) || o.Object == "bucket" {
			list[i].Carries = ""
		}
	}
	return list
}

func named(title string) operation { return suites.Named(operations(), title) }

// Servers that obey error labels in fail points: all of them, and those with
// retryable writes and change streams.
var (
	anywhere = suites.Servers("4.4", "")
	retrying = suites.Servers("4.4", suites.Retrying)
)

// requirement is for what an operation needs.
func requirement(o operation) string {
	if o.Carries == numbered || o.Watches {
		return retrying
	}
	return anywhere
}
