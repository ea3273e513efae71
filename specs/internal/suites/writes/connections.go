package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// handshakeHello fails the hello of a new connection. The connection that
// discovered the deployment is idle for too long when the write comes, so that
// the write needs a new one; appName keeps the fail point to this client.
func handshakeHello(operations []suites.Operation) *suites.File {
	const app = "utrWriteHandshake"
	events := append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"}, suites.CommandEvents()...)
	// Each client has a name of its own: the others may still be discovering.
	options := func(id string) string { return "appName: " + app + id + ", maxIdleTimeMS: 10, " + suites.Quiet }
	f := &suites.File{
		Name:        "handshake-hello",
		Description: "retryable writes: a handshake that fails in hello",
		About: []string{"The pool has no fresh connection when the write comes, and the hello of the new one fails. No command",
			"was sent then: command events show one attempt, pool events show two."},
		Least:   "1.10", // operation wait
		Require: []string{fmt.Sprintf(`{ minServerVersion: "4.4.7", topologies: [ %s ] }`, every)},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ " + options("client") + " }", Observe: events},
			{ID: "noRetry", Options: "{ retryWrites: false, " + options("noRetry") + " }", Observe: events},
			{ID: "warm", Options: "{ appName: " + app + "warm }", Observe: suites.CommandEvents()},
		},
		Entities: append(append(objects("client", "database", "collection"), objects("noRetry", "database", "collection")...),
			objects("warm", "database", "collection")...),
	}
	hello := func(by string) string {
		return suites.FailPoint("hello, isMaster", suites.Times(1), "appName: "+app+by+", "+suites.Closes)
	}
	started, failed := "{ connectionCheckOutStartedEvent: {} }", "{ connectionCheckOutFailedEvent: { reason: connectionError } }"
	for _, o := range operations {
		f.Add(suites.Test{
			Description: o.Title() + " is retried after a network error in the handshake (W10)",
			Operations:  append(suites.Stale("client"), hello("client"), o.Call("client", "", "")),
			Events: []suites.Expected{
				{Client: "client", Events: append(suites.PingEvents(databaseName), o.Attempts(1, 0, numbered)...)},
				{Client: "client", EventType: "cmap", Events: []string{started, started, failed, started}},
			},
			Outcome: o.Outcome(true),
		})
		f.Add(suites.Test{
			Description: o.Title() + " is not retried after a network error in the handshake with retryWrites false (W30)",
			Operations:  append(suites.Stale("noRetry"), hello("noRetry"), o.Call("noRetry", "", raisesNetworkPlain)),
			Events: []suites.Expected{
				{Client: "noRetry", Events: suites.PingEvents(databaseName)},
				{Client: "noRetry", EventType: "cmap", Events: []string{started, started, failed}},
			},
			Outcome: o.Outcome(false),
		})
	}
	// Behind a load balancer there are no monitors, which a fail point that goes
	// on would let lose the server.
	o := operations[0]
	f.Add(suites.Test{
		Description: o.Title() + " raises the network error of the attempt if the handshakes of the retries fail (R21)",
		Require:     []string{fmt.Sprintf("{ minServerVersion: %q, topologies: [ load-balanced ] }", later(o, "5.0"))},
		Operations: []string{suites.Ping("warm"), suites.FailPoint(o.Command+", hello, isMaster", suites.Always, "appName: "+app+"warm, "+suites.Closes),
			o.Call("warm", "", "{ isClientError: true, errorLabelsContain: [ "+label+" ], errorLabelsOmit: [ SystemOverloadedError ] }")},
		Events:  []suites.Expected{{Client: "warm", Events: append(suites.PingEvents(databaseName), o.Attempts(1, 1, numbered)...)}},
		Outcome: o.Outcome(false),
	})
	if operations[0].Least == "" {
		f.Entities = append(f.Entities, suites.Session("client"), suites.Session("noRetry"))
		for _, by := range []string{"client", "noRetry"} {
			// A broken hello may come of overload, after which the write concern
			// stays what it was.
			for _, t := range endsAfter(by, hello(by), "{ $$exists: false }", "the handshake", "commitTransaction", "abortTransaction") {
				t.Events = append(t.Events, suites.Expected{Client: by, EventType: "cmap", Events: []string{started, started, failed, started}})
				f.Add(t)
			}
		}
	}
	return f
}

