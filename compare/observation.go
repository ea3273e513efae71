package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// observation is what one engine showed in one test, without addresses,
// times, ids and counters: two engines that behave alike give equal ones.
type observation struct {
	Status result.Status
	// Reason is that of a skipped, broken or known-failing test, or the first
	// mismatch of a failed one.
	Reason string
	// Operations are the outcomes in the order of the suite.
	Operations []string
	// Clients are the commands of each client, and what happened to its pools.
	Clients []clientLog

	// concurrent: commands of one client overlapped, so that their order is chance.
	concurrent bool
	// mongoses is how many servers of a sharded cluster received commands of one
	// client. Which of them an operation selects is chance.
	mongoses int
}

// clientLog is what one client showed.
type clientLog struct {
	Client string
	Lines  []string // one for each event that is compared

	concurrent bool     // commands overlapped
	servers    []string // those that received commands
}

// observe reduces a verdict that kept its events; nil is one that is not there.
func observe(v *result.Verdict) observation {
	if v == nil {
		return observation{}
	}
	o := observation{Status: v.Status}
	switch {
	case v.Status == result.Skipped || v.Status == result.Broken || v.Status == result.KnownFailing:
		o.Reason = v.Reason
	case len(v.Mismatches) > 0:
		m := v.Mismatches[0]
		o.Reason = fmt.Sprintf("%s: %s: %s", m.Position, m.Path, m.Message)
	}
	values := &folder{}
	for _, op := range v.Operations {
		o.Operations = append(o.Operations, op.Object+"."+op.Name+" "+outcome(op, values))
	}
	sharded := strings.HasPrefix(v.Test.Deployment, "sharded")
	for _, c := range v.Clients {
		log := logOf(c, sharded)
		o.Clients = append(o.Clients, log)
		o.concurrent = o.concurrent || log.concurrent
		if sharded {
			o.mongoses = max(o.mongoses, len(log.servers))
		}
	}
	return o
}

// comparedLabels are the error labels that specifications give a meaning.
// Drivers have others for themselves.
var comparedLabels = []string{
	"NoWritesPerformed", "ResumableChangeStreamError", "RetryableError", "RetryableWriteError",
	"SystemOverloadedError", "TransientTransactionError", "UnknownTransactionCommitResult",
}

// outcome describes what an operation returned, or the facts of its error.
// Engines word and classify errors differently.
func outcome(log result.OperationLog, values *folder) string {
	o := log.Outcome
	if log.Name == "close" {
		return "returned" // the format suppresses its errors
	}
	if o.Err == nil {
		list, isList := o.Value.ArrayOK()
		switch {
		case o.Value.Type == 0:
			return "returned"
		case isList && strings.HasPrefix(log.Name, "listIndex"):
			return "returned " + values.list(list, true)
		case isList && strings.HasPrefix(log.Name, "list"):
			return "returned a list" // other tests have left their collections
		}
		return "returned " + values.value(o.Value)
	}
	e := o.Err
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	switch {
	case e.Unsupported != "":
		add("unsupported: %s", e.Unsupported)
	case e.Timeout:
		add("time-out")
	case e.Client:
		add("client error")
	default:
		add("server error")
	}
	if e.HasCode {
		add("code %d", e.Code)
	}
	for _, label := range comparedLabels {
		if e.HasLabel(label) {
			add("%s", label)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(e.WriteErrors)) {
		code, _ := e.WriteErrors[i].Lookup("code").AsInt64OK()
		add("write error %d: code %d", i, code)
	}
	if log.Name == "bulkWrite" || log.Name == "clientBulkWrite" { // of others the code above is it
		for _, w := range e.WriteConcernErrors {
			code, _ := w.Lookup("code").AsInt64OK()
			add("write concern error: code %d", code)
		}
	}
	return "raised " + strings.Join(facts, ", ")
}

// logOf renders the events that are compared. On a sharded cluster, the line of a
// second attempt says whether it goes to the server of the first: it is chance which
// mongos an operation selects first, and which one it selects when all are
// deprioritized. A pool is cleared after the command that caused it has ended, since
// no specification orders the two.
func logOf(c result.ClientLog, sharded bool) clientLog {
	out := clientLog{Client: c.Client}
	say := func(format string, args ...any) { out.Lines = append(out.Lines, fmt.Sprintf(format, args...)) }
	f := &folder{}
	var last result.Event // that started a command
	failures := 0         // in a row, of the same command
	cleared := 0          // pools, while a command was pending
	pending := 0          // commands without an answer
	for _, e := range c.Events {
		if e.Command != nil && e.Command.CommandName == "killCursors" {
			continue // each driver chooses when it kills cursors
		}
		switch e.Type {
		case result.CommandStarted:
			if last.Command != nil && last.Command.CommandName != e.Command.CommandName {
				failures = 0
			}
			at := ""
			if sharded && failures == 1 {
				at = " at another server"
				if last.Address == e.Address {
					at = " at the same server"
				}
			}
			last = e
			pending++
			out.concurrent = out.concurrent || pending > 1
			if !slices.Contains(out.servers, e.Address) {
				out.servers = append(out.servers, e.Address)
			}
			say("send %s on %s%s%s", e.Command.CommandName, e.Command.DatabaseName, at, f.command(e.Command.Command))
		case result.CommandSucceeded, result.CommandFailed:
			pending--
			failures++
			if e.Type == result.CommandFailed {
				say("  %s failed%s", e.Command.CommandName, failed(e.Command.Failure))
			} else {
				errors := replied(e.Command.Reply)
				if !strings.Contains(errors, "write concern error") {
					failures = 0
				}
				say("  %s succeeded%s", e.Command.CommandName, errors)
			}
			for ; cleared > 0; cleared-- {
				say("  pool cleared")
			}
		case result.PoolCleared:
			if pending > 0 {
				cleared++
			} else {
				say("  pool cleared")
			}
		}
	}
	return out
}

// replied describes errors inside a successful reply.
func replied(reply bson.Raw) string {
	var out string
	if wce, ok := reply.Lookup("writeConcernError", "code").AsInt64OK(); ok {
		out = fmt.Sprintf(", write concern error %d", wce)
	}
	if list, ok := reply.Lookup("writeErrors").ArrayOK(); ok {
		values, err := list.Values()
		if err == nil {
			out += fmt.Sprintf(", %d write errors", len(values))
		}
	}
	return out
}

func failed(e *result.Error) string {
	switch {
	case e == nil:
		return ""
	case e.HasCode:
		return fmt.Sprintf(": code %d", e.Code)
	default:
		return ": no reply"
	}
}
