package reads

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// Suites are the suites of retryable reads.
func Suites() suites.Specification {
	files := all()
	for _, f := range files {
		f.Database = databaseName
	}
	return suites.Specification{Name: "retryable-reads", Package: "reads", Files: files}
}

func noRetryClient() suites.Client { return suites.Observed("noRetry", "{ retryReads: false }") }

func objects(client string, kinds ...string) []string {
	return suites.Objects(databaseName, client, kinds...)
}

func all() []*suites.File {
	var files []*suites.File
	for _, o := range Operations(databaseName) {
		files = append(files, ofOperation(o))
	}
	return append(files, secondError(), neverRetried(), sessions(), transactions(), otherMongos(), timeouts(),
		handshakeHello(), handshakeAuth(), poolCleared(), selectionFails(),
		notRetryable(), sequences())
}

func requirement(o suites.Operation) string {
	if o.Watches {
		return suites.NoSingle
	}
	return suites.Anywhere
}

// ofOperation tells all stories of one operation.
func ofOperation(o suites.Operation) *suites.File {
	f := &suites.File{
		Name:        o.File(),
		Description: "retryable reads: " + o.Title(),
		About:       []string{"Each error that makes " + o.Title() + " retryable, errors that do not, and retryReads."},
		Require:     []string{requirement(o)},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient(), noRetryClient()},
		Entities:    append(objects("client", o.Object), objects("noRetry", o.Object)...),
		Bucket:      o.Object == "bucket",
	}
	for _, s := range stories() {
		by := "client"
		if s.noRetry {
			by = "noRetry"
		}
		t := suites.Test{Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule)}
		if s.fails != "" {
			t.Operations = append(t.Operations, suites.FailPoint(o.Command, suites.Times(s.times), s.fails))
		}
		t.Operations = append(t.Operations, o.Call(by, "", s.raises))
		t.Events = []suites.Expected{{Client: by, Events: o.Attempts(s.attempts, min(s.times, s.attempts), "")}}
		f.Add(t)
	}
	return f
}

// secondError lets the retry reach a server that refuses the command for a
// reason of its own, so that the two errors can be told apart. A server looks
// for unknown stages before a fail point strikes, and into filters after it.
func secondError() *suites.File {
	f := &suites.File{
		Name:        "second-error",
		Description: "retryable reads: the error that is raised after a retry",
		About:       []string{"The first attempt fails by a fail point, the retry by what the command asks for. The second error says more, and is raised."},
		Require:     []string{suites.Anywhere},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    objects("client", "collection"),
	}
	const match = "{ $utrUnknown: 1 }"
	const stage = "[ { $match: " + match + " } ]"
	for _, r := range []struct {
		name, arguments, started string
		code                     suites.Code
	}{
		{"aggregate", "{ pipeline: " + stage + " }", "{ aggregate: " + suites.Collection + ", pipeline: " + stage + " }", suites.Code{Number: 2, Name: "BadValue"}},
		{"count", "{ filter: " + match + " }", "{ count: " + suites.Collection + ", query: " + match + " }", suites.Code{Number: 2, Name: "BadValue"}},
		{"countDocuments", "{ filter: " + match + " }", "{ aggregate: " + suites.Collection + " }", suites.Code{Number: 2, Name: "BadValue"}},
		{"distinct", "{ fieldName: x, filter: " + match + " }", "{ distinct: " + suites.Collection + ", key: x, query: " + match + " }", suites.Code{Number: 2, Name: "BadValue"}},
		{"find", "{ filter: " + match + " }", "{ find: " + suites.Collection + ", filter: " + match + " }", suites.Code{Number: 2, Name: "BadValue"}},
		{"findOne", "{ filter: " + match + " }", "{ find: " + suites.Collection + ", filter: " + match + " }", suites.Code{Number: 2, Name: "BadValue"}},
	} {
		o := named("collection", r.name)
		o.Arguments, o.Started = r.arguments, r.started
		for _, first := range []struct{ says, data string }{
			{"a network error", suites.Closes}, {retryable[0].Name, suites.ErrorCode(retryable[0])}, {retryable[9].Name, suites.ErrorCode(retryable[9])},
		} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s raises %s of the retry, not %s of the first attempt (R20)", o.Title(), r.code.Name, first.says),
				Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), first.data), o.Call("client", "", suites.RaisedCode(r.code))},
				Events:      []suites.Expected{{Client: "client", Events: o.Attempts(2, 2, "")}},
			})
		}
	}
	return f
}

