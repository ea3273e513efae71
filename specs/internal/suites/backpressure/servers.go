package backpressure

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// retargeting lets the primary of a replica set be overloaded while its
// secondaries are not.
func retargeting() *suites.File {
	const preferred = "readPreference: primaryPreferred"
	f := suites.NewFile("retargeting", "enableOverloadRetargeting", suites.Servers("4.4", suites.Sets),
		"The primary is overloaded for good. With enableOverloadRetargeting the retry of a read that prefers the primary goes to",
		"a secondary, which the replica set must have; without, all attempts go to the primary. Writes have no choice.")
	f.Clients = []suites.Client{suites.Observed("client", "enableOverloadRetargeting: true, "+preferred), suites.Observed("default", preferred),
		suites.Observed("off", "enableOverloadRetargeting: false, "+preferred)}
	// A ping on the primary and one on a secondary make the client discover
	// both, so that the first attempt goes to the one and the retry to the other.
	ping := func(by, mode string) string {
		return fmt.Sprintf("{ name: runCommand, object: database%s, arguments: { commandName: ping, command: { ping: 1 }, readPreference: { mode: %s } } }", suites.Suffix(by), mode)
	}
	tell := func(title, by string, s story) {
		o := named(title)
		if o.Reads {
			o.Result = "" // the secondary may not have the documents yet
		}
		if s.Mode == "" {
			s.Mode = suites.Always
		}
		s.By, s.Before = by, []string{ping(by, "primary"), ping(by, "secondary")}
		s.Seen = slices.Repeat(suites.Pinged(databaseName), 2)
		f.Tell(o, s)
	}
	for _, name := range []string{"find", "findOne", "aggregate", "count", "countDocuments", "estimatedDocumentCount", "distinct"} {
		title := "collection." + name
		tell(title, "client", story{Says: "is retried on a secondary with enableOverloadRetargeting (R41)", Fails: overload, Attempts: 2})
		tell(title, "default", story{Says: "is retried on the primary by default (R41)", Fails: overload, Attempts: 3, Raises: raised})
	}
	tell("collection.find", "off", story{Says: "is retried on the primary with enableOverloadRetargeting false (R41)", Fails: overload,
		Attempts: 3, Raises: raised})
	tell("collection.find", "client", story{Says: "is retried on the primary after another retryable error (R41)",
		Fails: suites.Labelled(unreachable), Attempts: 2,
		Raises: suites.RaisedCode(unreachable)})
	tell("collection.find", "client", story{Says: "is retried on a secondary after a retryable error with " + overloaded + " alone (R41)",
		Fails: suites.Labelled(unreachable, overloaded), Attempts: 2})
	tell("collection.insertOne", "client", story{Says: "is retried on the primary with enableOverloadRetargeting (R41)",
		Mode: suites.Times(2), Fails: overload, Attempts: 3})
	return f
}

// otherMongos checks the deprioritized server as the suites of retryable reads
// do: by chance. One retry has to be enough.
func otherMongos() *suites.File {
	const app = "utrOtherMongos"
	f := suites.NewFile("sharded", "retry on another mongos", suites.Servers("4.4", suites.Sharded),
		"One mongos is overloaded for good. The one retry that is allowed goes to another one, whatever enableOverloadRetargeting",
		"says, and succeeds always; one that ignored the deprioritized server would not for long.")
	f.Clients = []suites.Client{suites.AllMongoses("client", "maxAdaptiveRetries: 1"),
		suites.AllMongoses("off", "maxAdaptiveRetries: 1, enableOverloadRetargeting: false"),
		suites.AllMongoses("idle", "maxAdaptiveRetries: 1, appName: "+app+", maxIdleTimeMS: 5, "+suites.Quiet)}
	// rounds calls an operation that often, with something before each call.
	rounds := func(title, arguments string, s story, before ...string) {
		o := named(title)
		o.Arguments, o.Result = arguments, ""
		s.Points = append(s.Points, before...)
		s.Before = []string{suites.MongosesKnown(s.By)}
		s.After = slices.Repeat(append(before, o.Call(s.By, "", "")), suites.Rounds-1)
		f.Tell(o, s)
	}
	const find, update = "{ filter: { _id: 1 } }", "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"
	updated := []suites.Outcome{{Collection: suites.Collection,
		Documents: []string{"{ _id: 1, x: 11 }", fmt.Sprintf("{ _id: 2, x: %d }", 22+suites.Rounds), "{ _id: 3, x: 33 }"}}}
	for _, by := range []string{"client", "off"} {
		option := map[string]string{"client": "", "off": " with enableOverloadRetargeting false"}[by]
		s := story{Says: "is retried on another mongos" + option + " (R40)", By: by, Mode: suites.Always, Fails: overload}
		rounds("collection.find", find, s)
		s.Outcome = updated
		rounds("collection.updateOne", update, s)
		rounds("collection.updateMany", update, s)
	}
	// A hello that fails deprioritizes its mongos, too. The connections are idle
	// for too long each time.
	idle := story{Says: "is retried on another mongos after a network error in hello (R40)", By: "idle",
		Require: suites.Servers("4.4.7", suites.Sharded),
		Points:  []string{suites.FailHello(app, suites.Always)}, Outcome: []suites.Outcome{}}
	rounds("collection.find", find, idle, suites.Wait(20))
	rounds("collection.updateMany", "{ filter: { _id: 9 }, update: { $inc: { x: 1 } } }", idle, suites.Wait(20))
	return f
}

