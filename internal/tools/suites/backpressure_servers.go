package main

import (
	"slices"
)

func retargeting() *file {
	preferred := doc("readPreference", "primaryPreferred")
	f := newFile("retargeting", "enableOverloadRetargeting", servers("4.4", sets),
		"The primary rejects every attempt with an overload error. With enableOverloadRetargeting, the retry of a read that",
		"prefers the primary goes to a secondary, which the replica set must have; without it, and for writes, all attempts",
		"go to the primary.")
	f.Clients = []client{observed("client", merge(doc("enableOverloadRetargeting", true), preferred)),
		observed("default", preferred),
		observed("off", merge(doc("enableOverloadRetargeting", false), preferred))}
	told := func(says, by string, data value, attempts int, raises value) story {
		return story{Says: says + " (R41)", Raises: raises}.betweenMembers(by, overloadDatabase, data, attempts)
	}
	find := named("collection.find")
	find.Result = nil // the secondary may not have the documents yet
	for _, name := range []string{"find", "findOne", "aggregate", "count", "countDocuments", "estimatedDocumentCount",
		"distinct"} {
		o := named("collection." + name)
		o.Result = nil
		f.add(o, told("is retried on a secondary with enableOverloadRetargeting", "client", overload, 2, nil),
			told("is retried on the primary by default", "default", overload, 3, raisesOverload))
	}
	f.add(find, told("is retried on the primary with enableOverloadRetargeting false", "off", overload, 3, raisesOverload),
		told("is retried on the primary after another retryable error", "client", errorWithLabels(hostUnreachable), 2,
			raisedCode(hostUnreachable)),
		told("is retried on a secondary after a retryable error with "+overloaded+" alone", "client",
			errorWithLabels(hostUnreachable, overloaded), 2, nil))
	twice := told("is retried on the primary with enableOverloadRetargeting", "client", overload, 3, nil)
	twice.Mode = times(2)
	f.add(named("collection.insertOne"), twice)
	return f
}

// bothPinged makes a client discover the primary and a secondary, so that the first attempt can go to one and
// the retry to the other.
func bothPinged(by string) (pings []value) {
	for _, mode := range []string{"primary", "secondary"} {
		pings = append(pings, pingWith(by, doc("readPreference", doc("mode", mode))))
	}
	return pings
}

// overloadOtherMongos checks the deprioritized server by chance, like Policy.OtherMongos, with a single retry.
func overloadOtherMongos() *file {
	const app = "utrOtherMongos"
	f := newFile("sharded", "retry on another mongos", servers("4.4", sharded),
		"One mongos rejects every attempt with an overload error. The only retry goes to another mongos, whatever the value of",
		"enableOverloadRetargeting, and always succeeds. A driver that ignores the deprioritized server soon fails.")
	f.Clients = []client{allMongoses("client", doc("maxAdaptiveRetries", 1)),
		allMongoses("off", doc("maxAdaptiveRetries", 1, "enableOverloadRetargeting", false)),
		allMongoses("idle", merge(doc("maxAdaptiveRetries", 1, "appName", app, "maxIdleTimeMS", 5), quiet))}
	// rounds performs an operation Rounds times, each after other operations.
	rounds := func(title string, arguments value, s story, before ...value) {
		o := named(title)
		o.Arguments, o.Result = arguments, nil
		f.addRounds(slices.Repeat([]operation{o}, roundCount), s, before...)
	}
	find := flow("{ filter: { _id: 1 } }")
	updated := left(first, doc("_id", 2, "x", 22+roundCount), third)
	for _, by := range []string{"client", "off"} {
		option := ""
		if by == "off" {
			option = " with enableOverloadRetargeting false"
		}
		s := story{Says: "is retried on another mongos" + option + " (R40)", By: by, Mode: always, Fails: overload}
		rounds("collection.find", find, s)
		s.Outcome = updated
		rounds("collection.updateOne", increase, s)
		rounds("collection.updateMany", increase, s)
	}
	// A failed hello also deprioritizes its mongos. maxIdleTimeMS closes the connections each time.
	idle := story{Says: "is retried on another mongos after a network error in hello (R40)", By: "idle",
		Require: servers("4.4.7", sharded), Points: []value{failHello(app, always)}, Outcome: []outcome{}}
	rounds("collection.find", find, idle, wait(20))
	rounds("collection.updateMany", flow("{ filter: { _id: 9 }, update: { $inc: { x: 1 } } }"), idle, wait(20))
	return f
}

