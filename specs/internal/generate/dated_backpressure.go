package main

import (
	"fmt"
	"slices"
)

// overloadOf2025 returns the suites of the policy client-backpressure@2025-12: five retries, a token bucket,
// no options, and every failed server is deprioritized.
func overloadOf2025() Specification {
	list := operations(database2025)
	off := "retryReads: false, retryWrites: false"
	f := NewFile("overload", "overload errors", anywhere,
		"Every command is retried after overload errors, regardless of retryReads and retryWrites.")
	f.Clients = []Client{Observed("client", ""), Observed("noRetry", off)}
	f.Objects, f.Bucket, f.Empty, f.Entities = everything, true, []string{written}, Objects(database2025, "setup", "database")
	for _, o := range list {
		f.Tell(o,
			Story{Says: "is retried after an overload error even if retryReads and retryWrites are false (B1)", By: "noRetry", Fails: overload,
				Attempts: 2, Require: beyond(o), Today: "the option for the command forbids it"},
			NotRetried("an error with "+overloaded+" alone (R34)", overloadedOnly, raisesOverloadedOnly).On(beyond(o)))
	}

	limit := NewFile("limit", "the number of retries", labelling, "A command is retried up to five times after overload errors, regardless of the options.")
	limit.Clients = []Client{Observed("client", ""), Observed("none", "maxAdaptiveRetries: 0"), Observed("timed", "timeoutMS: 20000")}
	for _, title := range []string{"collection.find", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		limit.Tell(Named(list, title),
			Story{Says: "is retried five times after overload errors (B1)", Fails: overload, Attempts: 6, Today: "it is retried at most twice"},
			Story{Says: "is retried no more than five times after overload errors (B4)", Mode: Always, Fails: overload, Attempts: 6,
				Raises: raisesOverload, Today: "it is retried at most twice"},
			Story{Says: "is retried even with maxAdaptiveRetries 0, which does not exist yet (B1)", By: "none", Fails: overload, Attempts: 2,
				Today: "it is not retried"},
			Story{Says: "is retried no more than five times within timeoutMS (B4)", By: "timed", Mode: Always, Fails: overload, Attempts: 6,
				Raises: raisesOverload, Today: "it is retried at most twice"})
	}

	const preferred = "readPreference: primaryPreferred"
	elsewhere := NewFile("retargeting", "retry on another server", Servers("4.4", Sets),
		"The primary fails every attempt. The retry of a read that prefers the primary goes to a secondary, which the",
		"replica set must have. Every failed server is deprioritized, whatever the error.")
	elsewhere.Clients = []Client{Observed("client", preferred)}
	for _, title := range []string{"collection.find", "collection.aggregate", "collection.count", "collection.distinct"} {
		o := Named(list, title)
		o.Result = "" // the secondary may not have the documents yet
		for _, e := range []struct{ says, data string }{{"an overload error", overload}, {"HostUnreachable", Labelled(HostUnreachable)}} {
			elsewhere.Tell(o, Story{Says: "is retried on a secondary after " + e.says + " (R42)",
				Today: "it stays on the primary"}.Between("client", database2025, e.data, 2))
		}
	}
	return Specification{Name: "client-backpressure-2025-12", Dated: true, Files: []*File{f, limit, elsewhere, bucketOf2025(Named(list, "collection.find"))}}
}

// bucketOf2025 exhausts the thousand tokens of a client with two hundred reads of five retries each, a hundred
// at a time.
func bucketOf2025(find Operation) *File {
	const threads, started = 100, "{ commandStartedEvent: { commandName: find } }"
	f := NewFile("tokens", "the token bucket", anywhere,
		"Each retry takes a token from the client's bucket, which holds a thousand. A read that succeeds on the first",
		"attempt adds a tenth of a token. Two hundred reads run on a hundred threads, because their backoffs take real time.")
	f.Clients = []Client{{ID: "client", Observe: []string{"commandStartedEvent"}}}
	find.Result = ""
	var run, wait []string
	for n := range threads {
		thread := fmt.Sprintf("thread%d", n)
		f.Entities = append(f.Entities, "thread: { id: "+thread+" }")
		call := Special("runOnThread", "thread: "+thread+", operation: "+find.Call("client", "", raisesOverload))
		run, wait = append(run, call, call), append(wait, Special("waitForThread", "thread: "+thread))
	}
	count := func(n int) []string {
		return []string{Special("assertEventCount", "client: client, event: "+started+", count: "+fmt.Sprint(n))}
	}
	fails, works := FailPoint("find", Always, overload), SetFailPoint("failCommand", `"off"`, "")
	raises, succeeds := find.Call("client", "", raisesOverload), find.Call("client", "", "")
	f.Tell(find, Story{Says: "is not retried without a token (B13)", Before: slices.Concat([]string{fails}, run, wait, count(1200)),
		Raises: raisesOverload, After: count(1201), Today: "the bucket does not exist"})
	f.Tell(find, Story{Says: "can be retried once after ten reads that succeed (B10)", Before: slices.Concat([]string{fails}, run, wait, []string{works},
		slices.Repeat([]string{succeeds}, 10), []string{fails}),
		Raises: raisesOverload, After: slices.Concat(count(1212), []string{raises}, count(1213)), Today: "the bucket does not exist"})
	return f
}
