package main

import "slices"

// policy has the differences between the stories of retryable reads and of retryable writes. Fields that a policy does
// not need are empty.
type policy struct {
	Database string
	Noun     string // read or write
	Option   string // retryReads or retryWrites
	On       value  // sets the option; nil if that is the default
	Label    string // makes an error retryable; "" if its code does
	Whole    bool   // a bulk write with a multi-document write is not retried at all
	// Rules of the retry core for network errors, codes, a second error, the time limit of server selection, handshakes,
	// cleared pools, and the option; "" if the policy has no such rule.
	Network, Codes, Once, Expires, Handshake, Pool, Off string
}

// client returns a client that retries.
func (p policy) client(id string, options value) client { return observed(id, merge(p.On, options)) }

// off is the option that forbids retries.
func (p policy) off() value { return doc(p.Option, false) }

// labels are the labels of a retryable error.
func (p policy) labels() labels {
	if p.Label == "" {
		return nil
	}
	return labels{p.Label}
}

// operation returns a write of the policy's database.
func (p policy) operation(title string) operation {
	return titled(writeOperations(p.Database), "collection."+title)
}

// labelled is the name of a retryable error.
func (p policy) labelled(c code) string {
	switch {
	case p.Label != "":
		return c.Name + " with the label " + p.Label
	case p.Noun == "write":
		return c.Name + " without a label"
	}
	return c.Name
}

// fails is the data of failCommand for a retryable error.
func (p policy) fails(c code) value {
	switch {
	case p.Label != "":
		return errorWithLabels(c, p.Label)
	case p.Noun == "write": // a mongod would add a label
		return errorWithLabels(c)
	}
	return errorCode(c)
}

// raises expects a retryable error.
func (p policy) raises(c code) value { return raisedLabels(c, p.labels(), nil) }

// raisesOff expects an error without Label.
func (p policy) raisesOff(raises value) value { return withLabels(raises, nil, p.labels()) }

// clients returns a client that retries and one that does not.
func (p policy) clients() []client {
	return []client{p.client("client", nil), observed("noRetry", p.off())}
}

// CMAP events of a connection that cannot be established.
var (
	checkOutStarted = flow("{ connectionCheckOutStartedEvent: {} }")
	checkOutFailed  = flow("{ connectionCheckOutFailedEvent: { reason: connectionError } }")
)

// handshakeHello fails the hello of a new connection. maxIdleTimeMS closes the connection that discovered
// the deployment, so that the operation needs a new one. The appName, which begins with app, restricts the
// fail point to this client, because the other may still be discovering. In the stories the operation is
// retried, or the option is off.
func (p policy) handshakeHello(app string, require requirement) (f *file, retried, off story) {
	f = newFile("handshake-hello", "handshakes that fail in hello", require,
		"The connection in the pool is too old for the "+p.Noun+", and the hello of the new connection fails. No command",
		"is sent on it: command events show one attempt, pool events show two.")
	f.Clients = []client{idling("client", app, nil), idling("noRetry", app, p.off())}
	retried = story{Says: "is retried after a network error in the handshake (" + p.Handshake + ")"}
	off = story{Says: "is not retried after a network error in the handshake if " + p.Option + " is false (" + p.Off + ")",
		By: "noRetry", Raises: p.raisesOff(raisedNetwork)}
	return f, retried.withoutConnection(failHello(app+"client", times(1)), p.Database).withCheckOuts(1),
		off.withoutConnection(failHello(app+"noRetry", times(1)), p.Database).withCheckOuts(1)
}

// handshakeAuth fails the authentication of a new connection. It returns the stories of each operation, and
// a story for one operation.
func (p policy) handshakeAuth(require ...requirement) (f *file, stories []story, second story) {
	f = newFile("handshake-authentication", "handshakes that fail in authentication", requirement{},
		"The connection in the pool is too old for the "+p.Noun+", and saslContinue fails on the new connection. No command",
		"is sent on it: command events show one attempt.")
	f.Clients = []client{observed("client", doc("maxIdleTimeMS", 10)),
		observed("noRetry", merge(p.off(), doc("maxIdleTimeMS", 10)))}
	f.Require = require
	fails := func(by, says string, mode, data, raises value) story {
		return story{Says: says, By: by, Raises: raises}.withoutConnection(failPoint(mode, data, "saslContinue"), p.Database)
	}
	once := times(1)
	return f, []story{
			fails("client", "is retried after a network error in saslContinue ("+p.Handshake+")", once, closes, nil),
			fails("client", "is retried after "+p.labelled(shutdownInProgress)+" in saslContinue ("+p.Handshake+")", once,
				p.fails(shutdownInProgress), nil),
			fails("client", "is not retried after AuthenticationFailed in saslContinue (R34)", once,
				errorCode(authenticationFailed), p.raisesOff(anyError)),
			fails("noRetry", "is not retried after a network error in saslContinue if "+p.Option+" is false ("+p.Off+")", once,
				closes, p.raisesOff(anyError)),
		}, fails("client", "is not retried again after a second network error in saslContinue (R35)", times(2),
			closes, anyError)
}