// sameMongos has commands that are pinned to a mongos: the commands of a cursor and of a transaction.
func sameMongos() *file {
	f := newFile("sharded-pinned", "retry on the same mongos", servers("4.4", sharded),
		"A getMore goes to the mongos of its cursor, and the commands of a transaction to the mongos of the transaction,",
		"even if it is overloaded: no other mongos knows them. The cursor is on a random mongos; the session knows that of",
		"the transaction.")
	f.Clients = []client{watchedMongoses()}
	f.Sessions = true
	known := mongosesKnown("client")
	more := getMoreOf("find", overloadDatabase, twoBatches)
	more.Result = threeDocuments
	f.add(more, story{Says: "is retried on the mongos of the cursor (B1)", Before: []value{known}, Fails: overload,
		After: slices.Repeat([]value{failPoint(times(1), overload, "getMore"), more.call("client", nil, nil)}, 7)})

	insert, update, commit := named("collection.insertOne"), named("collection.updateOne"), endingWith("commitTransaction",
		noConcern)
	pinned := runnerOperation("assertSessionPinned", "session", "session")
	overloads := func(command string) []value {
		return []value{targetedFailPoint(command, times(2), overload)}
	}
	before := slices.Concat([]value{known}, begin(insert, "client"))
	f.add(update, story{Says: "is retried on the mongos of its transaction (B1)", Before: before,
		Points: overloads("update"),
		With:   inSession("client"),
		After:  []value{pinned, onSession("commitTransaction", "client")}, Seen: insert.attempts(1, 0,
			begins), Attempts: 3, Carries: continues,
		Then: commit.attempts(1, 0, nil), Outcome: bothWritten})
	f.add(commit, story{Says: "is retried on the mongos of its transaction (B1)", Before: before,
		Points: overloads("commitTransaction"),
		After:  []value{pinned}, Seen: insert.attempts(1, 0, begins), Attempts: 3})
	return f
}

// overloadTimeouts checks the limit of retries with timeoutMS, and a backoff that exceeds it. The client long has many
// retries. In all but one of 10^11 runs, a single backoff exceeds timeoutMS. The test therefore also passes if backoffs
// are computed but not slept.
func overloadTimeouts() *file {
	f := newFile("timeoutMS", "retries under timeoutMS", labelling,
		"With timeoutMS the limit of retries is the same, and a backoff that would outlast timeoutMS is not started.",
		"Backoffs are random: in all but one of 10^11 runs, one of sixteen is longer than a second.")
	f.Clients = []client{observed("client", doc("timeoutMS", 20000)), observed("endless", doc("timeoutMS", 0)),
		observed("none", doc("timeoutMS", 20000, "maxAdaptiveRetries", 0)), observed("long",
			doc("maxAdaptiveRetries", 16, "timeoutMS", 3000))}
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.updateMany",
		"database.runCommand with ping"},
		story{Says: "is retried twice within timeoutMS (B1)", Fails: overload, Attempts: 3},
		story{Says: "is retried no more than twice within timeoutMS (B4)", Mode: always, Fails: overload, Attempts: 3,
			Raises: raisesOverload},
		story{Says: "is retried no more than twice with timeoutMS 0 (B4)", By: "endless", Mode: always, Fails: overload,
			Attempts: 3,
			Raises:   raisesOverload},
		story{Says: "is not retried within timeoutMS with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload,
			Attempts: 1, Raises: raisesOverload},
		story{Says: "backs off until a backoff would outlast timeoutMS (B5)", By: "long", Mode: times(16), Fails: overload,
			Attempts: 1, Extra: true, Raises: anyError})
	return f
}

// baseBackoffParameter sets the baseBackoffMS of errors, or adds none if it is 0.
const baseBackoffParameter = "externalClientBaseBackoffMS"

