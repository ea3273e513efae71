package reads

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/schema"
)

// Requirements in flow YAML.
const (
	anywhere   = `{ minServerVersion: "4.2" }`
	noSingle   = `{ minServerVersion: "4.2", topologies: [ replicaset, sharded, load-balanced ] }`
	monitored  = `{ minServerVersion: "4.4.7", topologies: [ single, replicaset, sharded ] }` // SERVER-49336: appName counts for the first hello
	shardedSet = `{ minServerVersion: "4.2", topologies: [ sharded ] }`
)

// Files gives the suites by file name.
func Files() (map[string][]byte, error) {
	out, schemas := map[string][]byte{}, schema.New()
	for _, f := range all() {
		text, err := f.render(schemas)
		if err != nil {
			return nil, err
		}
		if _, twice := out[f.name+".yml"]; twice {
			return nil, fmt.Errorf("there are two files %s", f.name)
		}
		out[f.name+".yml"] = text
	}
	return out, nil
}

func all() []*file {
	var files []*file
	for _, o := range operations {
		files = append(files, ofOperation(o))
	}
	return append(files, secondError(), neverRetried(), sessions(), transactions(), otherMongos(), timeouts(),
		handshakeHello(), handshakeAuth(), poolCleared(), selectionFails())
}

func (o operation) requirement() string {
	if o.watches {
		return noSingle
	}
	return anywhere
}

// ofOperation tells all stories of one operation.
func ofOperation(o operation) *file {
	f := &file{
		name:        strings.ReplaceAll(o.title(), ".", "-"),
		description: "retryable reads: " + o.title(),
		about:       []string{"Each error that makes " + o.title() + " retryable, errors that do not, and retryReads."},
		require:     []string{o.requirement()},
		clients:     []client{setupClient(), plainClient(), noRetryClient()},
		entities:    append(objects("client", o.object), objects("noRetry", o.object)...),
		bucket:      o.object == "bucket",
	}
	for _, s := range stories() {
		by := "client"
		if s.noRetry {
			by = "noRetry"
		}
		t := test{description: fmt.Sprintf("%s %s (%s)", o.title(), s.says, s.rule)}
		if s.fails != "" {
			t.operations = append(t.operations, failPoint(o.command, times(s.times), s.fails))
		}
		t.operations = append(t.operations, o.call(by, "", s.raises))
		t.events = []expected{{client: by, events: o.attempts(s.attempts, min(s.times, s.attempts), "")}}
		f.add(t)
	}
	return f
}

// secondError lets the retry reach a server that refuses the command for a
// reason of its own, so that the two errors can be told apart.
func secondError() *file {
	f := &file{
		name:        "second-error",
		description: "retryable reads: the error that is raised after a retry",
		about:       []string{"The first attempt fails by a fail point, the retry by what the command asks for. The second error says more, and is raised."},
		require:     []string{anywhere},
		clients:     []client{setupClient(), plainClient()},
		entities:    objects("client", "collection"),
	}
	const match, stage = "{ $utrUnknown: 1 }", "[ { $utrUnknown: {} } ]"
	for _, r := range []struct {
		name, arguments, started string
		code                     code
	}{
		{"aggregate", "{ pipeline: " + stage + " }", "{ aggregate: " + collectionName + ", pipeline: " + stage + " }", code{40324, "an unknown stage"}},
		{"count", "{ filter: " + match + " }", "{ count: " + collectionName + ", query: " + match + " }", code{2, "BadValue"}},
		{"countDocuments", "{ filter: " + match + " }", "{ aggregate: " + collectionName + " }", code{2, "BadValue"}},
		{"distinct", "{ fieldName: x, filter: " + match + " }", "{ distinct: " + collectionName + ", key: x, query: " + match + " }", code{2, "BadValue"}},
		{"find", "{ filter: " + match + " }", "{ find: " + collectionName + ", filter: " + match + " }", code{2, "BadValue"}},
		{"findOne", "{ filter: " + match + " }", "{ find: " + collectionName + ", filter: " + match + " }", code{2, "BadValue"}},
	} {
		o := named("collection", r.name)
		o.arguments, o.started = r.arguments, r.started
		for _, first := range []struct{ says, data string }{
			{"a network error", closes}, {retryable[0].name, errorCode(retryable[0])}, {retryable[9].name, errorCode(retryable[9])},
		} {
			f.add(test{
				description: fmt.Sprintf("%s raises %s of the retry, not %s of the first attempt (R20)", o.title(), r.code.name, first.says),
				operations:  []string{failPoint(o.command, times(1), first.data), o.call("client", "", raisedCode(r.code))},
				events:      []expected{{client: "client", events: o.attempts(2, 2, "")}},
			})
		}
	}
	return f
}

