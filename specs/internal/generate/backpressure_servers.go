package main

import (
	"fmt"
	"slices"
)

func retargeting() *File {
	const preferred = "readPreference: primaryPreferred"
	f := NewFile("retargeting", "enableOverloadRetargeting", Servers("4.4", Sets),
		"The primary rejects every attempt with an overload error. With enableOverloadRetargeting, the retry of a read that",
		"prefers the primary goes to a secondary, which the replica set must have; without it, and for writes, all attempts",
		"go to the primary.")
	f.Clients = []Client{Observed("client", "enableOverloadRetargeting: true, "+preferred), Observed("default", preferred),
		Observed("off", "enableOverloadRetargeting: false, "+preferred)}
	story := func(says, by, data string, attempts int, raises string) Story {
		return Story{Says: says + " (R41)", Raises: raises}.Between(by, overloadDatabase, data, attempts)
	}
	find := named("collection.find")
	find.Result = "" // the secondary may not have the documents yet
	for _, name := range []string{"find", "findOne", "aggregate", "count", "countDocuments", "estimatedDocumentCount", "distinct"} {
		o := named("collection." + name)
		o.Result = ""
		f.Tell(o, story("is retried on a secondary with enableOverloadRetargeting", "client", overload, 2, ""),
			story("is retried on the primary by default", "default", overload, 3, raisesOverload))
	}
	f.Tell(find, story("is retried on the primary with enableOverloadRetargeting false", "off", overload, 3, raisesOverload),
		story("is retried on the primary after another retryable error", "client", Labelled(HostUnreachable), 2, RaisedCode(HostUnreachable)),
		story("is retried on a secondary after a retryable error with "+overloaded+" alone", "client", Labelled(HostUnreachable, overloaded), 2, ""))
	twice := story("is retried on the primary with enableOverloadRetargeting", "client", overload, 3, "")
	twice.Mode = Times(2)
	f.Tell(named("collection.insertOne"), twice)
	return f
}

// bothPinged makes a client discover the primary and a secondary, so that the first attempt can go to one and
// the retry to the other.
func bothPinged(by string) (pings []string) {
	for _, mode := range []string{"primary", "secondary"} {
		pings = append(pings, fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 }, readPreference: { mode: %s } } }", Suffix(by), mode))
	}
	return pings
}

// overloadOtherMongos checks the deprioritized server by chance, like Policy.OtherMongos, with a single retry.
func overloadOtherMongos() *File {
	const app = "utrOtherMongos"
	f := NewFile("sharded", "retry on another mongos", Servers("4.4", Sharded),
		"One mongos rejects every attempt with an overload error. The only retry goes to another mongos, whatever the value of",
		"enableOverloadRetargeting, and always succeeds. A driver that ignores the deprioritized server soon fails.")
	f.Clients = []Client{AllMongoses("client", "maxAdaptiveRetries: 1"),
		AllMongoses("off", "maxAdaptiveRetries: 1, enableOverloadRetargeting: false"),
		AllMongoses("idle", "maxAdaptiveRetries: 1, appName: "+app+", maxIdleTimeMS: 5, "+Quiet)}
	// rounds performs an operation Rounds times, each after other operations.
	rounds := func(title, arguments string, s Story, before ...string) {
		o := named(title)
		o.Arguments, o.Result = arguments, ""
		f.TellRounds(slices.Repeat([]Operation{o}, Rounds), s, before...)
	}
	const find = "{ filter: { _id: 1 } }"
	updated := After(first, fmt.Sprintf("{ _id: 2, x: %d }", 22+Rounds), third)
	for _, by := range []string{"client", "off"} {
		option := map[string]string{"client": "", "off": " with enableOverloadRetargeting false"}[by]
		s := Story{Says: "is retried on another mongos" + option + " (R40)", By: by, Mode: Always, Fails: overload}
		rounds("collection.find", find, s)
		s.Outcome = updated
		rounds("collection.updateOne", increase, s)
		rounds("collection.updateMany", increase, s)
	}
	// A failed hello also deprioritizes its mongos. maxIdleTimeMS closes the connections each time.
	idle := Story{Says: "is retried on another mongos after a network error in hello (R40)", By: "idle",
		Require: Servers("4.4.7", Sharded), Points: []string{FailHello(app, Always)}, Outcome: []Outcome{}}
	rounds("collection.find", find, idle, Wait(20))
	rounds("collection.updateMany", "{ filter: { _id: 9 }, update: { $inc: { x: 1 } } }", idle, Wait(20))
	return f
}

