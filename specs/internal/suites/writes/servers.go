package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// repeatable gives a write for each round, with its statement of the command.
type repeatable struct {
	operation suites.Operation
	arguments func(round int) string
	wrote     func(rounds int) []string
}

func repeatables() []repeatable {
	const increase = "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"
	increased := func(rounds int) []string { return []string{first, fmt.Sprintf("{ _id: 2, x: %d }", 22+rounds), third} }
	inserted := func(rounds int) []string {
		out := suites.Initial()
		for n := range rounds {
			out = append(out, fmt.Sprintf("{ _id: %d }", 10+n))
		}
		return out
	}
	always := func(arguments string) func(int) string { return func(int) string { return arguments } }
	return []repeatable{
		{named("collection", "insertOne", ""), func(n int) string { return fmt.Sprintf("{ document: { _id: %d } }", 10+n) }, inserted},
		{named("collection", "insertMany", "ordered"), func(n int) string { return fmt.Sprintf("{ documents: [ { _id: %d } ] }", 10+n) }, inserted},
		{named("collection", "updateOne", ""), always(increase), increased},
		{named("collection", "findOneAndUpdate", ""), always(increase), increased},
		{named("collection", "bulkWrite", "ordered"), always("{ requests: [ { updateOne: " + increase + " } ] }"), increased},
		{named("collection", "deleteOne", ""), always("{ filter: { _id: 3 } }"), func(int) []string { return []string{first, second} }},
	}
}

// otherMongos checks the deprioritized server. The format cannot tell one
// mongos from another, so chance has to: a fail point makes every attempt on
// one of them fail. With the failed one deprioritized, each operation succeeds
// always; without, a quarter of them fails when there are two.
func otherMongos() *suites.File {
	const rounds = 12
	f := &suites.File{
		Name:        "sharded",
		Description: "retryable writes: retry on another mongos",
		About: []string{"One mongos fails every attempt, with an error that leaves it known and selectable. A retry that",
			"goes to another one always succeeds; one that ignored the deprioritized server would not for long."},
		Require:  []string{`{ minServerVersion: "4.4", topologies: [ sharded ] }`},
		Clients:  []suites.Client{suites.SetupClient(), suites.AllMongoses("client", ""), suites.Observed("one", "")},
		Entities: append(objects("client", "collection"), objects("one", "collection")...),
	}
	for _, r := range repeatables() {
		o := r.operation
		repeated := []string{suites.MongosesKnown("client"), suites.FailPoint(o.Command, suites.Always, suites.Labelled(coded("HostUnreachable"), label))}
		for n := range rounds {
			repeated = append(repeated, suites.Operation{Object: "collection", Name: o.Name, Arguments: r.arguments(n)}.Call("client", "", ""))
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried on another mongos (R40)",
			Operations:  repeated,
			Outcome:     []suites.Outcome{{Collection: suites.Collection, Documents: r.wrote(rounds)}},
		})
		f.Add(suites.Test{
			Description: o.Title() + " is retried on the same mongos if there is no other (R40)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), suites.Labelled(coded("HostUnreachable"), label)), o.Call("one", "", "")},
			Events:      []suites.Expected{{Client: "one", Events: o.Attempts(2, 1, numbered)}},
			Outcome:     o.Outcome(true),
		})
	}
	return f
}