// neverRetried are the operations of "Unsupported Read Operations".
func neverRetried() *suites.File {
	f := &suites.File{
		Name:        "never-retried",
		Description: "retryable reads: operations that are never retried",
		About:       []string{"getMore, generic commands, mapReduce and aggregations that write are attempted once, whatever the error."},
		Require:     []string{suites.Anywhere},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    objects("client", "database", "collection"),
	}
	type row struct {
		what, name, command, object, arguments, started string
	}
	rows := []row{
		{"collection.aggregate with $out", "aggregate", "aggregate", "collection",
			`{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $out: written } ] }`,
			`{ aggregate: ` + suites.Collection + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $out: written } ] }`},
		{"collection.aggregate with $merge", "aggregate", "aggregate", "collection",
			`{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $merge: { into: written } } ] }`,
			`{ aggregate: ` + suites.Collection + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $merge: { into: written } } ] }`},
		{"collection.mapReduce", "mapReduce", "mapReduce", "collection",
			`{ map: { $code: "function() { emit(0, this.x) }" }, reduce: { $code: "function(key, values) { return Array.sum(values) }" }, out: { inline: 1 } }`,
			`{ mapReduce: ` + suites.Collection + `, out: { inline: 1 } }`},
		{"database.runCommand with a find", "runCommand", "find", "database",
			`{ commandName: find, command: { find: ` + suites.Collection + `, filter: { _id: 1 } } }`,
			`{ find: ` + suites.Collection + `, filter: { _id: 1 } }`},
		{"database.runCommand with a count", "runCommand", "count", "database",
			`{ commandName: count, command: { count: ` + suites.Collection + ` } }`,
			`{ count: ` + suites.Collection + ` }`},
	}
	errors := []struct{ says, data, raises string }{{"a network error", suites.Closes, suites.RaisedNetwork}}
	for _, c := range []suites.Code{retryable[0], retryable[3], retryable[8], retryable[9]} {
		errors = append(errors, struct{ says, data, raises string }{c.Name, suites.ErrorCode(c), suites.RaisedCode(c)})
	}
	for _, r := range rows {
		rule := map[bool]string{true: "W35", false: "R33"}[r.name == "aggregate"]
		for _, e := range errors {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is not retried after %s (%s)", r.what, e.says, rule),
				Operations: []string{
					suites.FailPoint(r.command, suites.Times(1), e.data),
					fmt.Sprintf("{ name: %s, object: %s, arguments: %s, expectError: %s }", r.name, r.object, r.arguments, e.raises),
				},
				Events: []suites.Expected{{Client: "client", Events: []string{suites.StartedEvent(r.started, r.command, databaseName), suites.FailedEvent(r.command)}}},
			})
		}
	}
	for _, e := range errors {
		f.Add(suites.Test{
			Description: fmt.Sprintf("getMore of collection.find is not retried after %s (R33)", e.says),
			Operations: []string{
				suites.FailPoint("getMore", suites.Times(1), e.data),
				fmt.Sprintf("{ name: find, object: collection, arguments: { filter: {}, batchSize: 2 }, expectError: %s }", e.raises),
			},
			Events: []suites.Expected{{Client: "client", Events: []string{
				suites.StartedEvent(`{ find: `+suites.Collection+`, batchSize: 2 }`, "find", databaseName), suites.SucceededEvent("find"),
				suites.StartedEvent(`{ getMore: { $$type: [ int, long ] }, collection: `+suites.Collection+` }`, "getMore", databaseName), suites.FailedEvent("getMore"),
			}}},
		})
	}
	return f
}

// sessions checks that a retry goes on in the same session.
func sessions() *suites.File {
	f := &suites.File{
		Name:        "sessions",
		Description: "retryable reads: the session of a retry",
		About:       []string{"A retry belongs to the session of the first attempt, explicit or implicit."},
		Require:     []string{suites.Anywhere},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    append(objects("client", "database", "collection"), "session: { id: session, client: client }"),
	}
	for _, o := range Operations(databaseName) {
		if !o.Session {
			continue
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried with the lsid of its explicit session (R5)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "session: session", "")},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(2, 1, "lsid: { $$sessionLsid: session }")}},
		})
		f.Add(suites.Test{
			Description: o.Title() + " is retried with the lsid of its implicit session (R5)",
			Operations: []string{
				suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "", ""),
				"{ name: assertSameLsidOnLastTwoCommands, object: testRunner, arguments: { client: client } }",
			},
			Events: []suites.Expected{{Client: "client", Events: o.Attempts(2, 1, "lsid: { $$exists: true }")}},
		})
	}
	return f
}

