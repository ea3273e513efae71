package backpressure

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// overload errors that another policy retries, or that come beside others.

const raisesNetwork = "{ isClientError: true, errorLabelsContain: [ " + writable + " ], errorLabelsOmit: [ " + overloaded + " ] }"

// mixed has overload errors and network errors in one operation. The network
// errors come from a fail point of the storage engine, which only retryable
// writes on a replica set meet.
func mixed() *suites.File {
	f := &suites.File{
		Name:        "mixed-errors",
		Description: "client backpressure: overload errors and network errors in one operation",
		About: []string{"Once an overload error was seen, the limit of two retries holds for all attempts, whatever their errors, and for",
			"those before. What is written is written once."},
		Least:   "1.9",
		Require: []string{`{ minServerVersion: "4.4", topologies: [ replicaset ] }`},
		Clients: []suites.Client{suites.SetupClient(), suites.PlainClient(), suites.Observed("one", "{ maxAdaptiveRetries: 1 }"),
			suites.Observed("timed", "{ timeoutMS: 20000 }"), suites.Observed("none", "{ maxAdaptiveRetries: 0 }"),
			suites.Observed("patient", "{ "+patient+" }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	lost := suites.SetFailPoint(transactional, suites.Times(1), "")
	breaks := suites.SetFailPoint(transactional, suites.Always, "failBeforeCommitExceptionCode: 1")
	for _, title := range []string{"collection.insertOne", "collection.insertMany ordered", "collection.updateOne", "collection.deleteOne",
		"collection.findOneAndUpdate", "collection.bulkWrite ordered"} {
		o := named(title)
		point := func(mode, data string) string { return suites.FailPoint(o.Command, mode, data) }
		once, later := suites.Times(1), "{ skip: 1 }"
		for _, r := range []struct {
			says, rule, by string
			points         []string
			attempts       int
			raises         string
			applied        bool
		}{
			{"is retried twice after an overload error and a lost reply", "B2", "client", []string{point(once, overload()), lost}, 3, "", true},
			{"is retried twice after an overload error and network errors", "B2", "client", []string{point(once, overload()), breaks}, 3, raisesNetwork, false},
			{"is retried twice after an overload error and network errors within timeoutMS", "B2", "timed", []string{point(once, overload()), breaks}, 3, raisesNetwork, false},
			{"is retried twice after a lost reply and overload errors", "B2", "client", []string{lost, point(later, overload())}, 3, raised(overloaded, retryable), true},
			{"is retried twice after a lost reply and overload errors within timeoutMS", "B2", "timed", []string{lost, point(later, overload())}, 3, raised(overloaded, retryable), true},
			{"raises the network error after overload errors with " + noWrites, "R21", "client",
				[]string{lost, point(later, suites.Labelled(limited, overloaded, retryable, noWrites))}, 3, raisesNetwork, true},
			{"is retried once after an overload error and network errors with maxAdaptiveRetries 1", "B2", "one", []string{point(once, overload()), breaks}, 2, raisesNetwork, false},
			{"is not retried again after a lost reply and an overload error with maxAdaptiveRetries 1", "B2", "one", []string{lost, point(later, overload())}, 2, raised(overloaded, retryable), true},
			{"is not retried again after a lost reply and an overload error with maxAdaptiveRetries 0", "B2", "none", []string{lost, point(later, overload())}, 2, raised(overloaded, retryable), true},
			{"is retried once after network errors alone with maxAdaptiveRetries 0", "R35", "none", []string{breaks}, 2, raisesNetwork, false},
		} {
			failing := r.attempts
			if r.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), r.says, r.rule),
				Operations:  append(append([]string{}, r.points...), o.Call(r.by, "", r.raises)),
				Events:      []suites.Expected{{Client: r.by, Events: o.Attempts(r.attempts, failing, o.carries(r.by))}},
				Outcome:     o.outcome(r.applied),
			})
		}
	}
	for _, title := range []string{"collection.findOneAndUpdate", "collection.findOneAndReplace", "collection.findOneAndDelete"} {
		o := named(title) // whose error of the storage engine is one of the command
		f.Add(suites.Test{
			Description: o.Title() + " backs off after the overload error alone (B6)",
			Operations: []string{suites.FailPoint(o.Command, suites.Times(1), overload()),
				suites.SetFailPoint(transactional, suites.Times(7), "closeConnection: false, failBeforeCommitExceptionCode: 6"), o.Call("patient", "", "")},
			Events:  []suites.Expected{{Client: "patient", Events: o.Attempts(9, 8, o.carries("patient"))}},
			Outcome: o.outcome(true),
		})
	}
	return f
}

