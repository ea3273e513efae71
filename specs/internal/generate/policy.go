package main

import "slices"

// Policy has the differences between the stories of retryable reads and of retryable writes.
type Policy struct {
	Database string
	Noun     string // read or write
	Option   string // retryReads or retryWrites
	On       string // sets the option; "" if that is the default
	Label    string // makes an error retryable; "" if its code does
	Whole    bool   // a bulk write with a multi-document write is not retried at all
	// Rules of the retry core for network errors, codes, a second error, the time limit of server selection, handshakes,
	// cleared pools, and the option; "" if the policy has no such rule.
	Network, Codes, Once, Expires, Handshake, Pool, Off string
}

// client returns a client that retries.
func (p Policy) client(id, options string) Client {
	if p.On != "" && options != "" {
		options = ", " + options
	}
	return Observed(id, p.On+options)
}

// operation returns a write of the policy's database.
func (p Policy) operation(title string) Operation {
	return Named(writeOperations(p.Database), "collection."+title)
}

// labelled is the name of a retryable error.
func (p Policy) labelled(c Code) string {
	switch {
	case p.Label != "":
		return c.Name + " with the label " + p.Label
	case p.Noun == "write":
		return c.Name + " without a label"
	}
	return c.Name
}

// Fails is the data of failCommand for a retryable error.
func (p Policy) Fails(c Code) string {
	switch {
	case p.Label != "":
		return Labelled(c, p.Label)
	case p.Noun == "write": // a mongod would add a label
		return Labelled(c)
	}
	return ErrorCode(c)
}

// Raises expects a retryable error.
func (p Policy) Raises(c Code) string { return RaisedLabels(c, p.Label, "") }

// RaisesOff expects an error without Label.
func (p Policy) RaisesOff(raises string) string { return WithLabels(raises, "", p.Label) }

// Both returns a client that retries and one that does not, with further options.
func (p Policy) Both(options string) []Client {
	return []Client{p.client("client", options), Observed("noRetry", options+p.Option+": false")}
}

// CMAP events of a connection that cannot be established.
const (
	CheckOut       = "{ connectionCheckOutStartedEvent: {} }"
	CheckOutFailed = "{ connectionCheckOutFailedEvent: { reason: connectionError } }"
)

// HandshakeHello fails the hello of a new connection. maxIdleTimeMS closes the connection that discovered
// the deployment, so that the operation needs a new one. The appName, which begins with app, restricts the
// fail point to this client, because the other may still be discovering. In the stories the operation is
// retried, or the option is off.
func (p Policy) HandshakeHello(app, require string) (f *File, retried, off Story) {
	f = NewFile("handshake-hello", "handshakes that fail in hello", require,
		"The connection in the pool is too old for the "+p.Noun+", and the hello of the new connection fails. No command",
		"is sent on it: command events show one attempt, pool events show two.")
	f.Clients = []Client{Idling("client", app, ""), Idling("noRetry", app, p.Option+": false, ")}
	retried = Story{Says: "is retried after a network error in the handshake (" + p.Handshake + ")"}
	off = Story{Says: "is not retried after a network error in the handshake if " + p.Option + " is false (" + p.Off + ")",
		By: "noRetry", Raises: p.RaisesOff(RaisedNetwork)}
	return f, retried.Refused(FailHello(app+"client", Times(1)), p.Database).CheckedOut(1),
		off.Refused(FailHello(app+"noRetry", Times(1)), p.Database).CheckedOut(1)
}

// HandshakeAuth fails the authentication of a new connection. It returns the stories of each operation, and
// a story for one operation.
func (p Policy) HandshakeAuth(require ...string) (f *File, stories []Story, second Story) {
	f = NewFile("handshake-authentication", "handshakes that fail in authentication", "",
		"The connection in the pool is too old for the "+p.Noun+", and saslContinue fails on the new connection. No command",
		"is sent on it: command events show one attempt.")
	f.Clients = []Client{Observed("client", "maxIdleTimeMS: 10"), Observed("noRetry", p.Option+": false, maxIdleTimeMS: 10")}
	f.Require = require
	fails := func(by, says, mode, data, raises string) Story {
		return Story{Says: says, By: by, Raises: raises}.Refused(FailPoint("saslContinue", mode, data), p.Database)
	}
	once := Times(1)
	return f, []Story{
		fails("client", "is retried after a network error in saslContinue ("+p.Handshake+")", once, Closes, ""),
		fails("client", "is retried after "+p.labelled(ShutdownInProgress)+" in saslContinue ("+p.Handshake+")", once, p.Fails(ShutdownInProgress), ""),
		fails("client", "is not retried after AuthenticationFailed in saslContinue (R34)", once, ErrorCode(AuthenticationFailed),
			p.RaisesOff(AnyError)),
		fails("noRetry", "is not retried after a network error in saslContinue if "+p.Option+" is false ("+p.Off+")", once, Closes,
			p.RaisesOff(AnyError)),
	}, fails("client", "is not retried again after a second network error in saslContinue (R35)", Times(2), Closes, AnyError)
}

