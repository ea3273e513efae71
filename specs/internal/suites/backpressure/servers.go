package backpressure

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// retargeting lets the primary of a replica set be overloaded while its
// secondaries are not.
func retargeting() *suites.File {
	const preferred = "readPreference: primaryPreferred"
	f := &suites.File{
		Name:        "retargeting",
		Description: "client backpressure: enableOverloadRetargeting",
		About: []string{"The primary is overloaded for good. With enableOverloadRetargeting the retry of a read that prefers the primary goes to",
			"a secondary, which the replica set must have; without, all attempts go to the primary. Writes have no choice."},
		Require: []string{`{ minServerVersion: "4.4", topologies: [ replicaset ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			suites.Observed("client", "{ enableOverloadRetargeting: true, "+preferred+" }"),
			suites.Observed("default", "{ "+preferred+" }"),
			suites.Observed("off", "{ enableOverloadRetargeting: false, "+preferred+" }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	// A ping on the primary and one on a secondary make the client discover
	// both, so that the first attempt goes to the one and the retry to the other.
	ping := func(by, mode string) string {
		return fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 }, readPreference: { mode: %s } } }", suites.Suffix(by), mode)
	}
	tell := func(description, by string, o operation, mode, data string, attempts int, raises string) {
		failing := attempts
		if raises == "" {
			failing--
		}
		f.Add(suites.Test{
			Description: description,
			Operations:  []string{ping(by, "primary"), ping(by, "secondary"), suites.FailPoint(o.Command, mode, data), o.Call(by, "", raises)},
			Events: []suites.Expected{{Client: by, Events: join(suites.PingEvents(databaseName), suites.PingEvents(databaseName),
				o.Attempts(attempts, failing, o.carries(by)))}},
			Outcome: o.outcome(raises == ""),
		})
	}
	for _, name := range []string{"find", "findOne", "aggregate", "count", "countDocuments", "estimatedDocumentCount", "distinct"} {
		o := named("collection." + name)
		o.Result = "" // the secondary may not have the documents yet
		tell(o.Title()+" is retried on a secondary with enableOverloadRetargeting (R41)", "client", o, suites.Always, overload(), 2, "")
		tell(o.Title()+" is retried on the primary by default (R41)", "default", o, suites.Always, overload(), 3, raised(overloaded, retryable))
	}
	find, insert := named("collection.find"), named("collection.insertOne")
	find.Result = ""
	unreachable := suites.Code{Number: 6, Name: "HostUnreachable"}
	tell("collection.find is retried on the primary with enableOverloadRetargeting false (R41)", "off", find, suites.Always, overload(), 3, raised(overloaded, retryable))
	tell("collection.find is retried on the primary after another retryable error (R41)", "client", find, suites.Always, suites.Labelled(unreachable), 2, suites.RaisedCode(unreachable))
	tell("collection.find is retried on a secondary after a retryable error with "+overloaded+" alone (R41)", "client", find, suites.Always,
		suites.Labelled(unreachable, overloaded), 2, "")
	tell("collection.insertOne is retried on the primary with enableOverloadRetargeting (R41)", "client", insert, suites.Times(2), overload(), 3, "")
	return f
}

// otherMongos checks the deprioritized server as the suites of retryable reads
// do: by chance. One retry has to be enough.
func otherMongos() *suites.File {
	const rounds, app = 12, "utrOtherMongos"
	f := &suites.File{
		Name:        "sharded",
		Least:       "1.10", // operation wait
		Description: "client backpressure: retry on another mongos",
		About: []string{"One mongos is overloaded for good. The one retry that is allowed goes to another one, whatever enableOverloadRetargeting",
			"says, and succeeds always; one that ignored the deprioritized server would not for long."},
		Require: []string{`{ minServerVersion: "4.4", topologies: [ sharded ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			suites.AllMongoses("client", "{ maxAdaptiveRetries: 1 }"),
			suites.AllMongoses("off", "{ maxAdaptiveRetries: 1, enableOverloadRetargeting: false }")},
		Entities: append(objects("client", "collection"), objects("off", "collection")...),
	}
	for _, by := range []string{"client", "off"} {
		option := map[string]string{"client": "", "off": " with enableOverloadRetargeting false"}[by]
		for _, r := range []struct{ title, arguments string }{
			{"collection.find", "{ filter: { _id: 1 } }"},
			{"collection.updateOne", "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"},
			{"collection.updateMany", "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"},
		} {
			o := named(r.title)
			operations := []string{suites.MongosesKnown(by), suites.FailPoint(o.Command, suites.Always, overload())}
			for range rounds {
				operations = append(operations, suites.Operation{Object: "collection", Name: o.Name, Arguments: r.arguments}.Call(by, "", ""))
			}
			t := suites.Test{Description: fmt.Sprintf("%s is retried on another mongos%s (R40)", o.Title(), option), Operations: operations}
			if o.class == write {
				t.Outcome = []suites.Outcome{{Collection: suites.Collection, Documents: []string{"{ _id: 1, x: 11 }", fmt.Sprintf("{ _id: 2, x: %d }", 22+rounds), "{ _id: 3, x: 33 }"}}}
			}
			f.Add(t)
		}
	}
	// A hello that fails deprioritizes its mongos, too. The connections are idle
	// for too long each time.
	const hellos = "maxAdaptiveRetries: 1, appName: " + app + ", maxIdleTimeMS: 5, " + suites.Quiet
	f.Clients = append(f.Clients, suites.AllMongoses("idle", "{ "+hellos+" }"))
	f.Entities = append(f.Entities, objects("idle", "collection")...)
	for _, r := range []struct{ title, arguments string }{
		{"collection.find", "{ filter: { _id: 1 } }"}, {"collection.updateMany", "{ filter: { _id: 9 }, update: { $inc: { x: 1 } } }"},
	} {
		o := named(r.title)
		operations := []string{suites.MongosesKnown("idle"), suites.FailPoint("hello, isMaster", suites.Always, "appName: "+app+", "+suites.Closes)}
		for range rounds {
			operations = append(operations, "{ name: wait, object: testRunner, arguments: { ms: 20 } }",
				suites.Operation{Object: "collection", Name: o.Name, Arguments: r.arguments}.Call("idle", "", ""))
		}
		f.Add(suites.Test{Description: o.Title() + " is retried on another mongos after a network error in hello (R40)",
			Require: []string{`{ minServerVersion: "4.4.7", topologies: [ sharded ] }`}, Operations: operations})
	}
	return f
}

// sameMongos checks what keeps to its mongos: a cursor, and a transaction with
// its commit.
func sameMongos() *suites.File {
	const rounds = 8
	client := suites.AllMongoses("client", "")
	client.Observe, client.Ignore = append(client.Observe, suites.CommandEvents()...), []string{"killCursors"}
	f := &suites.File{
		Name:        "sharded-pinned",
		Description: "client backpressure: retry on the same mongos",
		About: []string{"A getMore goes to the mongos of its cursor, and the commands of a transaction to that of the transaction, however overloaded it is: no",
			"other mongos knows them. Which mongos has the cursor is chance; the session tells which one has the transaction."},
		Require:  []string{`{ minServerVersion: "4.4", topologies: [ sharded ] }`},
		Clients:  []suites.Client{suites.SetupClient(), client},
		Entities: append(objects("client", "collection"), suites.Session("client")),
	}
	operations := []string{suites.MongosesKnown("client")}
	find := suites.Operation{Object: "collection", Name: "find", Arguments: "{ filter: {}, sort: { _id: 1 }, batchSize: 2 }",
		Result: "[ { _id: 1, x: 11 }, { _id: 2, x: 22 }, { _id: 3, x: 33 } ]"}
	for range rounds {
		operations = append(operations, suites.FailPoint("getMore", suites.Times(1), overload()), find.Call("client", "", ""))
	}
	f.Add(suites.Test{Description: "getMore of collection.find is retried on the mongos of the cursor (B1)", Operations: operations})

	insert, update := named("collection.insertOne"), named("collection.updateOne")
	commit := ending("commitTransaction", "writeConcern: { $$exists: false }")
	overloads := func(command string) string {
		return suites.TargetedFailPoint("session", suites.Times(2), "failCommands: [ "+command+" ], "+overload())
	}
	const pinned = "{ name: assertSessionPinned, object: testRunner, arguments: { session: session } }"
	both := []suites.Outcome{{Collection: suites.Collection, Documents: []string{"{ _id: 1, x: 11 }", "{ _id: 2, x: 23 }", "{ _id: 3, x: 33 }", "{ _id: 4, x: 44 }"}}}
	f.Add(suites.Test{
		Description: "collection.updateOne is retried on the mongos of its transaction (B1)",
		Operations: []string{suites.MongosesKnown("client"), onSession("startTransaction", ""), insert.Call("client", "session: session", ""), overloads("update"),
			update.Call("client", "session: session", ""), pinned, onSession("commitTransaction", "")},
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), update.Attempts(3, 2, goesOn), commit.Attempts(1, 0, ""))}},
		Outcome: both,
	})
	f.Add(suites.Test{
		Description: "commitTransaction is retried on the mongos of its transaction (B1)",
		Operations: []string{suites.MongosesKnown("client"), onSession("startTransaction", ""), insert.Call("client", "session: session", ""),
			overloads("commitTransaction"), onSession("commitTransaction", ""), pinned},
		Events:  []suites.Expected{{Client: "client", Events: join(insert.Attempts(1, 0, begins), commit.Attempts(3, 2, ""))}},
		Outcome: insert.Outcome(true),
	})
	return f
}