// sameMongos checks what keeps to its mongos: a cursor, and a transaction with
// its commit.
func sameMongos() *suites.File {
	f := suites.NewFile("sharded-pinned", "retry on the same mongos", suites.Servers("4.4", suites.Sharded),
		"A getMore goes to the mongos of its cursor, and the commands of a transaction to that of the transaction, however overloaded it is: no",
		"other mongos knows them. Which mongos has the cursor is chance; the session says which one has the transaction.")
	f.Clients = []suites.Client{suites.WatchedMongoses()}
	f.Sessions = true
	known := suites.MongosesKnown("client")
	more := suites.GetMore("find", databaseName, twoBatches)
	more.Reads, more.Result = true, threeDocuments
	f.Tell(more, story{Says: "is retried on the mongos of the cursor (B1)", Before: []string{known}, Fails: overload,
		After: slices.Repeat([]string{suites.FailPoint("getMore", suites.Times(1), overload), more.Call("client", "", "")}, 7)})

	insert, update, commit := named("collection.insertOne"), named("collection.updateOne"), ending("commitTransaction", undecided)
	pinned := suites.Special("assertSessionPinned", "session: session")
	overloads := func(command string) []string {
		return []string{suites.TargetedFailPoint(command, suites.Times(2), overload)}
	}
	before := suites.Join([]string{known}, begin(insert))
	f.Tell(update, story{Says: "is retried on the mongos of its transaction (B1)", Before: before, Points: overloads("update"),
		With:  "session: session",
		After: []string{pinned, suites.OnSession("commitTransaction", "client")}, Seen: insert.Attempts(1, 0, begins), Attempts: 3, Carries: goesOn,
		Then: commit.Attempts(1, 0, ""), Outcome: bothWritten})
	f.Tell(commit, story{Says: "is retried on the mongos of its transaction (B1)", Before: before, Points: overloads("commitTransaction"),
		After: []string{pinned}, Seen: insert.Attempts(1, 0, begins), Attempts: 3})
	return f
}

// timeouts checks the limit of retries under timeoutMS, and the backoff that
// outlasts it. The client long has so many retries that one of the backoffs
// is longer than timeoutMS by itself: all of them are shorter once in 10^11
// runs. So the test also passes where backoffs are decided but not slept.
func timeouts() *suites.File {
	f := suites.NewFile("timeoutMS", "retries under timeoutMS", retrying,
		"With timeoutMS the number of retries has the same limit, and a backoff that would outlast it is not begun. Backoffs are",
		"random: one of sixteen is longer than a second in all but one of 10^11 runs.")
	f.Clients = []suites.Client{suites.Observed("client", "timeoutMS: 20000"), suites.Observed("endless", "timeoutMS: 0"),
		suites.Observed("none", "timeoutMS: 20000, maxAdaptiveRetries: 0"), suites.Observed("long", "maxAdaptiveRetries: 16, timeoutMS: 1000")}
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"},
		story{Says: "is retried twice within timeoutMS (B1)", Mode: suites.Times(2), Fails: overload, Attempts: 3},
		story{Says: "is retried no more than twice within timeoutMS (B4)", Mode: suites.Always, Fails: overload, Attempts: 3, Raises: raised},
		story{Says: "is retried no more than twice with timeoutMS 0 (B4)", By: "endless", Mode: suites.Always, Fails: overload, Attempts: 3,
			Raises: raised},
		story{Says: "is not retried within timeoutMS with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload, Attempts: 1, Raises: raised},
		story{Says: "backs off until a backoff would outlast timeoutMS (B5)", By: "long", Mode: suites.Times(16), Fails: overload,
			Attempts: 1, Extra: true,
			Raises: suites.AnyError})
	return f
}

// baseBackoff lets the server say how long to wait: so little that all
// retries succeed before timeoutMS is over.
func baseBackoff() *suites.File {
	const parameter = "externalClientBaseBackoffMS"
	f := suites.NewFile("baseBackoffMS", "a base of the backoff that the server gives",
		suites.Merge(suites.Servers("9.0", suites.Sets), "serverParameters: { "+parameter+": 0 }"),
		"The server asks for a base of 1 ms instead of 100, with which seven backoffs take 254 ms at the most. With 100 ms they",
		"would outlast timeoutMS nearly always.")
	f.Clients = []suites.Client{suites.Observed("client", "maxAdaptiveRetries: 7, timeoutMS: 3000")}
	f.Entities = suites.Objects(databaseName, "setup", "admin")
	set := func(n int) []string {
		return []string{fmt.Sprintf("{ name: runCommand, object: admin-setup, arguments: { commandName: setParameter, command: { setParameter: 1, %s: %d } } }", parameter, n)}
	}
	tell(f, []string{"collection.find", "collection.insertOne"},
		story{Says: "backs off for the time that baseBackoffMS of the error says (B6)", Before: set(1),
			Mode: suites.Times(7), Fails: overload, After: set(0), Attempts: 8})
	return f
}

// connections checks that a connection is not kept during a backoff.
func connections() *suites.File {
	f := suites.NewFile("connections", "connections of the attempts", suites.Servers("4.4", suites.Monitored),
		"Each attempt checks a connection out and in again: none is kept during a backoff.")
	f.Clients = []suites.Client{{ID: "client", Observe: []string{"connectionCheckedOutEvent", "connectionCheckedInEvent", "poolClearedEvent"}}}
	tell(f, []string{"collection.find", "collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		story{Says: "gives the connection back before each backoff (B6)", Mode: suites.Times(2), Fails: overload,
			Pool: slices.Repeat([]string{"{ connectionCheckedOutEvent: {} }", "{ connectionCheckedInEvent: {} }"}, 3)})
	return f
}