// Pooled is an operation of PoolCleared, which is performed twice. Wrote is for both.
type Pooled struct {
	Operation
	First, Second string // arguments
}

// PoolCleared has two operations that share a connection. The first fails, with the error in raises if the
// option is off, and clears the pool while the second waits.
func (p Policy) PoolCleared(require, raises string, rows ...Pooled) *File {
	events := []string{"connectionCheckedOutEvent", "connectionCheckOutFailedEvent", "poolClearedEvent", "commandStartedEvent"}
	f := NewFile("pool-cleared", "a cleared pool", require,
		"Two "+p.Noun+"s share a pool of one connection. The first fails and clears the pool, so the second, which is waiting",
		"for the connection, fails to check one out. Both are retried.")
	f.Clients = []Client{{ID: "client", Options: "maxPoolSize: 1", Observe: events},
		{ID: "noRetry", Options: "maxPoolSize: 1, " + p.Option + ": false", Observe: events}}
	f.Entities = []string{"thread: { id: first }", "thread: { id: second }"}
	for _, r := range rows {
		for _, s := range []struct {
			by, says      string
			first, second string // errors
			started       int
		}{
			{"client", "is retried after the pool is cleared while it waits for a connection (" + p.Pool + ")", "", "", 3},
			{"noRetry", "is not retried after the pool is cleared if " + p.Option + " is false (" + p.Off + ")", raises, p.RaisesOff(AnyError), 1},
		} {
			run := func(thread, arguments, raises string) Operation {
				o := r.Operation
				o.Arguments = arguments
				return Operation{Heading: r.Title(), Object: "testRunner", Name: "runOnThread", Reads: r.Reads, Wrote: r.Wrote,
					Arguments: "{ thread: " + thread + ", operation: " + o.Call(s.by, "", raises) + " }"}
			}
			event := func(name, event string) string {
				return Special(name, "client: "+s.by+", event: "+event+", count: 1")
			}
			f.Tell(run("second", r.Second, s.second), Story{Says: s.says, By: s.by, Before: []string{
				FailPoint(r.Command, Times(1), p.Fails(ShutdownInProgress)+", blockConnection: true, blockTimeMS: 500"),
				run("first", r.First, s.first).Call(s.by, "", ""),
				event("waitForEvent", "{ commandStartedEvent: { commandName: "+r.Command+" } }"),
			},
				After: []string{
					Special("waitForThread", "thread: first"), Special("waitForThread", "thread: second"),
					// In any order: the first may check out its new connection before the second fails.
					event("assertEventCount", CheckOutFailed), event("assertEventCount", "{ poolClearedEvent: {} }"),
				},
				Seen: slices.Repeat([]string{StartedEvent(Merge(r.Started, r.carries(s.by)), r.Command, r.Database)}, s.started),
				Pool: []string{"{ connectionCheckedOutEvent: {} }", "{ poolClearedEvent: {} }"}, ExtraPool: true, Outcome: r.outcome(s.second == "")})
		}
	}
	return f
}

// ServerSelection has a first error that makes the server unknown, and fails its hello from then on.
func (p Policy) ServerSelection(app, require string, operations ...Operation) *File {
	f := NewFile("server-selection", "no server for the retry", require,
		"The first error makes the server unknown, and every later hello fails, so no server can be selected for the retry.",
		"The error of the first attempt is raised, not the server selection error.")
	f.Clients = []Client{p.client("client", "appName: "+app+", serverSelectionTimeoutMS: 1500, "+Quiet),
		p.client("timed", "appName: "+app+", timeoutMS: 1500, "+Quiet)}
	lost := func(o Operation, c Code, s Story) {
		s.Before, s.Seen, s.Attempts = []string{Ping(s.By)}, Pinged(p.Database), 1
		data := p.Fails(c)
		if p.Noun == "write" {
			data = Labelled(c, writable) // retryable under every policy
		}
		s.Points = []string{FailPoint(o.Command+", hello, isMaster", Always, data+", appName: "+app)}
		f.Tell(o, s)
	}
	for _, o := range operations {
		// Only shutdown codes: errors of a step-down have the topologyVersion that the client already has, so
		// drivers ignore them as stale.
		for _, c := range []Code{ShutdownInProgress, InterruptedAtShutdown} {
			lost(o, c, Story{Says: "raises " + c.Name + " if no server can be selected for the retry (R3)", By: "client", Raises: p.Raises(c)})
		}
	}
	c, within := ShutdownInProgress, " if no server can be selected for the retry within timeoutMS"
	late := Story{Says: "raises a timeout" + within + " (" + p.Expires + ")", By: "timed", Raises: TimeoutError}
	if p.Expires == "" {
		late = Story{Says: "raises " + c.Name + within + " (R3)", By: "timed", Raises: Merge(p.Raises(c), "isTimeoutError: false"), Today: "a timeout is raised"}
	}
	lost(operations[0], c, late)
	return f
}