// transactions checks that nothing in a transaction is retried, and that the
// session is as before afterwards.
func transactions() *suites.File {
	f := &suites.File{
		Name:        "transactions",
		Description: "retryable reads: no retries in a transaction",
		About:       []string{"A read in a transaction is attempted once; after the transaction its session retries again."},
		Require:     []string{suites.NoSingle},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    append(objects("client", "collection"), "session: { id: session, client: client }"),
	}
	session := func(name string) string { return "{ name: " + name + ", object: session }" }
	for _, o := range Operations(databaseName) {
		if !o.Txn {
			continue
		}
		inside := "lsid: { $$sessionLsid: session }, startTransaction: true, autocommit: false"
		for _, e := range []struct{ says, data, raises string }{
			{"a network error", suites.Closes, "{ isClientError: true, errorLabelsContain: [ TransientTransactionError ] }"},
			{"HostUnreachable", suites.ErrorCode(retryable[0]), suites.RaisedCode(retryable[0])},
			{"InterruptedAtShutdown", suites.ErrorCode(retryable[9]), suites.RaisedCode(retryable[9])},
		} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is not retried in a transaction after %s (R31)", o.Title(), e.says),
				Operations: []string{
					session("startTransaction"), suites.FailPoint(o.Command, suites.Times(1), e.data),
					o.Call("client", "session: session", e.raises), session("abortTransaction"),
				},
				Events: []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, inside)}},
			})
		}
		outside := "lsid: { $$sessionLsid: session }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }"
		events := append(o.Attempts(1, 0, inside), o.Attempts(2, 1, outside)...)
		f.Add(suites.Test{
			Description: o.Title() + " is retried after the transaction of its session (R10)",
			Operations: []string{
				session("startTransaction"), o.Call("client", "session: session", ""), session("abortTransaction"),
				suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "session: session", ""),
			},
			Events: []suites.Expected{{Client: "client", Events: events}},
		})
	}
	return f
}

// otherMongos checks the deprioritized server. The format cannot tell one
// mongos from another, so chance has to: a fail point makes every attempt on
// one of them fail. With the failed one deprioritized, each operation succeeds
// always; without, a quarter of them fails when there are two.
func otherMongos() *suites.File {
	const rounds = 12
	f := &suites.File{
		Name:        "sharded",
		Description: "retryable reads: retry on another mongos",
		About: []string{"One mongos fails every attempt, with an error that leaves it known and selectable. A retry that",
			"goes to another one always succeeds; one that ignored the deprioritized server would not for long."},
		Require:  []string{suites.ShardedSet},
		Clients:  []suites.Client{suites.SetupClient(), suites.AllMongoses("client", ""), {ID: "one", Observe: suites.CommandEvents()}},
		Entities: append(objects("client", "admin", "database", "collection"), objects("one", "admin", "database", "collection")...),
	}
	for _, o := range Operations(databaseName) {
		if o.Object == "bucket" {
			continue
		}
		var repeated []string
		for range rounds {
			repeated = append(repeated, o.Call("client", "", ""))
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried on another mongos (R40)",
			Operations:  append([]string{suites.MongosesKnown("client"), suites.FailPoint(o.Command, "alwaysOn", suites.ErrorCode(retryable[0]))}, repeated...),
		})
		f.Add(suites.Test{
			Description: o.Title() + " is retried on the same mongos if there is no other (R40)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), suites.ErrorCode(retryable[0])), o.Call("one", "", "")},
			Events:      []suites.Expected{{Client: "one", Events: o.Attempts(2, 1, "")}},
		})
	}
	return f
}

