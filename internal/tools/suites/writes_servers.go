package main

import (
	"slices"
)

func writeOtherMongos() *file {
	inAll := func(arguments value) []value { return slices.Repeat([]value{arguments}, roundCount) }
	numbers := func(of func(document value) value) (out []value) {
		for n := range roundCount {
			out = append(out, of(doc("_id", 10+n)))
		}
		return out
	}
	one := func(document value) value { return doc("document", document) }
	many := func(document value) value { return doc("documents", list(document)) }
	inserted := left(append(initial(), numbers(func(document value) value { return document })...)...)
	increased := left(first, document(2, 22+roundCount), third)
	return writes.otherMongos(servers("4.4", sharded),
		onMongoses{writeNamed("insertOne"), numbers(one), inserted},
		onMongoses{writeNamed("insertMany ordered"), numbers(many), inserted},
		onMongoses{writeNamed("updateOne"), inAll(increase), increased},
		onMongoses{writeNamed("findOneAndUpdate"), inAll(increase), increased},
		onMongoses{writeNamed("bulkWrite ordered"), inAll(doc("requests", list(doc("updateOne", increase)))), increased},
		onMongoses{writeNamed("deleteOne"), inAll(flow("{ filter: { _id: 3 } }")), left(first, second)})
}

// otherMongosForEnds retries commit and abort on another mongos. A targeted fail point makes the test independent
// of chance.
func otherMongosForEnds() *file {
	f := newFile("sharded-transactions", "the end of a transaction on another mongos", servers("4.4", sharded),
		"The session is unpinned before commit or abort is retried, and the retry goes to another mongos with the recovery",
		"token. The commit took effect, and the other mongos reports so. It does not know the transaction of the abort and",
		"fails the retry; the mongos of the transaction would not.")
	f.Clients = []client{watchedMongoses()}
	f.Sessions = true
	insert := writeNamed("insertOne")
	for _, r := range []struct {
		command    string
		mode, data value
		failing    int // in the events
	}{
		{"commitTransaction", always, concernWithLabels(writable), 0},
		{"abortTransaction", times(1), writes.fails(hostUnreachable), 2},
	} {
		o := ending(r.command, doc("recoveryToken", present, "autocommit", false, "txnNumber", long(1)))
		f.add(o, story{Says: "is retried on another mongos (R40)",
			Before: slices.Concat([]value{mongosesKnown("client")}, begin(insert, "client")),
			Points: []value{targetedFailPoint(r.command, r.mode, r.data)},
			After:  []value{runnerOperation("assertSessionUnpinned", "session", "session")},
			Seen:   insert.attempts(1, 0, begins), Then: o.attempts(2, r.failing, nil)})
	}
	return f
}

func writeHandshakeHello(operations []operation) *file {
	const app = "utrWriteHandshake"
	f, retried, off := writes.handshakeHello(app, servers("4.4.7", withRetries))
	f.Clients = append(f.Clients, observed("warm", doc("appName", app+"warm")))
	for _, o := range operations {
		f.add(o, retried, off)
	}
	// A permanent fail point would affect monitors. Clients do not monitor servers behind a load balancer.
	o := operations[0]
	f.add(o, story{Says: "raises the network error of the attempt if the handshakes of the retries fail (R21)", By: "warm",
		Require: servers("5.0", balanced), Before: []value{ping("warm")},
		Points: []value{failPoint(always, merge(doc("appName", app+"warm"), closes), o.Command, "hello", "isMaster")},
		Raises: withLabels(raisedNetwork, labels{writable}, labels{overloaded}), Seen: pinged(writeDatabase), Attempts: 1})
	if o.Since == "" {
		f.Entities = []value{sessionEntity("client"), sessionEntity("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// A network error in hello is an overload error. After it, the write concern does not change.
			s := story{By: by, Require: servers("4.4.7", clusters), Pool: retried.Pool,
				Points: []value{failHello(app+by, times(1))}}
			endsAfter(f, s, noConcern, "the handshake", "commitTransaction", "abortTransaction")
		}
	}
	return f
}

// endsAfter adds tests of commit and abort on a new connection. Its handshake fails once. The tests are not for load
// balancers, where a transaction is pinned to its connection.
func endsAfter(f *file, s story, concern value, where string, commands ...string) {
	insert := writeNamed("insertOne")
	for _, command := range commands {
		o := ending(command, concern)
		s.Says = ended("is retried after a network error in "+where, s.By)
		s.Before = append(begin(insert, s.By), wait(50))
		s.Seen, s.Attempts = insert.attempts(1, 0, doc("startTransaction", true)), 0
		if command == "commitTransaction" { // the client ignores events of abortTransaction
			s.Attempts = 1
		}
		f.add(o, s)
	}
}

func writeHandshakeAuth(operations []operation) *file {
	f, list, second := writes.handshakeAuth(authenticated("4.2", clusters)...)
	list[1].Require = requirement{Min: "4.4", Auth: true}
	for _, o := range operations {
		f.add(o, list[:2]...)
		if o.Name == "insertOne" || o.Name == "clientBulkWrite" {
			f.add(o, second)
		}
		f.add(o, list[2:]...)
	}
	if operations[0].Since == "" {
		f.Entities = []value{sessionEntity("client"), sessionEntity("noRetry")}
		for _, by := range []string{"client", "noRetry"} {
			// An abort would have no events.
			s := story{By: by, Require: f.Require[0], Points: []value{failPoint(times(1), closes, "saslContinue")}}
			endsAfter(f, s, majority, "saslContinue", "commitTransaction")
		}
	}
	return f
}

// increase contains the arguments of an update whose outcome shows how often it was applied.
var increase = flow("{ filter: { _id: 2 }, update: { $inc: { x: 1 } } }")

func writePoolCleared() *file {
	row := func(name string, one, two value, wrote ...value) pooled {
		o := writeNamed(name)
		o.Started, o.Carries = doc(o.Command, collection), doc("lsid", present, "txnNumber", doc("$$type", "long"))
		o.Result, o.Wrote = nil, wrote
		return pooled{operation: o, First: one, Second: two}
	}
	return writes.poolCleared(servers("4.4", clusters), raisedCode(shutdownInProgress),
		row("insertOne", doc("document", fourth), doc("document", fifth), first, second, third, fourth, fifth),
		row("updateOne", increase, increase, first, document(2, 24), third),
		row("findOneAndUpdate", increase, increase, first, document(2, 24), third))
}

func (p policy) unselected(app string) *file {
	// Since SERVER-49336 a fail point for an appName affects the first hello.
	return p.serverSelection(app, servers("4.4.7", clusters),
		p.operation("insertOne"), p.operation("findOneAndUpdate"), p.operation("bulkWrite ordered"))
}

func writeTimeouts(operations []operation) *file {
	f, s := writes.timeouts(labelling)
	f.About = append(f.About, "All attempts have the same transaction number.")
	for _, o := range operations {
		f.add(o, s.Thrice, s.Off, s.Endless)
	}
	s.Expired.Carries = merge(numbered, flow("{ maxTimeMS: { $$lte: 20000 } }"))
	s.Outlasts.Before, s.Outlasts.Seen = []value{writes.harmless().call("client", nil, nil)}, writes.harmless().attempts(1,
		0, nil)
	s.Outlasts.Carries = doc("txnNumber", long(2))
	f.add(operations[0], s.Expired, s.Outlasts)
	return f
}