// pooled is an operation of PoolCleared, which is performed twice. Wrote is for both.
type pooled struct {
	operation
	First, Second value // arguments
}

// poolCleared has two operations that share a connection. The first fails, with the error in raises if the
// option is off, and clears the pool while the second waits.
func (p policy) poolCleared(require requirement, raises value, rows ...pooled) *file {
	events := []string{"connectionCheckedOutEvent", "connectionCheckOutFailedEvent", "poolClearedEvent",
		"commandStartedEvent"}
	f := newFile("pool-cleared", "a cleared pool", require,
		"Two "+p.Noun+"s share a pool of one connection. The first fails and clears the pool, so the second, which is waiting",
		"for the connection, fails to check one out. Both are retried.")
	f.Clients = []client{{ID: "client", Options: doc("maxPoolSize", 1), Observe: events},
		{ID: "noRetry", Options: merge(doc("maxPoolSize", 1), p.off()), Observe: events}}
	f.Entities = []value{threadEntity("first"), threadEntity("second")}
	for _, r := range rows {
		for _, s := range []struct {
			by, says      string
			first, second value // errors
			started       int
		}{
			{"client", "is retried after the pool is cleared while it waits for a connection (" + p.Pool + ")", nil, nil, 3},
			{"noRetry", "is not retried after the pool is cleared if " + p.Option + " is false (" + p.Off + ")", raises,
				p.raisesOff(anyError), 1},
		} {
			run := func(thread string, arguments, raises value) operation {
				o := r.operation
				o.Arguments = arguments
				return operation{Heading: r.title(), Object: "testRunner", Name: "runOnThread", Reads: r.Reads, Wrote: r.Wrote,
					Arguments: doc("thread", thread, "operation", o.call(s.by, nil, raises))}
			}
			event := func(name string, event value) value {
				return runnerOperation(name, "client", s.by, "event", event, "count", 1)
			}
			f.add(run("second", r.Second, s.second), story{Says: s.says, By: s.by, Before: []value{
				failPoint(times(1), merge(p.fails(shutdownInProgress), doc("blockConnection", true, "blockTimeMS", 500)),
					r.Command),
				run("first", r.First, s.first).call(s.by, nil, nil),
				event("waitForEvent", doc("commandStartedEvent", doc("commandName", r.Command))),
			},
				After: []value{
					runnerOperation("waitForThread", "thread", "first"), runnerOperation("waitForThread", "thread", "second"),
					// In any order: the first may check out its new connection before the second fails.
					event("assertEventCount", checkOutFailed), event("assertEventCount", doc("poolClearedEvent", doc())),
				},
				Seen: slices.Repeat([]value{startedEvent(merge(r.Started, r.carries(s.by)), r.Command, r.Database)}, s.started),
				Pool: []value{doc("connectionCheckedOutEvent", doc()), doc("poolClearedEvent", doc())}, ExtraPool: true,
				Outcome: r.outcome(s.second == nil)})
		}
	}
	return f
}

// serverSelection has a first error that makes the server unknown, and fails its hello from then on.
func (p policy) serverSelection(app string, require requirement, operations ...operation) *file {
	f := newFile("server-selection", "no server for the retry", require,
		"The first error makes the server unknown, and every later hello fails, so no server can be selected for the retry.",
		"The error of the first attempt is raised, not the server selection error.")
	f.Clients = []client{p.client("client", merge(doc("appName", app, "serverSelectionTimeoutMS", 1500), quiet)),
		p.client("timed", merge(doc("appName", app, "timeoutMS", 1500), quiet))}
	lost := func(o operation, c code, s story) {
		s.Before, s.Seen, s.Attempts = []value{ping(s.By)}, pinged(p.Database), 1
		data := p.fails(c)
		if p.Noun == "write" {
			data = errorWithLabels(c, writable) // retryable under every policy
		}
		s.Points = []value{failPoint(always, merge(data, doc("appName", app)), o.Command, "hello", "isMaster")}
		f.add(o, s)
	}
	for _, o := range operations {
		// Only shutdown codes: errors of a step-down have the topologyVersion that the client already has, so
		// drivers ignore them as stale.
		for _, c := range []code{shutdownInProgress, interruptedAtShutdown} {
			lost(o, c, story{Says: "raises " + c.Name + " if no server can be selected for the retry (R3)", By: "client",
				Raises: p.raises(c)})
		}
	}
	c, within := shutdownInProgress, " if no server can be selected for the retry within timeoutMS"
	late := story{Says: "raises a timeout" + within + " (" + p.Expires + ")", By: "timed", Raises: timeoutError}
	if p.Expires == "" {
		late = story{Says: "raises " + c.Name + within + " (R3)", By: "timed",
			Raises: merge(p.raises(c), doc("isTimeoutError", false)), Today: "a timeout is raised"}
	}
	lost(operations[0], c, late)
	return f
}