// timeouts checks that timeoutMS lifts the limit of one retry.
func timeouts() *suites.File {
	f := &suites.File{
		Name:        "timeoutMS",
		Description: "retryable reads: retries under timeoutMS",
		About:       []string{"With timeoutMS a read is retried until it succeeds or the time is over, which is one time for all attempts."},
		Least:       "1.9",
		Require:     []string{suites.Anywhere},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ timeoutMS: 20000 }", Observe: suites.CommandEvents()},
			{ID: "endless", Options: "{ timeoutMS: 0 }", Observe: suites.CommandEvents()},
			{ID: "noRetry", Options: "{ timeoutMS: 20000, retryReads: false }", Observe: suites.CommandEvents()},
		},
		Bucket: true,
	}
	for _, by := range []string{"client", "endless", "noRetry"} {
		f.Entities = append(f.Entities, objects(by, "admin", "database", "collection", "bucket")...)
	}
	code := retryable[1] // leaves the server known, so that no time is lost
	for _, o := range Operations(databaseName) {
		if o.Watches {
			continue // what timeoutMS means while a change stream is opened differs between drivers
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried three times within timeoutMS (R36)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(3), suites.ErrorCode(code)), o.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(4, 3, "")}},
		})
		f.Add(suites.Test{
			Description: o.Title() + " is not retried within timeoutMS with retryReads false (R30)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), suites.ErrorCode(code)), o.Call("noRetry", "", suites.RaisedCode(code))},
			Events:      []suites.Expected{{Client: "noRetry", Events: o.Attempts(1, 1, "")}},
		})
	}
	find := named("collection", "find")
	f.Add(suites.Test{
		Description: "collection.find is retried three times with timeoutMS 0, which is no limit (R36)",
		Operations:  []string{suites.FailPoint("find", suites.Times(3), suites.ErrorCode(code)), find.Call("endless", "", "")},
		Events:      []suites.Expected{{Client: "endless", Events: find.Attempts(4, 3, "")}},
	})
	f.Add(suites.Test{
		Description: "collection.find is not retried after MaxTimeMSExpired, which is a timeout under timeoutMS (R34)",
		Operations: []string{suites.FailPoint("find", suites.Times(1), suites.ErrorCode(others[0])),
			find.Call("client", "", "{ isTimeoutError: true }")},
		Events: []suites.Expected{{Client: "client", Events: find.Attempts(1, 1, "")}},
	})
	// The first read opens the connection, so that its cost is not part of the
	// time. One attempt fits into it with a wide margin, and two never do.
	f.Add(suites.Test{
		Description: "collection.find ends in a timeout in the attempt that outlasts timeoutMS (R36)",
		Require:     []string{`{ minServerVersion: "4.4" }`},
		Operations: []string{
			find.Call("client", "", ""),
			suites.FailPoint("find", "alwaysOn", suites.ErrorCode(code)+", blockConnection: true, blockTimeMS: 1000"),
			find.Call("client", "timeoutMS: 1800", "{ isTimeoutError: true }"),
		},
		Events: []suites.Expected{{Client: "client", Events: append(find.Attempts(1, 0, ""), find.Attempts(2, 2, "")...)}},
	})
	return f
}

func named(object, name string) suites.Operation {
	for _, o := range Operations(databaseName) {
		if o.Object == object && o.Name == name {
			return o
		}
	}
	return suites.Operation{}
}

// handshakeHello fails the hello of a new connection. The connection that
// discovered the deployment is idle for too long when the read comes, so that
// the read needs a new one; appName keeps the fail point to this client.
func handshakeHello() *suites.File {
	const app = "utrHandshake"
	events := append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"}, suites.CommandEvents()...)
	f := &suites.File{
		Name:        "handshake-hello",
		Description: "retryable reads: a handshake that fails in hello",
		About: []string{"The pool has no fresh connection when the read comes, and the hello of the new one fails. No command",
			"was sent then: command events show one attempt, pool events show two."},
		Least:   "1.10", // operation wait
		Require: []string{`{ minServerVersion: "4.4.7" }`},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ appName: " + app + "client, maxIdleTimeMS: 10, " + suites.Quiet + " }", Observe: events},
			{ID: "noRetry", Options: "{ retryReads: false, appName: " + app + "noRetry, maxIdleTimeMS: 10, " + suites.Quiet + " }", Observe: events},
		},
		Entities: append(objects("client", "database", "collection"), objects("noRetry", "database", "collection")...),
	}
	// Each client has a name of its own: the other may still be discovering.
	warm := func(by string) []string {
		return []string{
			fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", suites.Suffix(by)),
			"{ name: wait, object: testRunner, arguments: { ms: 50 } }",
			suites.FailPoint("hello, isMaster", suites.Times(1), "appName: "+app+by+", "+suites.Closes),
		}
	}
	ping := []string{suites.StartedEvent("{ ping: 1 }", "ping", databaseName), suites.SucceededEvent("ping")}
	started, failed := "{ connectionCheckOutStartedEvent: {} }", "{ connectionCheckOutFailedEvent: { reason: connectionError } }"
	for _, o := range []suites.Operation{
		named("client", "listDatabases"), named("database", "listCollections"), named("collection", "aggregate"), named("collection", "distinct"),
		named("collection", "estimatedDocumentCount"), named("collection", "find"), named("collection", "listIndexes"),
	} {
		f.Add(suites.Test{
			Description: o.Title() + " is retried after a network error in the handshake (R13)",
			Operations:  append(warm("client"), o.Call("client", "", "")),
			Events: []suites.Expected{
				{Client: "client", Events: append(append([]string{}, ping...), o.Attempts(1, 0, "")...)},
				{Client: "client", EventType: "cmap", Events: []string{started, started, failed, started}},
			},
		})
	}
	find := named("collection", "find")
	f.Add(suites.Test{
		Description: "collection.find is not retried after a network error in the handshake with retryReads false (R30)",
		Operations:  append(warm("noRetry"), find.Call("noRetry", "", suites.RaisedNetwork)),
		Events: []suites.Expected{
			{Client: "noRetry", Events: ping},
			{Client: "noRetry", EventType: "cmap", Events: []string{started, started, failed}},
		},
	})
	return f
}

