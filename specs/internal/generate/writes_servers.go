package main

import (
	"fmt"
	"slices"
)

func writeOtherMongos() *File {
	always := func(arguments string) []string { return slices.Repeat([]string{arguments}, Rounds) }
	numbers := func(format string) (out []string) {
		for n := range Rounds {
			out = append(out, fmt.Sprintf(format, 10+n))
		}
		return out
	}
	inserted := After(append(Initial(), numbers("{ _id: %d }")...)...)
	increased := After(first, fmt.Sprintf("{ _id: 2, x: %d }", 22+Rounds), third)
	return writes.OtherMongos(Servers("4.4", Sharded),
		OnMongoses{writeNamed("insertOne"), numbers("{ document: { _id: %d } }"), inserted},
		OnMongoses{writeNamed("insertMany ordered"), numbers("{ documents: [ { _id: %d } ] }"), inserted},
		OnMongoses{writeNamed("updateOne"), always(increase), increased},
		OnMongoses{writeNamed("findOneAndUpdate"), always(increase), increased},
		OnMongoses{writeNamed("bulkWrite ordered"), always("{ requests: [ { updateOne: " + increase + " } ] }"), increased},
		OnMongoses{writeNamed("deleteOne"), always("{ filter: { _id: 3 } }"), After(first, second)})
}

// otherMongosForEnds retries commit and abort on another mongos. A targeted fail point makes the test independent
// of chance.
func otherMongosForEnds() *File {
	f := NewFile("sharded-transactions", "the end of a transaction on another mongos", Servers("4.4", Sharded),
		"The session is unpinned before commit or abort is retried, and the retry goes to another mongos with the recovery",
		"token. The commit took effect, and the other mongos reports so. It does not know the transaction of the abort and",
		"fails the retry; the mongos of the transaction would not.")
	f.Clients = []Client{WatchedMongoses()}
	f.Sessions = true
	insert := writeNamed("insertOne")
	for _, r := range []struct {
		command, mode, data string
		failing             int // in the events
	}{
		{"commitTransaction", Always, LabelledConcern(writable), 0},
		{"abortTransaction", Times(1), writes.Fails(HostUnreachable), 2},
	} {
		o := ending(r.command, `recoveryToken: { $$exists: true }, autocommit: false, txnNumber: { $numberLong: "1" }`)
		f.Tell(o, Story{Says: "is retried on another mongos (R40)",
			Before: slices.Concat([]string{MongosesKnown("client")}, Begin(insert, "client")),
			Points: []string{TargetedFailPoint(r.command, r.mode, r.data)},
			After:  []string{Special("assertSessionUnpinned", "session: session")},
			Seen:   insert.Attempts(1, 0, begins), Then: o.Attempts(2, r.failing, "")})
	}
	return f
}

func writeHandshakeHello(operations []Operation) *File {
	const app = "utrWriteHandshake"
	f, retried, off := writes.HandshakeHello(app, Servers("4.4.7", Retrying))
	f.Clients = append(f.Clients, Observed("warm", "appName: "+app+"warm"))
	for _, o := range operations {
		f.Tell(o, retried, off)
	}
	// Behind a load balancer there are no monitors, which a permanent fail point would affect.
	o := operations[0]
	f.Tell(o, Story{Says: "raises the network error of the attempt if the handshakes of the retries fail (R21)", By: "warm",
		Require: Servers("5.0", Balanced), Before: []string{Ping("warm")},
		Points: []string{FailPoint(o.Command+", hello, isMaster", Always, "appName: "+app+"warm, "+Closes)},
		Raises: WithLabels(RaisedNetwork, writable, overloaded), Seen: Pinged(writeDatabase), Attempts: 1})
	if o.Since == "" {
		f.Entities = []string{Session("client"), Session("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// A network error in hello is an overload error, after which the write concern does not change.
			s := Story{By: by, Require: Servers("4.4.7", Clusters), Pool: retried.Pool,
				Points: []string{FailHello(app+by, Times(1))}}
			endsAfter(f, s, "{ $$exists: false }", "the handshake", "commitTransaction", "abortTransaction")
		}
	}
	return f
}

// endsAfter adds tests of commit and abort on a new connection, whose handshake fails once. They are not for
// load balancers, where a transaction is pinned to its connection.
func endsAfter(f *File, s Story, concern, where string, commands ...string) {
	insert := writeNamed("insertOne")
	for _, command := range commands {
		o := ending(command, "writeConcern: "+concern)
		s.Says = ended("is retried after a network error in "+where, s.By)
		s.Before = append(Begin(insert, s.By), Wait(50))
		s.Seen, s.Attempts = insert.Attempts(1, 0, "startTransaction: true"), 0
		if command == "commitTransaction" { // the client ignores events of abortTransaction
			s.Attempts = 1
		}
		f.Tell(o, s)
	}
}

func writeHandshakeAuth(operations []Operation) *File {
	f, list, second := writes.HandshakeAuth(Authenticated("4.2", Clusters)...)
	list[1].Require = `{ minServerVersion: "4.4", auth: true }`
	for _, o := range operations {
		f.Tell(o, list[:2]...)
		if o.Name == "insertOne" || o.Name == "clientBulkWrite" {
			f.Tell(o, second)
		}
		f.Tell(o, list[2:]...)
	}
	if operations[0].Since == "" {
		f.Entities = []string{Session("client"), Session("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// An abort would have no events.
			s := Story{By: by, Require: f.Require[0], Points: []string{FailPoint("saslContinue", Times(1), Closes)}}
			endsAfter(f, s, "{ w: majority, wtimeout: 10000 }", "saslContinue", "commitTransaction")
		}
	}
	return f
}

// increase has the arguments of an update whose outcome shows how often it was applied.
const increase = "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"

func writePoolCleared() *File {
	row := func(name, one, two string, wrote ...string) Pooled {
		o := writeNamed(name)
		o.Started, o.Carries = "{ "+o.Command+": "+Collection+" }", "lsid: { $$exists: true }, txnNumber: { $$type: long }"
		o.Result, o.Wrote = "", wrote
		return Pooled{Operation: o, First: one, Second: two}
	}
	return writes.PoolCleared(Servers("4.4", Clusters), RaisedCode(ShutdownInProgress),
		row("insertOne", "{ document: "+fourth+" }", "{ document: "+fifth+" }", first, second, third, fourth, fifth),
		row("updateOne", increase, increase, first, "{ _id: 2, x: 24 }", third),
		row("findOneAndUpdate", increase, increase, first, "{ _id: 2, x: 24 }", third))
}

func (p Policy) unselected(app string) *File {
	// Since SERVER-49336 a fail point for an appName affects the first hello.
	return p.ServerSelection(app, Servers("4.4.7", Clusters),
		p.operation("insertOne"), p.operation("findOneAndUpdate"), p.operation("bulkWrite ordered"))
}

func writeTimeouts(operations []Operation) *File {
	f, s := writes.Timeouts(labelling)
	f.About = append(f.About, "All attempts have the same transaction number.")
	for _, o := range operations {
		f.Tell(o, s.Thrice, s.Off, s.Endless)
	}
	s.Expired.Carries = numbered + ", maxTimeMS: { $$lte: 20000 }"
	s.Outlasts.Before, s.Outlasts.Seen = []string{writes.harmless().Call("client", "", "")}, writes.harmless().Attempts(1, 0, "")
	s.Outlasts.Carries = `txnNumber: { $numberLong: "2" }`
	f.Tell(operations[0], s.Expired, s.Outlasts)
	return f
}