// otherErrors are retried by the rules of reads or writes, and tell of an
// overloaded server.
func otherErrors() *suites.File {
	f := &suites.File{
		Name:        "other-retryable-errors",
		Description: "client backpressure: overload errors that other policies retry",
		About: []string{"An error that reads or writes retry anyway may have the label SystemOverloadedError alone: it is retried by their",
			"rules, with the limit of client backpressure."},
		Least:   "1.9",
		Require: []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Clients: []suites.Client{suites.SetupClient(), suites.PlainClient(), suites.Observed("none", "{ maxAdaptiveRetries: 0 }"),
			suites.Observed("noReads", "{ retryReads: false }"), suites.Observed("noWrites", "{ retryWrites: false }"),
			suites.Observed("timed", "{ timeoutMS: 20000 }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	unreachable := suites.Code{Number: 6, Name: "HostUnreachable"}
	for _, r := range []struct{ title, data, off, option string }{
		{"collection.find", suites.Labelled(unreachable, overloaded), "noReads", "retryReads"},
		{"collection.aggregate", suites.Labelled(unreachable, overloaded), "noReads", "retryReads"},
		{"collection.insertOne", suites.Labelled(unreachable, overloaded, writable), "noWrites", "retryWrites"},
		{"collection.findOneAndUpdate", suites.Labelled(unreachable, overloaded, writable), "noWrites", "retryWrites"},
	} {
		o := named(r.title)
		raises := fmt.Sprintf("{ isClientError: false, errorCode: %d, errorLabelsContain: [ %s ] }", unreachable.Number, overloaded)
		for _, s := range []story{
			{"is retried twice after HostUnreachable with " + overloaded, "B2", "client", suites.Times(2), r.data, 3, ""},
			{"is retried no more than twice after HostUnreachable with " + overloaded, "B4", "client", suites.Always, r.data, 3, raises},
			{"is retried no more than twice after HostUnreachable with " + overloaded + " within timeoutMS", "B4", "timed", suites.Always, r.data, 3, raises},
			{"is not retried after HostUnreachable with " + overloaded + " and maxAdaptiveRetries 0", "B4", "none", suites.Times(1), r.data, 1, raises},
			{"is not retried after HostUnreachable with " + overloaded + " and " + r.option + " false", "R34", r.off, suites.Times(1), r.data, 1, raises},
		} {
			failing := s.attempts
			if s.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations:  []string{suites.FailPoint(o.Command, s.mode, s.data), o.Call(s.by, "", s.raises)},
				Events:      []suites.Expected{{Client: s.by, Events: o.Attempts(s.attempts, failing, o.carries(s.by))}},
				Outcome:     o.outcome(s.raises == ""),
			})
		}
	}
	// Not retryable by themselves: updateMany, and anything in a transaction.
	o := named("collection.updateMany")
	data := suites.Labelled(unreachable, overloaded, writable)
	f.Add(suites.Test{
		Description: o.Title() + " is not retried after HostUnreachable with " + overloaded + " and " + writable + " (R34)",
		Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), data), o.Call("client", "", suites.RaisedCode(unreachable))},
		Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, o.carries("client"))}},
		Outcome:     o.outcome(false),
	})
	return f
}