// sameMongos has commands that are pinned to a mongos: of a cursor, and of a transaction.
func sameMongos() *File {
	f := NewFile("sharded-pinned", "retry on the same mongos", Servers("4.4", Sharded),
		"A getMore goes to the mongos of its cursor, and the commands of a transaction to the mongos of the transaction,",
		"even if it is overloaded: no other mongos knows them. The cursor is on a random mongos; the session knows that of",
		"the transaction.")
	f.Clients = []Client{WatchedMongoses()}
	f.Sessions = true
	known := MongosesKnown("client")
	more := GetMore("find", overloadDatabase, twoBatches)
	more.Result = threeDocuments
	f.Tell(more, Story{Says: "is retried on the mongos of the cursor (B1)", Before: []string{known}, Fails: overload,
		After: slices.Repeat([]string{FailPoint("getMore", Times(1), overload), more.Call("client", "", "")}, 7)})

	insert, update, commit := named("collection.insertOne"), named("collection.updateOne"), endingWith("commitTransaction", noConcern)
	pinned := Special("assertSessionPinned", "session: session")
	overloads := func(command string) []string {
		return []string{TargetedFailPoint(command, Times(2), overload)}
	}
	before := slices.Concat([]string{known}, Begin(insert, "client"))
	f.Tell(update, Story{Says: "is retried on the mongos of its transaction (B1)", Before: before, Points: overloads("update"),
		With:  "session: session",
		After: []string{pinned, OnSession("commitTransaction", "client")}, Seen: insert.Attempts(1, 0, begins), Attempts: 3, Carries: continues,
		Then: commit.Attempts(1, 0, ""), Outcome: bothWritten})
	f.Tell(commit, Story{Says: "is retried on the mongos of its transaction (B1)", Before: before, Points: overloads("commitTransaction"),
		After: []string{pinned}, Seen: insert.Attempts(1, 0, begins), Attempts: 3})
	return f
}

// overloadTimeouts checks the limit of retries with timeoutMS, and a backoff that exceeds it. The client long has so
// many retries that in all but one of 10^11 runs a single backoff exceeds timeoutMS, so the test also passes if
// backoffs are computed but not slept.
func overloadTimeouts() *File {
	f := NewFile("timeoutMS", "retries under timeoutMS", labelling,
		"With timeoutMS the limit of retries is the same, and a backoff that would outlast timeoutMS is not started.",
		"Backoffs are random: in all but one of 10^11 runs, one of sixteen is longer than a second.")
	f.Clients = []Client{Observed("client", "timeoutMS: 20000"), Observed("endless", "timeoutMS: 0"),
		Observed("none", "timeoutMS: 20000, maxAdaptiveRetries: 0"), Observed("long", "maxAdaptiveRetries: 16, timeoutMS: 3000")}
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"},
		Story{Says: "is retried twice within timeoutMS (B1)", Fails: overload, Attempts: 3},
		Story{Says: "is retried no more than twice within timeoutMS (B4)", Mode: Always, Fails: overload, Attempts: 3, Raises: raisesOverload},
		Story{Says: "is retried no more than twice with timeoutMS 0 (B4)", By: "endless", Mode: Always, Fails: overload, Attempts: 3,
			Raises: raisesOverload},
		Story{Says: "is not retried within timeoutMS with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload, Attempts: 1, Raises: raisesOverload},
		Story{Says: "backs off until a backoff would outlast timeoutMS (B5)", By: "long", Mode: Times(16), Fails: overload,
			Attempts: 1, Extra: true, Raises: AnyError})
	return f
}