// otherMongosForEnds lets go of the mongos of a transaction when its end fails.
// The session tells which mongos it is, so that no chance is needed.
func otherMongosForEnds() *suites.File {
	client := suites.AllMongoses("client", "")
	client.Observe, client.Ignore = append(client.Observe, suites.CommandEvents()...), []string{"killCursors"}
	f := &suites.File{
		Name:        "sharded-transactions",
		Description: "retryable writes: the end of a transaction on another mongos",
		About: []string{"The session is unpinned before commit or abort is retried, and the retry goes to another mongos with the recovery token. The",
			"commit took effect, and the other mongos says so; an abort is unknown to it, where the mongos of the transaction would answer."},
		Require:  []string{`{ minServerVersion: "4.4", topologies: [ sharded ] }`},
		Clients:  []suites.Client{suites.SetupClient(), client},
		Entities: append(objects("client", "collection"), suites.Session("client")),
	}
	insert := named("collection", "insertOne", "")
	for _, r := range []struct {
		command, mode, data string
		succeeds            [2]bool // in the events
	}{
		{"commitTransaction", suites.Always, concern(91, "ShutdownInProgress", label), [2]bool{true, true}},
		{"abortTransaction", suites.Times(1), suites.Labelled(coded("HostUnreachable"), label), [2]bool{false, false}},
	} {
		started := suites.StartedEvent("{ "+r.command+`: 1, recoveryToken: { $$exists: true }, autocommit: false, txnNumber: { $numberLong: "1" } }`, r.command, "admin")
		events := insert.Attempts(1, 0, inside)
		for _, succeeds := range r.succeeds {
			if succeeds {
				events = append(events, started, suites.SucceededEvent(r.command))
			} else {
				events = append(events, started, suites.FailedEvent(r.command))
			}
		}
		f.Add(suites.Test{
			Description: r.command + " is retried on another mongos (R40)",
			Operations: []string{suites.MongosesKnown("client"), onSession("startTransaction", ""), insert.Call("client", "session: session", ""),
				suites.TargetedFailPoint("session", r.mode, "failCommands: [ "+r.command+" ], "+r.data),
				onSession(r.command, ""), "{ name: assertSessionUnpinned, object: testRunner, arguments: { session: session } }"},
			Events:  []suites.Expected{{Client: "client", Events: events}},
			Outcome: insert.Outcome(r.command == "commitTransaction"),
		})
	}
	return f
}

// timeouts checks that timeoutMS lifts the limit of one retry.
func timeouts(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "timeoutMS",
		Description: "retryable writes: retries under timeoutMS",
		About: []string{"With timeoutMS a write is retried until it succeeds or the time is over, which is one time for all attempts. All of",
			"them have one transaction number."},
		Least:   "1.9",
		Require: []string{since44(suites.Operation{}, every)},
		Clients: []suites.Client{suites.SetupClient(),
			suites.Observed("client", "{ timeoutMS: 20000 }"), suites.Observed("endless", "{ timeoutMS: 0 }"),
			suites.Observed("noRetry", "{ timeoutMS: 20000, retryWrites: false }"),
		},
	}
	for _, by := range []string{"client", "endless", "noRetry"} {
		f.Entities = append(f.Entities, objects(by, "collection")...)
	}
	code := coded("HostNotFound") // leaves the server known, so that no time is lost
	fails := suites.Labelled(code, label)
	for _, o := range operations {
		f.Add(suites.Test{
			Description: o.Title() + " is retried three times within timeoutMS (R36)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(3), fails), o.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(4, 3, numbered)}},
			Outcome:     o.Outcome(true),
		})
		f.Add(suites.Test{
			Description: o.Title() + " is not retried within timeoutMS with retryWrites false (W30)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), fails), o.Call("noRetry", "", suites.RaisedCode(code))},
			Events:      []suites.Expected{{Client: "noRetry", Events: o.Attempts(1, 1, unmarked)}},
			Outcome:     o.Outcome(false),
		})
		f.Add(suites.Test{
			Description: o.Title() + " is retried three times with timeoutMS 0, which is no limit (R36)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(3), fails), o.Call("endless", "", "")},
			Events:      []suites.Expected{{Client: "endless", Events: o.Attempts(4, 3, numbered)}},
			Outcome:     o.Outcome(true),
		})
	}
	expired := suites.Code{Number: 50, Name: "MaxTimeMSExpired"}
	f.Add(suites.Test{
		Description: operations[0].Title() + " is not retried after MaxTimeMSExpired, which is a timeout under timeoutMS (R34)",
		Operations: []string{suites.FailPoint(operations[0].Command, suites.Times(1), suites.ErrorCode(expired)),
			operations[0].Call("client", "", "{ isTimeoutError: true }")},
		Events:  []suites.Expected{{Client: "client", Events: operations[0].Attempts(1, 1, numbered+", maxTimeMS: { $$lte: 20000 }")}},
		Outcome: operations[0].Outcome(false),
	})
	// The first write opens the connection, so that its cost is not part of the
	// time. One attempt fits into it with a wide margin, and two never do.
	o := operations[0]
	warm := suites.Operation{Object: "collection", Name: "updateOne", Command: "update", Database: databaseName,
		Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ update: " + suites.Collection + " }"}
	f.Add(suites.Test{
		Description: o.Title() + " ends in a timeout in the attempt that outlasts timeoutMS (R36)",
		Operations: []string{warm.Call("client", "", ""),
			suites.FailPoint(o.Command, suites.Always, fails+", blockConnection: true, blockTimeMS: 1000"),
			o.Call("client", "timeoutMS: 1800", "{ isTimeoutError: true }"),
		},
		Events: []suites.Expected{{Client: "client", Events: append(warm.Attempts(1, 0, ""), o.Attempts(2, 2, `txnNumber: { $numberLong: "2" }`)...)}},
	})
	return f
}