// otherMongos checks the deprioritized server. The format cannot distinguish one mongos from another, so the
// test depends on chance: every attempt on one of them fails. If the failed mongos is deprioritized, all
// operations succeed; otherwise, with two mongoses, a quarter of them fail.
func (p policy) otherMongos(require requirement, rows ...onMongoses) *file {
	f := newFile("sharded", "retry on another mongos", require,
		"One mongos fails every attempt with an error that does not mark it Unknown. A retry on another mongos always",
		"succeeds. A driver that ignores the deprioritized server soon fails.")
	f.Clients = []client{allMongoses("client", nil), observed("one", nil)}
	for _, r := range rows {
		rounds := slices.Repeat([]operation{r.operation}, roundCount)
		for n, a := range r.Each {
			rounds[n].Arguments, rounds[n].Result = a, nil
		}
		f.addRounds(rounds, story{Says: "is retried on another mongos (R40)", By: "client", Mode: always,
			Fails: p.fails(hostUnreachable), Outcome: r.Left})
		f.add(r.operation, story{Says: "is retried on the same mongos if it is the only one (R40)", By: "one",
			Fails: p.fails(hostUnreachable), Attempts: 2})
	}
	return f
}

// roundCount is the number of times that OtherMongos performs an operation.
const roundCount = 12

// addRounds adds a test in which operations of a client of several mongoses are performed one after the other. Before
// lists operations before each of them.
func (f *file) addRounds(rounds []operation, s story, before ...value) {
	s.Before, s.Points = []value{mongosesKnown(s.By)}, append(s.Points, before...)
	for _, o := range rounds[1:] {
		s.After = slices.Concat(s.After, before, []value{o.call(s.By, nil, nil)})
	}
	f.add(rounds[0], s)
}

// onMongoses is an operation of OtherMongos.
type onMongoses struct {
	operation
	Each []value   // arguments of each round; nil for the arguments of the operation
	Left []outcome // outcome of all rounds; nil for the outcome of the operation
}

// timeoutStories are the stories of Timeouts.
type timeoutStories struct{ Thrice, Off, Endless, Expired, Outlasts story }

// timeouts checks that timeoutMS removes the limit of one retry. Before Outlasts, callers open a connection, so that
// opening it does not take part of the time. One attempt fits with a wide margin, and two never do.
func (p policy) timeouts(require requirement) (*file, timeoutStories) {
	f := newFile("timeoutMS", "retries under timeoutMS", require,
		"With timeoutMS a "+p.Noun+" is retried until it succeeds or timeoutMS, which covers all attempts, has passed.")
	f.Clients = []client{observed("client", doc("timeoutMS", 20000)), observed("endless", doc("timeoutMS", 0)),
		observed("noRetry", merge(doc("timeoutMS", 20000), p.off()))}
	code := hostNotFound // leaves the server known, so that no time is lost
	return f, timeoutStories{
		Thrice: story{Says: "is retried three times within timeoutMS (R36)", Fails: p.fails(code), Attempts: 4},
		Off: story{Says: "is not retried within timeoutMS if " + p.Option + " is false (" + p.Off + ")", By: "noRetry",
			Fails:  p.fails(code),
			Raises: raisedCode(code), Attempts: 1},
		Endless: story{Says: "is retried three times with timeoutMS 0, which means no limit (R36)", By: "endless",
			Fails: p.fails(code), Attempts: 4},
		Expired: story{Says: "is not retried after MaxTimeMSExpired, which is a timeout under timeoutMS (R34)",
			Fails:  errorCode(maxTimeMSExpired),
			Raises: timeoutError, Attempts: 1},
		Outlasts: story{Says: "times out during the attempt that outlasts timeoutMS (R36)", Mode: always,
			Fails: merge(p.fails(code), doc("blockConnection", true, "blockTimeMS", 1000)), With: doc("timeoutMS", 1800),
			Raises: timeoutError, Attempts: 2,
			Outcome: []outcome{}},
	}
}
