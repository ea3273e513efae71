package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Observation is what one engine showed in one test, without addresses,
// times, ids and counters: two engines that behave alike give equal ones.
type Observation struct {
	Status result.Status
	// Reason is that of a skip, a broken or a known failing test, or the first mismatch of a
	// failed one.
	Reason string
	// Operations are the outcomes in the order of the suite.
	Operations []string
	// Clients are the commands of each client, and what happened to its pools.
	Clients []ClientLines

	// concurrent: commands of one client were on their way at the same time,
	// and which came first is chance.
	concurrent bool
	// mongoses is how many servers of a sharded cluster got commands of one
	// client: which of them an operation meets is chance.
	mongoses int
}

// ClientLines are the lines of one client's log, a line for each event.
type ClientLines struct {
	Client string
	Lines  []string
}

// Observe reduces a verdict, which has to have its events kept.
func Observe(v *result.Verdict) Observation {
	o := Observation{Status: v.Status}
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
		o.Clients = append(o.Clients, ClientLines{Client: c.Client, Lines: clientLines(c.Events, sharded)})
		concurrent, servers := traffic(c.Events)
		o.concurrent = o.concurrent || concurrent
		if sharded {
			o.mongoses = max(o.mongoses, servers)
		}
	}
	return o
}

// traffic says whether commands overlapped, and to how many servers they went.
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

// outcome tells what an operation gave: a value, or an error by its facts.
// Messages and kinds of errors are each engine's own.
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

// clientLines renders the events that are compared. With servers, a second
// attempt says whether it goes to the server of the first: which mongos an
// operation begins with is chance, and so is where it goes on once every one
// of them is deprioritized. That a pool is cleared comes after the end of the
// command that is the reason, since no specification orders the two.
func clientLines(events []result.Event, servers bool) []string {
	var lines []string
	f := &folder{}
	var last *result.Event
	failures := 0 // of the same command, one after the other
	cleared := 0  // pools while a command was on its way
	pending := 0  // commands on their way
	end := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
		for ; cleared > 0; cleared-- {
			lines = append(lines, "  pool cleared")
		}
		pending--
	}
	for i, e := range events {
		if e.Command != nil && e.Command.CommandName == "killCursors" {
			continue // when cursors are killed is each driver's own
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

// replied tells of errors inside a reply that is ok.
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