// endsAfter ends transactions on a connection that needs a handshake, which
// fails once. Behind a load balancer they keep to their connection.
func endsAfter(by, fails, concern, where string, commands ...string) (out []suites.Test) {
	o, s := named("collection", "insertOne", ""), suites.Suffix(by)
	on := func(name string) string { return "{ name: " + name + ", object: session" + s + " }" }
	option, rule := "", "W31"
	if by == "noRetry" {
		option, rule = notRetriedWithOption, "W30"
	}
	for _, command := range commands {
		events := o.Attempts(1, 0, "startTransaction: true")
		if command == "commitTransaction" { // nobody sees the commands that clean up
			events = append(events, suites.StartedEvent("{ commitTransaction: 1, writeConcern: "+concern+" }", command, "admin"), suites.SucceededEvent(command))
		}
		out = append(out, suites.Test{
			Description: fmt.Sprintf("%s is retried after a network error in %s%s (%s)", command, where, option, rule),
			Require:     []string{`{ minServerVersion: "4.4.7", topologies: [ replicaset, sharded ] }`},
			Operations: []string{on("startTransaction"), o.Call(by, "session: session"+s, ""),
				"{ name: wait, object: testRunner, arguments: { ms: 50 } }", fails, on(command)},
			Events:  []suites.Expected{{Client: by, Events: events}},
			Outcome: o.Outcome(command == "commitTransaction"),
		})
	}
	return out
}

// handshakeAuth fails the authentication of a new connection.
func handshakeAuth(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "handshake-authentication",
		Description: "retryable writes: a handshake that fails in authentication",
		About: []string{"The pool has no fresh connection when the write comes, and saslContinue fails on the new one. No command",
			"was sent then: command events show one attempt."},
		Least: "1.10", // operation wait
		Require: []string{`{ minServerVersion: "4.2", auth: true, topologies: [ replicaset, sharded ] }`,
			`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`},
		Clients: []suites.Client{suites.SetupClient(), suites.Observed("client", "{ maxIdleTimeMS: 10 }"),
			suites.Observed("noRetry", "{ retryWrites: false, maxIdleTimeMS: 10 }")},
		Entities: append(objects("client", "database", "collection"), objects("noRetry", "database", "collection")...),
	}
	for _, o := range operations {
		times := 1
		tell := func(says, rule, by, data, raises string, require ...string) {
			events := suites.PingEvents(databaseName)
			if raises == "" {
				events = append(events, o.Attempts(1, 0, numbered)...)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
				Require:     require,
				Operations:  append(suites.Stale(by), suites.FailPoint("saslContinue", suites.Times(times), data), o.Call(by, "", raises)),
				Events:      []suites.Expected{{Client: by, Events: events}},
				Outcome:     o.Outcome(raises == ""),
			})
		}
		tell("is retried after a network error in saslContinue", "W10", "client", suites.Closes, "")
		tell("is retried after ShutdownInProgress with the label "+label+" in saslContinue", "W10", "client", suites.Labelled(coded("ShutdownInProgress"), label), "",
			fmt.Sprintf("{ minServerVersion: %q, auth: true }", later(o, "4.4")))
		if o.Name == "insertOne" || o.Name == "clientBulkWrite" {
			times = 2
			tell("is not retried again after a second network error in saslContinue", "R35", "client", suites.Closes, "{ isError: true }")
			times = 1
		}
		tell("is not retried after AuthenticationFailed in saslContinue", "R34", "client", "errorCode: 18", "{ isError: true, errorLabelsOmit: [ "+label+" ] }")
		tell("is not retried after a network error in saslContinue with retryWrites false", "W30", "noRetry", suites.Closes, "{ isError: true, errorLabelsOmit: [ "+label+" ] }")
	}
	if operations[0].Least == "" {
		f.Entities = append(f.Entities, suites.Session("client"), suites.Session("noRetry"))
		for _, by := range []string{"client", "noRetry"} {
			// Of an abort there would be nothing to see.
			for _, t := range endsAfter(by, suites.FailPoint("saslContinue", suites.Times(1), suites.Closes), "{ w: majority, wtimeout: 10000 }", "saslContinue", "commitTransaction") {
				t.Require = []string{`{ minServerVersion: "4.2", auth: true, topologies: [ replicaset, sharded ] }`}
				f.Add(t)
			}
		}
	}
	return f
}