func baseBackoff() *File {
	const parameter = "externalClientBaseBackoffMS"
	f := NewFile("baseBackoffMS", "the backoff base from the server",
		Merge(Servers("9.0", Sets), "serverParameters: { "+parameter+": 0 }"),
		"The server sets a base of 1 ms instead of 100 ms, so that seven backoffs take 254 ms at most. With 100 ms they would",
		"nearly always outlast timeoutMS.")
	f.Clients = []Client{Observed("client", "maxAdaptiveRetries: 7, timeoutMS: 3000")}
	f.Entities = Objects(overloadDatabase, "setup", "admin")
	set := func(n int) []string {
		return []string{fmt.Sprintf("{ name: runCommand, object: admin-setup, arguments: { commandName: setParameter, command: { setParameter: 1, %s: %d } } }", parameter, n)}
	}
	tell(f, []string{"collection.find", "collection.insertOne"},
		Story{Says: "uses the baseBackoffMS of the error for its backoff (B6)", Before: set(1),
			Fails: overload, After: set(0), Attempts: 8})
	return f
}

func connections() *File {
	f := NewFile("connections", "connections of the attempts", Servers("4.4", Monitored),
		"Each attempt checks out a connection and checks it in again; a backoff does not keep a connection.")
	f.Clients = []Client{{ID: "client", Observe: []string{"connectionCheckedOutEvent", "connectionCheckedInEvent", "poolClearedEvent"}}}
	tell(f, []string{"collection.find", "collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		Story{Says: "checks in its connection before each backoff (B6)", Mode: Times(2), Fails: overload,
			Pool: slices.Repeat([]string{"{ connectionCheckedOutEvent: {} }", "{ connectionCheckedInEvent: {} }"}, 3)})
	return f
}

// establishing closes new connections during hello, which drivers treat as overload (Connection Monitoring and
// Pooling, "Connection Pool"). It returns a function for stories in which the first attempts fail.
func establishing(app, database string) (f *File, fails func(by, says, mode string, failing int, raises string) Story) {
	client := func(id, options string) Client { return Idling(id, app, options, "poolClearedEvent") }
	f = NewFile("establishment", "connections that cannot be established", Servers("4.4.7", ""),
		"A network error in the hello of a new connection has the labels of a retryable overload error: every command is",
		"retried after it, up to the limit, and the pool is not cleared. No command was sent, but pool events show the",
		"attempts.")
	f.Clients = []Client{client("client", ""), client("none", "maxAdaptiveRetries: 0, "),
		client("off", "retryReads: false, retryWrites: false, ")}
	return f, func(by, says, mode string, failing int, raises string) Story {
		return Story{Says: says, By: by, Raises: raises}.Refused(FailHello(app+by, mode), database).CheckedOut(failing)
	}
}

// established are the operations of establishing.
var established = []string{"collection.find", "collection.updateMany", "collection.deleteMany", "collection.createIndex",
	"database.runCommand with find"}

// refused is the error of a connection that cannot be established.
var refused = WithLabels(RaisedNetwork, both, "")

func establishment() *File {
	f, fails := establishing("utrEstablishment", overloadDatabase)
	tell(f, established,
		fails("client", "is retried twice after network errors in hello (B1)", Times(2), 2, ""),
		fails("client", "is retried no more than twice after network errors in hello (B4)", Always, 3, refused),
		fails("off", "is not retried after a network error in hello if retryReads and retryWrites are false (B3)", Times(1), 1, refused))
	f.Tell(named("collection.updateMany"),
		fails("none", "is not retried after a network error in hello with maxAdaptiveRetries 0 (B4)", Times(1), 1, refused))
	return f
}

func authentication() *File {
	f := NewFile("authentication", "connections that cannot be authenticated", "",
		"A network error in authentication has neither label, so commands that other policies do not retry are attempted",
		"once. No command was sent.")
	f.Clients = []Client{Observed("client", "maxIdleTimeMS: 10")}
	f.Require = Authenticated("4.4", Monitored)
	tell(f, []string{"collection.updateMany", "collection.createIndex", "database.runCommand with find"},
		Story{Says: "is not retried after a network error in saslContinue (R34)", Raises: WithLabels(RaisedNetwork, "", both)}.
			Refused(FailPoint("saslContinue", Times(1), Closes), overloadDatabase))
	return f
}