// OtherMongos checks the deprioritized server. The format cannot distinguish one mongos from another, so the
// test depends on chance: every attempt on one of them fails. If the failed mongos is deprioritized, all
// operations succeed; otherwise, with two mongoses, a quarter of them fail.
func (p Policy) OtherMongos(require string, rows ...OnMongoses) *File {
	f := NewFile("sharded", "retry on another mongos", require,
		"One mongos fails every attempt with an error that does not mark it Unknown. A retry on another mongos always",
		"succeeds. A driver that ignores the deprioritized server soon fails.")
	f.Clients = []Client{AllMongoses("client", ""), Observed("one", "")}
	for _, r := range rows {
		rounds := slices.Repeat([]Operation{r.Operation}, Rounds)
		for n, a := range r.Each {
			rounds[n].Arguments, rounds[n].Result = a, ""
		}
		f.TellRounds(rounds, Story{Says: "is retried on another mongos (R40)", By: "client", Mode: Always,
			Fails: p.Fails(HostUnreachable), Outcome: r.Left})
		f.Tell(r.Operation, Story{Says: "is retried on the same mongos if it is the only one (R40)", By: "one",
			Fails: p.Fails(HostUnreachable), Attempts: 2})
	}
	return f
}

// Rounds is how often OtherMongos performs an operation.
const Rounds = 12

// TellRounds adds a test in which operations of a client of several mongoses are performed one after the other. Before
// lists operations before each of them.
func (f *File) TellRounds(rounds []Operation, s Story, before ...string) {
	s.Before, s.Points = []string{MongosesKnown(s.By)}, append(s.Points, before...)
	for _, o := range rounds[1:] {
		s.After = slices.Concat(s.After, before, []string{o.Call(s.By, "", "")})
	}
	f.Tell(rounds[0], s)
}

// OnMongoses is an operation of OtherMongos.
type OnMongoses struct {
	Operation
	Each []string  // arguments of each round; nil for those of the operation
	Left []Outcome // outcome of all rounds; nil for that of the operation
}

// Timed are the stories of Timeouts.
type Timed struct{ Thrice, Off, Endless, Expired, Outlasts Story }

// Timeouts checks that timeoutMS removes the limit of one retry. Before Outlasts, callers open a connection so
// that its cost is not part of the time: one attempt fits with a wide margin, and two never do.
func (p Policy) Timeouts(require string) (*File, Timed) {
	f := NewFile("timeoutMS", "retries under timeoutMS", require,
		"With timeoutMS a "+p.Noun+" is retried until it succeeds or timeoutMS, which covers all attempts, has passed.")
	f.Clients = []Client{Observed("client", "timeoutMS: 20000"), Observed("endless", "timeoutMS: 0"),
		Observed("noRetry", "timeoutMS: 20000, "+p.Option+": false")}
	code := HostNotFound // leaves the server known, so that no time is lost
	return f, Timed{
		Thrice: Story{Says: "is retried three times within timeoutMS (R36)", Fails: p.Fails(code), Attempts: 4},
		Off: Story{Says: "is not retried within timeoutMS if " + p.Option + " is false (" + p.Off + ")", By: "noRetry", Fails: p.Fails(code),
			Raises: RaisedCode(code), Attempts: 1},
		Endless: Story{Says: "is retried three times with timeoutMS 0, which means no limit (R36)", By: "endless",
			Fails: p.Fails(code), Attempts: 4},
		Expired: Story{Says: "is not retried after MaxTimeMSExpired, which is a timeout under timeoutMS (R34)", Fails: ErrorCode(MaxTimeMSExpired),
			Raises: TimeoutError, Attempts: 1},
		Outlasts: Story{Says: "times out during the attempt that outlasts timeoutMS (R36)", Mode: Always,
			Fails: p.Fails(code) + ", blockConnection: true, blockTimeMS: 1000", With: "timeoutMS: 1800", Raises: TimeoutError, Attempts: 2,
			Outcome: []Outcome{}},
	}
}