// neverRetried are the operations of "Unsupported Read Operations".
func neverRetried() *file {
	f := &file{
		name:        "never-retried",
		description: "retryable reads: operations that are never retried",
		about:       []string{"getMore, generic commands, mapReduce and aggregations that write are attempted once, whatever the error."},
		require:     []string{anywhere},
		clients:     []client{setupClient(), plainClient()},
		entities:    objects("client", "database", "collection"),
	}
	type row struct {
		what, name, command, object, arguments, started string
	}
	rows := []row{
		{"collection.aggregate with $out", "aggregate", "aggregate", "collection",
			`{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $out: written } ] }`,
			`{ aggregate: ` + collectionName + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $out: written } ] }`},
		{"collection.aggregate with $merge", "aggregate", "aggregate", "collection",
			`{ pipeline: [ { $match: { _id: { $gt: 1 } } }, { $merge: { into: written } } ] }`,
			`{ aggregate: ` + collectionName + `, pipeline: [ { $match: { _id: { $gt: 1 } } }, { $merge: { into: written } } ] }`},
		{"collection.mapReduce", "mapReduce", "mapReduce", "collection",
			`{ map: { $code: "function() { emit(0, this.x) }" }, reduce: { $code: "function(key, values) { return Array.sum(values) }" }, out: { inline: 1 } }`,
			`{ mapReduce: ` + collectionName + `, out: { inline: 1 } }`},
		{"database.runCommand with a find", "runCommand", "find", "database",
			`{ commandName: find, command: { find: ` + collectionName + `, filter: { _id: 1 } } }`,
			`{ find: ` + collectionName + `, filter: { _id: 1 } }`},
		{"database.runCommand with a count", "runCommand", "count", "database",
			`{ commandName: count, command: { count: ` + collectionName + ` } }`,
			`{ count: ` + collectionName + ` }`},
	}
	errors := []struct{ says, data, raises string }{{"a network error", closes, raisedNetwork}}
	for _, c := range []code{retryable[0], retryable[3], retryable[8], retryable[9]} {
		errors = append(errors, struct{ says, data, raises string }{c.name, errorCode(c), raisedCode(c)})
	}
	for _, r := range rows {
		for _, e := range errors {
			f.add(test{
				description: fmt.Sprintf("%s is not retried after %s (R33)", r.what, e.says),
				operations: []string{
					failPoint(r.command, times(1), e.data),
					fmt.Sprintf("{ name: %s, object: %s, arguments: %s, expectError: %s }", r.name, r.object, r.arguments, e.raises),
				},
				events: []expected{{client: "client", events: []string{startedEvent(r.started, r.command, databaseName), failedEvent(r.command)}}},
			})
		}
	}
	for _, e := range errors {
		f.add(test{
			description: fmt.Sprintf("getMore of collection.find is not retried after %s (R33)", e.says),
			operations: []string{
				failPoint("getMore", times(1), e.data),
				fmt.Sprintf("{ name: find, object: collection, arguments: { filter: {}, batchSize: 2 }, expectError: %s }", e.raises),
			},
			events: []expected{{client: "client", events: []string{
				startedEvent(`{ find: `+collectionName+`, batchSize: 2 }`, "find", databaseName), succeededEvent("find"),
				startedEvent(`{ getMore: { $$type: [ int, long ] }, collection: `+collectionName+` }`, "getMore", databaseName), failedEvent("getMore"),
			}}},
		})
	}
	return f
}

// sessions checks that a retry goes on in the same session.
func sessions() *file {
	f := &file{
		name:        "sessions",
		description: "retryable reads: the session of a retry",
		about:       []string{"A retry belongs to the session of the first attempt, explicit or implicit."},
		require:     []string{anywhere},
		clients:     []client{setupClient(), plainClient()},
		entities:    append(objects("client", "database", "collection"), "session: { id: session, client: client }"),
	}
	for _, o := range operations {
		if !o.session {
			continue
		}
		f.add(test{
			description: o.title() + " is retried with the lsid of its explicit session (R5)",
			operations:  []string{failPoint(o.command, times(1), closes), o.call("client", "session: session", "")},
			events:      []expected{{client: "client", events: o.attempts(2, 1, "lsid: { $$sessionLsid: session }")}},
		})
		f.add(test{
			description: o.title() + " is retried with the lsid of its implicit session (R5)",
			operations: []string{
				failPoint(o.command, times(1), closes), o.call("client", "", ""),
				"{ name: assertSameLsidOnLastTwoCommands, object: testRunner, arguments: { client: client } }",
			},
			events: []expected{{client: "client", events: o.attempts(2, 1, "lsid: { $$exists: true }")}},
		})
	}
	return f
}

// transactions checks that nothing in a transaction is retried, and that the
// session is as before afterwards.
func transactions() *file {
	f := &file{
		name:        "transactions",
		description: "retryable reads: no retries in a transaction",
		about:       []string{"A read in a transaction is attempted once; after the transaction its session retries again."},
		require:     []string{noSingle},
		clients:     []client{setupClient(), plainClient()},
		entities:    append(objects("client", "collection"), "session: { id: session, client: client }"),
	}
	session := func(name string) string { return "{ name: " + name + ", object: session }" }
	for _, o := range operations {
		if !o.txn {
			continue
		}
		inside := "lsid: { $$sessionLsid: session }, startTransaction: true, autocommit: false"
		for _, e := range []struct{ says, data, raises string }{
			{"a network error", closes, "{ isClientError: true, errorLabelsContain: [ TransientTransactionError ] }"},
			{"HostUnreachable", errorCode(retryable[0]), raisedCode(retryable[0])},
			{"InterruptedAtShutdown", errorCode(retryable[9]), raisedCode(retryable[9])},
		} {
			f.add(test{
				description: fmt.Sprintf("%s is not retried in a transaction after %s (R31)", o.title(), e.says),
				operations: []string{
					session("startTransaction"), failPoint(o.command, times(1), e.data),
					o.call("client", "session: session", e.raises), session("abortTransaction"),
				},
				events: []expected{{client: "client", events: o.attempts(1, 1, inside)}},
			})
		}
		outside := "lsid: { $$sessionLsid: session }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }"
		events := append(o.attempts(1, 0, inside), o.attempts(2, 1, outside)...)
		f.add(test{
			description: o.title() + " is retried after the transaction of its session (R10)",
			operations: []string{
				session("startTransaction"), o.call("client", "session: session", ""), session("abortTransaction"),
				failPoint(o.command, times(1), closes), o.call("client", "session: session", ""),
			},
			events: []expected{{client: "client", events: events}},
		})
	}
	return f
}

// otherMongos checks the deprioritized server. The format cannot tell one
// mongos from another, so chance has to: a fail point makes every attempt on
// one of them fail. With the failed one deprioritized, each operation succeeds
// always; without, a quarter of them fails when there are two.
func otherMongos() *file {
	const rounds = 12
	f := &file{
		name:        "sharded",
		description: "retryable reads: retry on another mongos",
		about: []string{"One mongos fails every attempt, with an error that leaves it known and selectable. A retry that",
			"goes to another one always succeeds; one that ignored the deprioritized server would not for long."},
		require:  []string{shardedSet},
		clients:  []client{setupClient(), {id: "client", many: true}, {id: "one", observe: commandEvents}},
		entities: append(objects("client", "admin", "database", "collection"), objects("one", "admin", "database", "collection")...),
	}
	for _, o := range operations {
		if o.object == "bucket" {
			continue
		}
		var repeated []string
		for range rounds {
			repeated = append(repeated, o.call("client", "", ""))
		}
		f.add(test{
			description: o.title() + " is retried on another mongos (R40)",
			operations:  append([]string{failPoint(o.command, "alwaysOn", errorCode(retryable[0]))}, repeated...),
		})
		f.add(test{
			description: o.title() + " is retried on the same mongos if there is no other (R40)",
			operations:  []string{failPoint(o.command, times(1), errorCode(retryable[0])), o.call("one", "", "")},
			events:      []expected{{client: "one", events: o.attempts(2, 1, "")}},
		})
	}
	return f
}

// timeouts checks that timeoutMS lifts the limit of one retry.
func timeouts() *file {
	f := &file{
		name:        "timeoutMS",
		description: "retryable reads: retries under timeoutMS",
		about:       []string{"With timeoutMS a read is retried until it succeeds or the time is over, which is one time for all attempts."},
		least:       "1.9",
		require:     []string{anywhere},
		clients: []client{setupClient(),
			{id: "client", options: "{ timeoutMS: 20000 }", observe: commandEvents},
			{id: "endless", options: "{ timeoutMS: 0 }", observe: commandEvents},
			{id: "noRetry", options: "{ timeoutMS: 20000, retryReads: false }", observe: commandEvents},
		},
		bucket: true,
	}
	for _, by := range []string{"client", "endless", "noRetry"} {
		f.entities = append(f.entities, objects(by, "admin", "database", "collection", "bucket")...)
	}
	code := retryable[1] // leaves the server known, so that no time is lost
	for _, o := range operations {
		if o.watches {
			continue // what timeoutMS means while a change stream is opened differs between drivers
		}
		f.add(test{
			description: o.title() + " is retried three times within timeoutMS (R36)",
			operations:  []string{failPoint(o.command, times(3), errorCode(code)), o.call("client", "", "")},
			events:      []expected{{client: "client", events: o.attempts(4, 3, "")}},
		})
		f.add(test{
			description: o.title() + " is not retried within timeoutMS with retryReads false (R30)",
			operations:  []string{failPoint(o.command, times(1), errorCode(code)), o.call("noRetry", "", raisedCode(code))},
			events:      []expected{{client: "noRetry", events: o.attempts(1, 1, "")}},
		})
	}
	find := named("collection", "find")
	f.add(test{
		description: "collection.find is retried three times with timeoutMS 0, which is no limit (R36)",
		operations:  []string{failPoint("find", times(3), errorCode(code)), find.call("endless", "", "")},
		events:      []expected{{client: "endless", events: find.attempts(4, 3, "")}},
	})
	// The first read opens the connection, so that its cost is not part of the
	// time. One attempt fits into it with a wide margin, and two never do.
	f.add(test{
		description: "collection.find ends in a timeout in the attempt that outlasts timeoutMS (R36)",
		require:     []string{`{ minServerVersion: "4.4" }`},
		operations: []string{
			find.call("client", "", ""),
			failPoint("find", "alwaysOn", errorCode(code)+", blockConnection: true, blockTimeMS: 450"),
			find.call("client", "timeoutMS: 800", "{ isTimeoutError: true }"),
		},
		events: []expected{{client: "client", events: append(find.attempts(1, 0, ""), find.attempts(2, 2, "")...)}},
	})
	return f
}

func named(object, name string) operation {
	for _, o := range operations {
		if o.object == object && o.name == name {
			return o
		}
	}
	return operation{}
}

// quiet are the options of a client whose monitors sleep while a test runs,
// so that a fail point for hello meets its own connections alone.
const quiet = "heartbeatFrequencyMS: 600000, serverMonitoringMode: poll"

// handshakeHello fails the hello of a new connection. The connection that
// discovered the deployment is idle for too long when the read comes, so that
// the read needs a new one; appName keeps the fail point to this client.
func handshakeHello() *file {
	const app = "utrHandshake"
	events := append([]string{"connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"}, commandEvents...)
	f := &file{
		name:        "handshake-hello",
		description: "retryable reads: a handshake that fails in hello",
		about: []string{"The pool has no fresh connection when the read comes, and the hello of the new one fails. No command",
			"was sent then: command events show one attempt, pool events show two."},
		least:   "1.10", // operation wait
		require: []string{`{ minServerVersion: "4.4.7" }`},
		clients: []client{setupClient(),
			{id: "client", options: "{ appName: " + app + ", maxIdleTimeMS: 10, " + quiet + " }", observe: events},
			{id: "noRetry", options: "{ retryReads: false, appName: " + app + ", maxIdleTimeMS: 10, " + quiet + " }", observe: events},
		},
		entities: append(objects("client", "database", "collection"), objects("noRetry", "database", "collection")...),
	}
	hello := failPoint("hello, isMaster", times(1), "appName: "+app+", "+closes)
	warm := func(by string) []string {
		return []string{
			fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", suffix(by)),
			"{ name: wait, object: testRunner, arguments: { ms: 50 } }",
			hello,
		}
	}
	ping := []string{startedEvent("{ ping: 1 }", "ping", databaseName), succeededEvent("ping")}
	started, failed := "{ connectionCheckOutStartedEvent: {} }", "{ connectionCheckOutFailedEvent: { reason: connectionError } }"
	for _, o := range []operation{
		named("client", "listDatabases"), named("database", "listCollections"), named("collection", "aggregate"), named("collection", "distinct"),
		named("collection", "estimatedDocumentCount"), named("collection", "find"), named("collection", "listIndexes"),
	} {
		f.add(test{
			description: o.title() + " is retried after a network error in the handshake (R13)",
			operations:  append(warm("client"), o.call("client", "", "")),
			events: []expected{
				{client: "client", events: append(append([]string{}, ping...), o.attempts(1, 0, "")...)},
				{client: "client", eventType: "cmap", events: []string{started, started, failed, started}},
			},
		})
	}
	find := named("collection", "find")
	f.add(test{
		description: "collection.find is not retried after a network error in the handshake with retryReads false (R30)",
		operations:  append(warm("noRetry"), find.call("noRetry", "", raisedNetwork)),
		events: []expected{
			{client: "noRetry", events: ping},
			{client: "noRetry", eventType: "cmap", events: []string{started, started, failed}},
		},
	})
	return f
}

// handshakeAuth fails the authentication of a new connection.
func handshakeAuth() *file {
	f := &file{
		name:        "handshake-authentication",
		description: "retryable reads: a handshake that fails in authentication",
		about: []string{"The pool has no fresh connection when the read comes, and saslContinue fails on the new one. No command",
			"was sent then: command events show one attempt."},
		least: "1.10", // operation wait
		require: []string{`{ minServerVersion: "4.2", auth: true, topologies: [ single, replicaset, sharded ] }`,
			`{ minServerVersion: "5.0", auth: true, topologies: [ load-balanced ] }`},
		clients: []client{setupClient(),
			{id: "client", options: "{ maxIdleTimeMS: 10 }", observe: commandEvents},
			{id: "noRetry", options: "{ retryReads: false, maxIdleTimeMS: 10 }", observe: commandEvents},
		},
		entities: append(objects("client", "admin", "database", "collection", "bucket"), objects("noRetry", "admin", "database", "collection", "bucket")...),
		bucket:   true,
	}
	ping := []string{startedEvent("{ ping: 1 }", "ping", databaseName), succeededEvent("ping")}
	fails := func(by, data string) []string {
		return []string{
			fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 } } }", suffix(by)),
			"{ name: wait, object: testRunner, arguments: { ms: 50 } }",
			failPoint("saslContinue", times(1), data),
		}
	}
	for _, o := range operations {
		var require []string
		if o.watches {
			require = []string{noSingle}
		}
		tell := func(says, rule, by, data, raises string) {
			events := append([]string{}, ping...)
			if raises == "" {
				events = append(events, o.attempts(1, 0, "")...)
			}
			f.add(test{
				description: fmt.Sprintf("%s %s (%s)", o.title(), says, rule),
				require:     require,
				operations:  append(fails(by, data), o.call(by, "", raises)),
				events:      []expected{{client: by, events: events}},
			})
		}
		const anyError = "{ isError: true }"
		tell("is retried after a network error in saslContinue", "R13", "client", closes, "")
		tell("is retried after ShutdownInProgress in saslContinue", "R13", "client", errorCode(retryable[3]), "")
		tell("is not retried after AuthenticationFailed in saslContinue", "R34", "client", "errorCode: 18", anyError)
		tell("is not retried after a network error in saslContinue with retryReads false", "R30", "noRetry", closes, anyError)
	}
	return f
}

// poolCleared lets one of two reads wait for the only connection while the
// other fails and clears the pool.
func poolCleared() *file {
	events := append([]string{"connectionCheckedOutEvent", "connectionCheckOutFailedEvent", "poolClearedEvent"}, "commandStartedEvent")
	f := &file{
		name:        "pool-cleared",
		description: "retryable reads: a pool that is cleared",
		about: []string{"Two reads share a pool of one connection. The first fails and clears the pool, so that the second, which",
			"waits for the connection, fails to check one out; both are retried."},
		least:   "1.10", // threads
		require: []string{`{ minServerVersion: "4.2.9", topologies: [ single, replicaset, sharded ] }`},
		clients: []client{setupClient(),
			{id: "client", options: "{ maxPoolSize: 1 }", observe: events},
			{id: "noRetry", options: "{ maxPoolSize: 1, retryReads: false }", observe: events},
		},
		entities: append(append(objects("client", "collection"), objects("noRetry", "collection")...),
			"thread: { id: first }", "thread: { id: second }"),
	}
	for _, o := range []operation{named("collection", "find"), named("collection", "aggregate"), named("collection", "distinct")} {
		for _, s := range []struct {
			by, says, rule, raises string
			started                int
		}{
			{"client", "is retried after the pool was cleared while it waited", "R12", "", 3},
			{"noRetry", "is not retried after the pool was cleared with retryReads false", "R30", "{ isError: true }", 1},
		} {
			started := startedEvent(o.started, o.command, o.database)
			run := func(thread string) string {
				return fmt.Sprintf("{ name: runOnThread, object: testRunner, arguments: { thread: %s, operation: %s } }", thread, o.call(s.by, "", s.raises))
			}
			join := func(thread string) string {
				return fmt.Sprintf("{ name: waitForThread, object: testRunner, arguments: { thread: %s } }", thread)
			}
			var commands []string
			for range s.started {
				commands = append(commands, started)
			}
			f.add(test{
				description: fmt.Sprintf("%s %s (%s)", o.title(), s.says, s.rule),
				operations: []string{
					failPoint(o.command, times(1), errorCode(retryable[3])+", blockConnection: true, blockTimeMS: 500"),
					run("first"),
					fmt.Sprintf("{ name: waitForEvent, object: testRunner, arguments: { client: %s, event: { commandStartedEvent: { commandName: %s } }, count: 1 } }", s.by, o.command),
					run("second"), join("first"), join("second"),
					// In whichever order: the first read may have its new
					// connection before the second one is told.
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { connectionCheckOutFailedEvent: { reason: connectionError } }, count: 1 } }", s.by),
					fmt.Sprintf("{ name: assertEventCount, object: testRunner, arguments: { client: %s, event: { poolClearedEvent: {} }, count: 1 } }", s.by),
				},
				events: []expected{
					{client: s.by, events: commands},
					{client: s.by, eventType: "cmap", extra: true, events: []string{"{ connectionCheckedOutEvent: {} }", "{ poolClearedEvent: {} }"}},
				},
			})
		}
	}
	return f
}

// selectionFails makes the server unknown by the first error and keeps it so.
func selectionFails() *file {
	const app = "utrSelection"
	f := &file{
		name:        "server-selection",
		description: "retryable reads: no server for the retry",
		about: []string{"The first error makes the server unknown, and hello fails ever after: there is no server for the retry.",
			"The error of the attempt is raised then, not that of server selection."},
		require: []string{monitored},
		clients: []client{setupClient(),
			{id: "client", options: "{ appName: " + app + ", serverSelectionTimeoutMS: 200, " + quiet + " }", observe: commandEvents}},
		entities: objects("client", "database", "collection"),
	}
	for _, o := range []operation{named("collection", "find"), named("collection", "aggregate"), named("database", "listCollections")} {
		// Codes of a shutdown: errors of a step-down carry the topologyVersion
		// that the client has already, and drivers take them for old news.
		for _, c := range []code{retryable[3], retryable[9]} {
			f.add(test{
				description: fmt.Sprintf("%s raises %s if no server can be selected for the retry (R3)", o.title(), c.name),
				operations: []string{
					"{ name: runCommand, object: database, arguments: { commandName: ping, command: { ping: 1 } } }",
					failPoint(o.command+", hello, isMaster", "alwaysOn", errorCode(c)+", appName: "+app),
					o.call("client", "", raisedCode(c)),
				},
				events: []expected{{client: "client", events: append([]string{
					startedEvent("{ ping: 1 }", "ping", databaseName), succeededEvent("ping")}, o.attempts(1, 1, "")...)}},
			})
		}
	}
	return f
}