// long are options with which the sum of all backoffs outlasts timeoutMS, but
// for one run in ten million: the chance that eight numbers below 1, each
// times its longest delay, make less than a second.
const long = "maxAdaptiveRetries: 8, timeoutMS: 1000"

// timeouts checks the limit of retries under timeoutMS, and the backoff that
// outlasts it.
func timeouts() *suites.File {
	f := &suites.File{
		Name:        "timeoutMS",
		Description: "client backpressure: retries under timeoutMS",
		About: []string{"With timeoutMS the number of retries has the same limit, and a backoff that would outlast it is not begun. Backoffs are",
			"random: eight of them end after a second, but for one run in ten million."},
		Least:   "1.9",
		Require: []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Clients: []suites.Client{suites.SetupClient(), suites.Observed("client", "{ timeoutMS: 20000 }"), suites.Observed("endless", "{ timeoutMS: 0 }"),
			suites.Observed("none", "{ timeoutMS: 20000, maxAdaptiveRetries: 0 }"), suites.Observed("long", "{ "+long+" }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	for _, title := range []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		o := named(title)
		tell := func(says, rule, by, mode string, attempts, failing int, raises string) {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
				Operations:  []string{suites.FailPoint(o.Command, mode, overload()), o.Call(by, "", raises)},
				Events:      []suites.Expected{{Client: by, Events: o.Attempts(attempts, failing, o.carries(by))}},
				Outcome:     o.outcome(raises == ""),
			})
		}
		tell("is retried twice within timeoutMS", "B1", "client", suites.Times(2), 3, 2, "")
		tell("is retried no more than twice within timeoutMS", "B4", "client", suites.Always, 3, 3, raised(overloaded, retryable))
		tell("is retried no more than twice with timeoutMS 0", "B4", "endless", suites.Always, 3, 3, raised(overloaded, retryable))
		tell("is not retried within timeoutMS with maxAdaptiveRetries 0", "B4", "none", suites.Times(1), 1, 1, raised(overloaded, retryable))
		f.Add(suites.Test{
			Description: o.Title() + " backs off until a backoff would outlast timeoutMS (B5)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(8), overload()), o.Call("long", "", "{ isError: true }")},
			Events:      []suites.Expected{{Client: "long", Extra: true, Events: o.Attempts(1, 1, o.carries("long"))}},
			Outcome:     o.outcome(false),
		})
	}
	return f
}