func baseBackoff() *file {
	f := newFile("baseBackoffMS", "the backoff base from the server",
		requirement{Min: "9.0", Topologies: sets, Backoff: true},
		"The server sets a base of 1 ms instead of 100 ms, so that seven backoffs take 254 ms at most. With 100 ms they would",
		"nearly always outlast timeoutMS.")
	f.Clients = []client{observed("client", doc("maxAdaptiveRetries", 7, "timeoutMS", 3000))}
	f.Entities = objectEntities(overloadDatabase, "setup", "admin")
	set := func(n int) []value {
		return []value{runCommand("admin-setup", "setParameter", doc("setParameter", 1, baseBackoffParameter, n), nil)}
	}
	tell(f, []string{"collection.find", "collection.insertOne"},
		story{Says: "uses the baseBackoffMS of the error for its backoff (B6)", Before: set(1),
			Fails: overload, After: set(0), Attempts: 8})
	return f
}

func connections() *file {
	f := newFile("connections", "connections of the attempts", servers("4.4", monitored),
		"Each attempt checks out a connection and checks it in again; a backoff does not keep a connection.")
	f.Clients = []client{{ID: "client",
		Observe: []string{"connectionCheckedOutEvent", "connectionCheckedInEvent", "poolClearedEvent"}}}
	tell(f, []string{"collection.find", "collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		story{Says: "checks in its connection before each backoff (B6)", Mode: times(2), Fails: overload,
			Pool: slices.Repeat([]value{doc("connectionCheckedOutEvent", doc()), doc("connectionCheckedInEvent", doc())}, 3)})
	return f
}

// establishing closes new connections during hello. Drivers treat this as overload (Connection Monitoring and Pooling,
// "Connection Pool"). It returns a function for stories in which the first attempts fail.
func establishing(app, database string) (f *file, fails func(by, says string, mode value, failing int,
	raises value) story) {
	idle := func(id string, options value) client { return idling(id, app, options, "poolClearedEvent") }
	f = newFile("establishment", "connections that cannot be established", servers("4.4.7", 0),
		"A network error in the hello of a new connection has the labels of a retryable overload error: every command is",
		"retried after it, up to the limit, and the pool is not cleared. No command was sent, but pool events show the",
		"attempts.")
	f.Clients = []client{idle("client", nil), idle("none", doc("maxAdaptiveRetries", 0)),
		idle("off", doc("retryReads", false, "retryWrites", false))}
	return f, func(by, says string, mode value, failing int, raises value) story {
		return story{Says: says, By: by, Raises: raises}.withoutConnection(failHello(app+by, mode),
			database).withCheckOuts(failing)
	}
}

// established are the operations of establishing.
var established = []string{"collection.find", "collection.updateMany", "collection.deleteMany",
	"collection.createIndex",
	"database.runCommand with find"}

// refused is the error of a connection that cannot be established.
var refused = withLabels(raisedNetwork, both, nil)

func establishment() *file {
	f, fails := establishing("utrEstablishment", overloadDatabase)
	tell(f, established,
		fails("client", "is retried twice after network errors in hello (B1)", times(2), 2, nil),
		fails("client", "is retried no more than twice after network errors in hello (B4)", always, 3, refused),
		fails("off", "is not retried after a network error in hello if retryReads and retryWrites are false (B3)", times(1),
			1, refused))
	f.add(named("collection.updateMany"),
		fails("none", "is not retried after a network error in hello with maxAdaptiveRetries 0 (B4)", times(1), 1, refused))
	return f
}

func authentication() *file {
	f := newFile("authentication", "connections that cannot be authenticated", requirement{},
		"A network error in authentication has neither label, so commands that other policies do not retry are attempted",
		"once. No command was sent.")
	f.Clients = []client{observed("client", doc("maxIdleTimeMS", 10))}
	f.Require = authenticated("4.4", monitored)
	tell(f, []string{"collection.updateMany", "collection.createIndex", "database.runCommand with find"},
		story{Says: "is not retried after a network error in saslContinue (R34)",
			Raises: withLabels(raisedNetwork, nil, both)}.
			withoutConnection(failPoint(times(1), closes, "saslContinue"), overloadDatabase))
	return f
}