// selectionFails makes the server unknown by the first error and keeps it so.
func selectionFails() *suites.File {
	const app = "utrWriteSelection"
	f := &suites.File{
		Name:        "server-selection",
		Description: "retryable writes: no server for the retry",
		About: []string{"The first error makes the server unknown, and hello fails ever after: there is no server for the retry.",
			"The error of the attempt is raised then, not that of server selection."},
		Require: []string{`{ minServerVersion: "4.4.7", topologies: [ replicaset, sharded ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			suites.Observed("client", "{ appName: "+app+", serverSelectionTimeoutMS: 500, "+suites.Quiet+" }"),
			suites.Observed("timed", "{ appName: "+app+", timeoutMS: 1500, "+suites.Quiet+" }")},
		Entities: append(objects("client", "database", "collection"), objects("timed", "database", "collection")...),
		Least:    "1.9",
	}
	for _, o := range []suites.Operation{named("collection", "insertOne", ""), named("collection", "findOneAndUpdate", ""), named("collection", "bulkWrite", "ordered")} {
		// Codes of a shutdown: errors of a step-down carry the topologyVersion
		// that the client has already, and drivers take them for old news.
		for _, c := range []suites.Code{coded("ShutdownInProgress"), coded("InterruptedAtShutdown")} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s raises %s if no server can be selected for the retry (R3)", o.Title(), c.Name),
				Operations: []string{suites.Ping("client"),
					suites.FailPoint(o.Command+", hello, isMaster", suites.Always, suites.Labelled(c, label)+", appName: "+app),
					o.Call("client", "", raisesLabelled(c)),
				},
				Events:  []suites.Expected{{Client: "client", Events: append(suites.PingEvents(databaseName), o.Attempts(1, 1, numbered)...)}},
				Outcome: o.Outcome(false),
			})
		}
	}
	o := named("collection", "insertOne", "")
	f.Add(suites.Test{
		Description: o.Title() + " raises a timeout if no server can be selected for the retry within timeoutMS (R37)",
		Operations: []string{suites.Ping("timed"),
			suites.FailPoint("insert, hello, isMaster", suites.Always, suites.Labelled(coded("ShutdownInProgress"), label)+", appName: "+app),
			o.Call("timed", "", "{ isTimeoutError: true }")},
		Events:  []suites.Expected{{Client: "timed", Events: append(suites.PingEvents(databaseName), o.Attempts(1, 1, numbered)...)}},
		Outcome: o.Outcome(false),
	})
	return f
}