// poolCleared lets one of two writes wait for the only connection while the
// other fails and clears the pool.
func poolCleared() *suites.File {
	events := []string{"connectionCheckedOutEvent", "connectionCheckOutFailedEvent", "poolClearedEvent", "commandStartedEvent"}
	f := &suites.File{
		Name:        "pool-cleared",
		Description: "retryable writes: a pool that is cleared",
		About: []string{"Two writes share a pool of one connection. The first fails and clears the pool, so that the second, which",
			"waits for the connection, fails to check one out; both are retried."},
		Least:   "1.10", // threads
		Require: []string{`{ minServerVersion: "4.4", topologies: [ replicaset, sharded ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ maxPoolSize: 1 }", Observe: events},
			{ID: "noRetry", Options: "{ maxPoolSize: 1, retryWrites: false }", Observe: events},
		},
		Entities: append(append(objects("client", "collection"), objects("noRetry", "collection")...),
			"thread: { id: first }", "thread: { id: second }"),
	}
	const increase = "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"
	for _, r := range []struct {
		name, first, second string
		wrote               []string
	}{
		{"insertOne", "{ document: " + fourth + " }", "{ document: " + fifth + " }", []string{first, second, third, fourth, fifth}},
		{"updateOne", increase, increase, []string{first, "{ _id: 2, x: 24 }", third}},
		{"findOneAndUpdate", increase, increase, []string{first, "{ _id: 2, x: 24 }", third}},
	} {
		o := named("collection", r.name, "")
		o.Result, o.Wrote = "", r.wrote
		for _, s := range []struct {
			by, says, rule, raises, carries string
			started                         int
		}{
			{"client", "is retried after the pool was cleared while it waited", "W10", "", "lsid: { $$exists: true }, txnNumber: { $$type: long }", 3},
			{"noRetry", "is not retried after the pool was cleared with retryWrites false", "W30", "{ isError: true, errorLabelsOmit: [ " + label + " ] }", unmarked, 1},
		} {
			run := func(thread, arguments, raises string) string {
				o.Arguments = arguments
				return fmt.Sprintf("{ name: runOnThread, object: testRunner, arguments: { thread: %s, operation: %s } }", thread, o.Call(s.by, "", raises))
			}
			join := func(thread string) string {
				return fmt.Sprintf("{ name: waitForThread, object: testRunner, arguments: { thread: %s } }", thread)
			}
			raises := s.raises
			if raises != "" {
				raises = suites.RaisedCode(coded("ShutdownInProgress"))
			}
			var commands []string
			for range s.started {
				commands = append(commands, suites.StartedEvent("{ "+o.Command+": "+suites.Collection+", "+s.carries+" }", o.Command, o.Database))
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations: []string{
					suites.FailPoint(o.Command, suites.Times(1), suites.Labelled(coded("ShutdownInProgress"), label)+", blockConnection: true, blockTimeMS: 500"),
					run("first", r.first, raises),
					fmt.Sprintf("{ name: waitForEvent, object: testRunner, arguments: { client: %s, event: { commandStartedEvent: { commandName: %s } }, count: 1 } }", s.by, o.Command),
					run("second", r.second, s.raises), join("first"), join("second"),
					// In whichever order: the first write may have its new
					// connection before the second one is told.
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { connectionCheckOutFailedEvent: { reason: connectionError } }, count: 1 } }", s.by),
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { poolClearedEvent: {} }, count: 1 } }", s.by),
				},
				Events: []suites.Expected{
					{Client: s.by, Events: commands},
					{Client: s.by, EventType: "cmap", Extra: true, Events: []string{"{ connectionCheckedOutEvent: {} }", "{ poolClearedEvent: {} }"}},
				},
				Outcome: o.Outcome(s.raises == ""),
			})
		}
	}
	return f
}
