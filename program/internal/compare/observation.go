package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/wire/codes"
	"github.com/unified-test-runner/utr/result"
)

// observation is the behavior of an engine in a test, without addresses, times, ids
// and counters. Engines that behave alike have equal observations.
type observation struct {
	Status result.Status
	// Reason is the reason of a skipped, broken or known-failing test, or the first mismatch of a failed test.
	Reason     string
	Operations []string // outcomes in the order of the suite
	Clients    []clientLog

	// concurrent: commands of one client overlapped, so their order is random.
	concurrent bool
	// mongoses is the number of servers of a sharded cluster that received commands
	// of one client. Server selection among them is random.
	mongoses int
}

// clientLog is the commands and pool events of a client.
type clientLog struct {
	Client string
	Lines  []string // one for each compared event

	concurrent bool     // commands overlapped
	servers    []string // addresses that received commands
}

// observe reduces a verdict with its events.
func observe(v *result.Verdict) observation {
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

// comparedLabels are the error labels that specifications define. Drivers also have internal ones.
var comparedLabels = []string{
	codes.NoWritesPerformed, codes.ResumableChangeStreamError, codes.RetryableError, codes.RetryableWriteError,
	codes.SystemOverloadedError, codes.TransientTransactionError, codes.UnknownTransactionCommitResult,
}

// outcome describes the result of an operation or the properties of its error that engines must agree on.
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
			return "returned a list" // which may contain collections of other tests
		}
		return "returned " + values.value(o.Value.RawValue)
	}
	e := o.Err
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	switch {
	case e.Unsupported != "":
		add("unsupported: %s", e.Unsupported)
	case e.Timeout:
		add("timeout")
	case e.Client:
		add("client error")
	default:
		add("server error")
	}
	if e.Code != 0 {
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
	if log.Name == "bulkWrite" || log.Name == "clientBulkWrite" { // for others, it is the code above
		for _, w := range e.WriteConcernErrors {
			code, _ := w.Lookup("code").AsInt64OK()
			add("write concern error: code %d", code)
		}
	}
	return "raised " + strings.Join(facts, ", ")
}

// logOf renders the compared events. On a sharded cluster, the line of a second attempt has the mongos relative to
// the first: selection is random for the first attempt and when all servers are deprioritized. The line of a pool
// clear follows the end of the pending command, since no specification orders the two.
func logOf(c result.ClientLog, sharded bool) clientLog {
	out := clientLog{Client: c.Client}
	add := func(format string, args ...any) { out.Lines = append(out.Lines, fmt.Sprintf(format, args...)) }
	f := &folder{}
	var last result.Event // the last command started event
	failures := 0         // consecutive failures of the same command
	cleared := 0          // pools cleared while a command was pending
	pending := 0          // commands without a reply
	for _, e := range c.Events {
		if e.CommandName == "killCursors" {
			continue // drivers may kill cursors at any time
		}
		switch e.Type {
		case result.CommandStarted:
			if last.CommandName != "" && last.CommandName != e.CommandName {
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
			add("send %s on %s%s%s", e.CommandName, e.DatabaseName, at, f.command(bson.Raw(e.Body)))
		case result.CommandSucceeded, result.CommandFailed:
			pending--
			failures++
			if e.Type == result.CommandFailed {
				add("  %s failed%s", e.CommandName, failed(e.Failure))
			} else {
				errors := replied(bson.Raw(e.Body))
				if !strings.Contains(errors, "write concern error") {
					failures = 0
				}
				add("  %s succeeded%s", e.CommandName, errors)
			}
			for ; cleared > 0; cleared-- {
				add("  pool cleared")
			}
		case result.PoolCleared:
			if pending > 0 {
				cleared++
			} else {
				add("  pool cleared")
			}
		}
	}
	return out
}

// replied describes the errors in a successful reply.
func replied(reply bson.Raw) string {
	var out string
	if wce, ok := reply.Lookup("writeConcernError", "code").AsInt64OK(); ok {
		out = fmt.Sprintf(", write concern error %d", wce)
	}
	list, _ := reply.Lookup("writeErrors").ArrayOK()
	if values, err := list.Values(); list != nil && err == nil {
		out += ", " + plural.Of(len(values), "write error")
	}
	return out
}

func failed(e *result.Error) string {
	switch {
	case e == nil:
		return ""
	case e.Code != 0:
		return fmt.Sprintf(": code %d", e.Code)
	default:
		return ": no reply"
	}
}