// handshakeAuth fails the authentication of a new connection.
func handshakeAuth() *suites.File {
	f := &suites.File{
		Name:        "handshake-authentication",
		Description: "retryable reads: a handshake that fails in authentication",
		About: []string{"The pool has no fresh connection when the read comes, and saslContinue fails on the new one. No command",
			"was sent then: command events show one attempt."},
		Least: "1.10", // operation wait
		Require: []string{`{ minServerVersion: "4.2", auth: true, topologies: [ single, replicaset, sharded ] }`,
			`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ maxIdleTimeMS: 10 }", Observe: suites.CommandEvents()},
			{ID: "noRetry", Options: "{ retryReads: false, maxIdleTimeMS: 10 }", Observe: suites.CommandEvents()},
		},
		Entities: append(objects("client", "admin", "database", "collection", "bucket"), objects("noRetry", "admin", "database", "collection", "bucket")...),
		Bucket:   true,
	}
	ping := []string{suites.StartedEvent("{ ping: 1 }", "ping", databaseName), suites.SucceededEvent("ping")}
	times := 1
	fails := func(by, data string) []string {
		return []string{
			fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", suites.Suffix(by)),
			"{ name: wait, object: testRunner, arguments: { ms: 50 } }",
			suites.FailPoint("saslContinue", suites.Times(times), data),
		}
	}
	for _, o := range Operations(databaseName) {
		var require []string
		if o.Watches {
			require = []string{suites.NoSingle}
		}
		tell := func(says, rule, by, data, raises string) {
			events := append([]string{}, ping...)
			if raises == "" {
				events = append(events, o.Attempts(1, 0, "")...)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), says, rule),
				Require:     require,
				Operations:  append(fails(by, data), o.Call(by, "", raises)),
				Events:      []suites.Expected{{Client: by, Events: events}},
			})
		}
		const anyError = "{ isError: true }"
		tell("is retried after a network error in saslContinue", "R13", "client", suites.Closes, "")
		tell("is retried after ShutdownInProgress in saslContinue", "R13", "client", suites.ErrorCode(retryable[3]), "")
		tell("is not retried after AuthenticationFailed in saslContinue", "R34", "client", "errorCode: 18", anyError)
		if o.Name == "find" {
			times = 2
			tell("is not retried again after a second network error in saslContinue", "R35", "client", suites.Closes, anyError)
			times = 1
		}
		tell("is not retried after a network error in saslContinue with retryReads false", "R30", "noRetry", suites.Closes, anyError)
	}
	return f
}

// poolCleared lets one of two reads wait for the only connection while the
// other fails and clears the pool.
func poolCleared() *suites.File {
	events := append([]string{"connectionCheckedOutEvent", "connectionCheckOutFailedEvent", "poolClearedEvent"}, "commandStartedEvent")
	f := &suites.File{
		Name:        "pool-cleared",
		Description: "retryable reads: a pool that is cleared",
		About: []string{"Two reads share a pool of one connection. The first fails and clears the pool, so that the second, which",
			"waits for the connection, fails to check one out; both are retried."},
		Least:   "1.10", // threads
		Require: []string{`{ minServerVersion: "4.2.9", topologies: [ single, replicaset, sharded ] }`},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ maxPoolSize: 1 }", Observe: events},
			{ID: "noRetry", Options: "{ maxPoolSize: 1, retryReads: false }", Observe: events},
		},
		Entities: append(append(objects("client", "collection"), objects("noRetry", "collection")...),
			"thread: { id: first }", "thread: { id: second }"),
	}
	for _, o := range []suites.Operation{named("collection", "find"), named("collection", "aggregate"), named("collection", "distinct")} {
		for _, s := range []struct {
			by, says, rule, raises string
			started                int
		}{
			{"client", "is retried after the pool was cleared while it waited", "R12", "", 3},
			{"noRetry", "is not retried after the pool was cleared with retryReads false", "R30", "{ isError: true }", 1},
		} {
			started := suites.StartedEvent(o.Started, o.Command, o.Database)
			run := func(thread string) string {
				return fmt.Sprintf("{ name: runOnThread, object: testRunner, arguments: { thread: %s, operation: %s } }", thread, o.Call(s.by, "", s.raises))
			}
			join := func(thread string) string {
				return fmt.Sprintf("{ name: waitForThread, object: testRunner, arguments: { thread: %s } }", thread)
			}
			var commands []string
			for range s.started {
				commands = append(commands, started)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
				Operations: []string{
					suites.FailPoint(o.Command, suites.Times(1), suites.ErrorCode(retryable[3])+", blockConnection: true, blockTimeMS: 500"),
					run("first"),
					fmt.Sprintf("{ name: waitForEvent, object: testRunner, arguments: { client: %s, event: { commandStartedEvent: { commandName: %s } }, count: 1 } }", s.by, o.Command),
					run("second"), join("first"), join("second"),
					// In whichever order: the first read may have its new
					// connection before the second one is told.
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { connectionCheckOutFailedEvent: { reason: connectionError } }, count: 1 } }", s.by),
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { poolClearedEvent: {} }, count: 1 } }", s.by),
				},
				Events: []suites.Expected{
					{Client: s.by, Events: commands},
					{Client: s.by, EventType: "cmap", Extra: true, Events: []string{"{ connectionCheckedOutEvent: {} }", "{ poolClearedEvent: {} }"}},
				},
			})
		}
	}
	return f
}

// selectionFails makes the server unknown by the first error and keeps it so.
func selectionFails() *suites.File {
	const app = "utrSelection"
	f := &suites.File{
		Name:        "server-selection",
		Description: "retryable reads: no server for the retry",
		About: []string{"The first error makes the server unknown, and hello fails ever after: there is no server for the retry.",
			"The error of the attempt is raised then, not that of server selection."},
		Require: []string{suites.Monitored},
		Clients: []suites.Client{suites.SetupClient(),
			{ID: "client", Options: "{ appName: " + app + ", serverSelectionTimeoutMS: 500, " + suites.Quiet + " }", Observe: suites.CommandEvents()},
			{ID: "timed", Options: "{ appName: " + app + ", timeoutMS: 1500, " + suites.Quiet + " }", Observe: suites.CommandEvents()}},
		Entities: append(objects("client", "database", "collection"), objects("timed", "database", "collection")...),
		Least:    "1.9",
	}
	for _, o := range []suites.Operation{named("collection", "find"), named("collection", "aggregate"), named("database", "listCollections")} {
		// Codes of a shutdown: errors of a step-down carry the topologyVersion
		// that the client has already, and drivers take them for old news.
		for _, c := range []suites.Code{retryable[3], retryable[9]} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s raises %s if no server can be selected for the retry (R3)", o.Title(), c.Name),
				Operations: []string{
					"{ name: runCommand, object: database, arguments: { commandName: ping, command: { ping: 1 } } }",
					suites.FailPoint(o.Command+", hello, isMaster", "alwaysOn", suites.ErrorCode(c)+", appName: "+app),
					o.Call("client", "", suites.RaisedCode(c)),
				},
				Events: []suites.Expected{{Client: "client", Events: append([]string{
					suites.StartedEvent("{ ping: 1 }", "ping", databaseName), suites.SucceededEvent("ping")}, o.Attempts(1, 1, "")...)}},
			})
		}
	}
	find := named("collection", "find")
	f.Add(suites.Test{
		Description: "collection.find raises a timeout if no server can be selected for the retry within timeoutMS (R37)",
		Operations: []string{suites.Ping("timed"),
			suites.FailPoint("find, hello, isMaster", suites.Always, suites.ErrorCode(retryable[3])+", appName: "+app),
			find.Call("timed", "", "{ isTimeoutError: true }")},
		Events: []suites.Expected{{Client: "timed", Events: append(suites.PingEvents(databaseName), find.Attempts(1, 1, "")...)}},
	})
	return f
}
