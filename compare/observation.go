package compare

import (
	"fmt"
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

// clientLog are the lines of one client's log, a line for each event.
type clientLog struct {
	Client string
	Lines  []string
}

// observe reduces a verdict that kept its events.
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
		o.Clients = append(o.Clients, clientLog{Client: c.Client, Lines: clientLines(c.Events, sharded)})
		concurrent, servers := traffic(c.Events)
		o.concurrent = o.concurrent || concurrent
		if sharded {
			o.mongoses = max(o.mongoses, servers)
		}
	}
	return o
}

// traffic reports whether commands overlapped, and how many servers received them.
func traffic(events []result.Event) (concurrent bool, servers int) {
	pending := 0
	var seen []string
	for _, e := range events {
		switch e.Type {
		case result.CommandStarted:
			if pending++; pending > 1 {
				concurrent = true
			}
			if !slices.Contains(seen, e.Address) {
				seen = append(seen, e.Address)
			}
		case result.CommandSucceeded, result.CommandFailed:
			pending--
		}
	}
	return concurrent, len(seen)
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
		if o.Value.Type == 0 {
			return "returned"
		}
		if list, ok := o.Value.ArrayOK(); ok && strings.HasPrefix(log.Name, "listIndex") {
			return "returned " + values.unordered(list)
		} else if ok && strings.HasPrefix(log.Name, "list") {
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
	var indexes []int
	for i := range e.WriteErrors {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	for _, i := range indexes {
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

// clientLines renders the events that are compared. With servers, the line of a
// second attempt says whether it goes to the server of the first: it is chance which
// mongos an operation selects first, and which one it selects when all are
// deprioritized. A pool is cleared after the command that caused it has ended, since
// no specification orders the two.
func clientLines(events []result.Event, servers bool) []string {
	var lines []string
	f := &folder{}
	var last *result.Event
	failures := 0 // in a row, of the same command
	cleared := 0  // pools, while a command was pending
	pending := 0  // commands without an answer
	end := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
		for ; cleared > 0; cleared-- {
			lines = append(lines, "  pool cleared")
		}
		pending--
	}
	for i, e := range events {
		if e.Command != nil && e.Command.CommandName == "killCursors" {
			continue // each driver chooses when it kills cursors
		}
		switch e.Type {
		case result.CommandStarted:
			at := ""
			if last != nil && last.Command.CommandName != e.Command.CommandName {
				failures = 0
			}
			if servers && failures == 1 {
				at = " at another server"
				if last.Address == e.Address {
					at = " at the same server"
				}
			}
			last = &events[i]
			pending++
			lines = append(lines, fmt.Sprintf("send %s on %s%s%s", e.Command.CommandName, e.Command.DatabaseName, at, f.command(e.Command.Command)))
		case result.CommandSucceeded:
			if strings.Contains(replied(e.Command.Reply), "write concern error") {
				failures++
			} else {
				failures = 0
			}
			end("  %s succeeded%s", e.Command.CommandName, replied(e.Command.Reply))
		case result.CommandFailed:
			failures++
			end("  %s failed%s", e.Command.CommandName, failed(e.Command.Failure))
		case result.PoolCleared:
			if pending > 0 {
				cleared++
			} else {
				lines = append(lines, "  pool cleared")
			}
		}
	}
	return lines
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