// baseBackoff lets the server say how long to wait: so little that all
// retries succeed before timeoutMS is over.
func baseBackoff() *suites.File {
	const parameter = "externalClientBaseBackoffMS"
	f := &suites.File{
		Name:        "baseBackoffMS",
		Description: "client backpressure: a base of the backoff that the server gives",
		About: []string{"The server asks for a base of 1 ms instead of 100, with which seven backoffs take 254 ms at the most. With 100 ms they",
			"would outlast timeoutMS nearly always."},
		Least:    "1.9",
		Require:  []string{`{ minServerVersion: "9.0", topologies: [ replicaset ], serverParameters: { ` + parameter + `: 0 } }`},
		Clients:  []suites.Client{suites.SetupClient(), suites.Observed("client", "{ maxAdaptiveRetries: 7, timeoutMS: 3000 }")},
		Entities: append(objects("client", "collection"), objects("setup", "admin")...),
	}
	set := func(n int) string {
		return fmt.Sprintf("{ name: runCommand, object: admin-setup, arguments: { commandName: setParameter, command: { setParameter: 1, %s: %d } } }", parameter, n)
	}
	for _, title := range []string{"collection.find", "collection.insertOne"} {
		o := named(title)
		f.Add(suites.Test{
			Description: o.Title() + " backs off for the time that baseBackoffMS of the error says (B6)",
			Operations:  []string{set(1), suites.FailPoint(o.Command, suites.Times(7), overload()), o.Call("client", "", ""), set(0)},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(8, 7, o.carries("client"))}},
			Outcome:     o.outcome(true),
		})
	}
	return f
}

// connections checks that a connection is not kept during a backoff.
func connections() *suites.File {
	f := &suites.File{
		Name:        "connections",
		Description: "client backpressure: connections of the attempts",
		About:       []string{"Each attempt checks a connection out and in again: none is kept during a backoff."},
		Require:     []string{`{ minServerVersion: "4.4", topologies: [ single, replicaset, sharded ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Observe: []string{"connectionCheckedOutEvent", "connectionCheckedInEvent", "poolClearedEvent"}}},
		Entities: objects("client", "collection"),
	}
	pair := []string{"{ connectionCheckedOutEvent: {} }", "{ connectionCheckedInEvent: {} }"}
	for _, title := range []string{"collection.find", "collection.updateMany", "collection.deleteMany", "database.runCommand with ping"} {
		o := named(title)
		f.Add(suites.Test{
			Description: o.Title() + " gives the connection back before each backoff (B6)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(2), overload()), o.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", EventType: "cmap", Events: strings.Split(strings.Repeat(strings.Join(pair, "|")+"|", 3), "|")[:6]}},
			Outcome:     o.outcome(true),
		})
	}
	return f
}
