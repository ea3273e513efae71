package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

func handshakeHello(operations []operation) *suites.File {
	const app = "utrWriteHandshake"
	f, retried, off := policy.HandshakeHello(app, suites.Servers("4.4.7", suites.Retrying))
	f.Clients = append(f.Clients, suites.Observed("warm", "appName: "+app+"warm"))
	for _, o := range operations {
		f.Tell(o, retried, off)
	}
	// Behind a load balancer there are no monitors, which a fail point that goes
	// on would let lose the server.
	o := operations[0]
	f.Tell(o, story{Says: "raises the network error of the attempt if the handshakes of the retries fail (R21)", By: "warm",
		Require: suites.Servers("5.0", suites.Balanced), Before: []string{suites.Ping("warm")},
		Points: []string{suites.FailPoint(o.Command+", hello, isMaster", suites.Always, "appName: "+app+"warm, "+suites.Closes)},
		Raises: suites.WithLabels(suites.RaisedNetwork, label, suites.SystemOverloadedError), Seen: suites.Pinged(databaseName), Attempts: 1})
	if o.Since == "" {
		f.Entities = []string{suites.Session("client"), suites.Session("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// A broken hello may come of overload, after which the write concern
			// stays what it was.
			s := story{By: by, Require: suites.Servers("4.4.7", suites.Clusters), Pool: retried.Pool,
				Points: []string{suites.FailHello(app+by, suites.Times(1))}}
			endsAfter(f, s, "{ $$exists: false }", "the handshake", "commitTransaction", "abortTransaction")
		}
	}
	return f
}

// endsAfter adds tests of transactions that end on a connection that needs a
// handshake, which fails once. Behind a load balancer they keep to their
// connection.
func endsAfter(f *suites.File, s story, concern, where string, commands ...string) {
	insert := named("insertOne")
	for _, command := range commands {
		o := ending(command)
		o.Started = "{ commitTransaction: 1, writeConcern: " + concern + " }"
		s.Says = ended("is retried after a network error in "+where, s.By)
		s.Before = []string{suites.OnSession("startTransaction", s.By), insert.Call(s.By, suites.InSession(s.By), ""), suites.Wait(50)}
		s.Seen, s.Attempts = insert.Attempts(1, 0, "startTransaction: true"), 0
		if command == "commitTransaction" { // nobody sees the commands that clean up
			s.Attempts = 1
		}
		f.Tell(o, s)
	}
}

func handshakeAuth(operations []operation) *suites.File {
	f, list, second := policy.HandshakeAuth(suites.Authenticated("4.2", suites.Clusters)...)
	list[1].Require = `{ minServerVersion: "4.4", auth: true }`
	for _, o := range operations {
		f.Tell(o, list[:2]...)
		if o.Name == "insertOne" || o.Name == "clientBulkWrite" {
			f.Tell(o, second)
		}
		f.Tell(o, list[2:]...)
	}
	if operations[0].Since == "" {
		f.Entities = []string{suites.Session("client"), suites.Session("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// Of an abort there would be nothing to see.
			s := story{By: by, Require: f.Require[0], Points: []string{suites.FailPoint("saslContinue", suites.Times(1), suites.Closes)}}
			endsAfter(f, s, "{ w: majority, wtimeout: 10000 }", "saslContinue", "commitTransaction")
		}
	}
	return f
}

func poolCleared() *suites.File {
	const increase = "{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }"
	row := func(name, one, two string, wrote ...string) suites.Pooled {
		o := named(name)
		o.Started, o.Carries = "{ "+o.Command+": "+suites.Collection+" }", "lsid: { $$exists: true }, txnNumber: { $$type: long }"
		o.Result, o.Wrote = "", wrote
		return suites.Pooled{Operation: o, First: one, Second: two}
	}
	return policy.PoolCleared(suites.Servers("4.4", suites.Clusters), suites.RaisedCode(suites.ShutdownInProgress),
		row("insertOne", "{ document: "+fourth+" }", "{ document: "+fifth+" }", first, second, third, fourth, fifth),
		row("updateOne", increase, increase, first, "{ _id: 2, x: 24 }", third),
		row("findOneAndUpdate", increase, increase, first, "{ _id: 2, x: 24 }", third))
}

func selectionFails() *suites.File {
	// The first hello obeys a fail point for an appName since SERVER-49336.
	return policy.ServerSelection("utrWriteSelection", suites.Servers("4.4.7", suites.Clusters),
		named("insertOne"), named("findOneAndUpdate"), named("bulkWrite ordered"))
}

func timeouts(operations []operation) *suites.File {
	f, s := policy.Timeouts(labelling)
	f.About = []string{f.About[0] + " All of", "them have one transaction number."}
	for _, o := range operations {
		f.Tell(o, s.Thrice, s.Off, s.Endless)
	}
	s.Expired.Carries = numbered + ", maxTimeMS: { $$lte: 20000 }"
	s.Outlasts.Before, s.Outlasts.Seen = []string{harmless.Call("client", "", "")}, harmless.Attempts(1, 0, "")
	s.Outlasts.Carries = `txnNumber: { $numberLong: "2" }`
	f.Tell(operations[0], s.Expired, s.Outlasts)
	return f
}
