package main

import (
	"slices"
	"strings"
)

// harmless returns a retryable write that changes nothing.
func (p policy) harmless() operation {
	return operation{Object: "collection", Name: "updateOne", Command: "update", Database: p.Database,
		Arguments: flow("{ filter: { _id: 9 }, update: { $set: { x: 1 } } }"), Started: doc("update", collection)}
}

func (p policy) sessions(operations []operation) *file {
	f := newFile("sessions", "the session and the transaction number of a retry", retrying,
		"A retry has the lsid and txnNumber of the first attempt. The next write of the session has the next number.")
	f.Clients, f.Sessions = []client{p.client("client", nil)}, true
	carries := func(n int) value { return doc("lsid", lsid("client"), "txnNumber", long(n)) }
	for _, o := range operations {
		f.add(o,
			story{Says: "is retried with the lsid and txnNumber of its explicit session (R5)", Require: special(o),
				Fails: closes,
				With:  inSession("client"), After: []value{p.harmless().call("client", inSession("client"), nil)},
				Attempts: 2, Carries: carries(1), Then: p.harmless().attempts(1, 0, carries(2))},
			story{Says: "is retried with the lsid and txnNumber of its implicit session (R5)", Require: special(o),
				Fails: closes,
				After: []value{sameLsid}, Attempts: 2},
			story{Says: "carries a 64-bit transaction number (R5)", Require: special(o),
				Attempts: 1, Carries: flow("{ lsid: { $$type: object }, txnNumber: { $$type: long } }")})
	}
	return f
}

func writeTransactions(operations []operation) *file {
	f := newFile("transactions", "no retries in a transaction", retrying,
		"A write in a transaction is attempted once, and the driver does not add the label "+writable+" to its errors.",
		"After the transaction, writes of its session are retried again, with the next number.")
	f.Sessions = true
	outside := doc("lsid", lsid("client"), "txnNumber", long(2), "startTransaction", absent, "autocommit", absent)
	for _, o := range operations {
		f.addInTransaction(o, begins, "W31",
			notRetried("a network error", closes, withLabels(raisedNetwork, labels{transientTransaction}, labels{writable})),
			notRetried("HostUnreachable with the label "+writable, writes.fails(hostUnreachable),
				raisedCode(hostUnreachable)).requiring(labelling),
			notRetried("InterruptedAtShutdown", errorCode(interruptedAtShutdown),
				raisesPlain(interruptedAtShutdown)).requiring(labelling),
			notRetried("HostUnreachable from a server before 4.4", errorCode(hostUnreachable),
				raisesPlain(hostUnreachable)).requiring(before44))
		f.addAfterTransaction(o, begins, outside, writes.Network)
	}
	return f
}

// ending returns the operation that ends a transaction of collection.insertOne, with extra fields of its command.
func ending(name string, extra value) operation {
	o := operation{Object: "session", Name: name, Command: name, Database: "admin", Started: merge(doc(name, 1), extra)}
	if name == "commitTransaction" {
		o.Wrote = append(initial(), fourth)
	}
	return o
}

// ended adds the option of the client and the rule to a description.
func ended(says, by string) string {
	if by == "noRetry" {
		return says + " even" + off + " (W30)"
	}
	return says + " (W31)"
}

func endings() *file {
	f := newFile("transactions-end", "commitTransaction and abortTransaction", retrying,
		"Commit and abort are retried once, even if retryWrites is false. The retry of a commit uses w: majority. Errors of",
		"abort are not raised. A test ends every transaction that is still open on the server.")
	f.Clients = []client{watched("client", nil), watched("noRetry", doc("retryWrites", false))}
	f.Sessions = true
	for _, by := range []string{"client", "noRetry"} {
		endingsBy(f, by)
	}
	return f
}

func endingsBy(f *file, by string) {
	insert, commit, abort := writeNamed("insertOne"), ending("commitTransaction", nil), ending("abortTransaction", nil)
	// sent returns the events of a command of the session's nth transaction.
	sent := func(o operation, n, failing int, concern value) []value {
		return o.attempts(1, failing, merge(within(by, n, false), concern))
	}
	inserted := func(n int) []value { return insert.attempts(1, 0, within(by, n, true)) }
	begin := begin(insert, by)
	again := []value{onSession("commitTransaction", by)}
	tell := func(o operation, story story) {
		story.By, story.Seen = by, slices.Concat(inserted(1), story.Seen)
		if story.Before == nil {
			story.Before = begin
		}
		f.add(o, story)
	}
	option := ""
	if by == "noRetry" {
		option = off
	}
	for _, o := range []operation{commit, abort} {
		retry := noConcern
		if o.Name == commit.Name {
			retry = majority
		}
		for _, e := range ends() {
			tell(o, story{Says: ended("is retried after "+e.says, by), Require: e.require, Fails: e.data,
				Then: slices.Concat(sent(o, 1, 1, noConcern), sent(o, 1, 0, retry))})
			twice := story{Says: "is not retried again after failing twice with " + e.says + option + " (R35)",
				Require: e.require,
				Mode:    times(2), Fails: e.data, Then: slices.Concat(sent(o, 1, 1, noConcern), sent(o, 1, 1, retry))}
			if o.Name == commit.Name {
				twice.Raises, twice.Applied = withLabels(e.raises, labels{unknownCommitResult}, nil), true
				twice.After, twice.Then = again, slices.Concat(twice.Then, sent(o, 1, 0, retry))
			} else {
				twice.After = slices.Concat(begin, []value{onSession(o.Name, by)})
				twice.Then = slices.Concat(twice.Then, inserted(2), sent(o, 2, 0, noConcern))
			}
			tell(o, twice)
		}
	}
	tell(commit, story{Says: ended("is retried after a write concern error with the label "+writable, by),
		Require: labelling,
		Fails:   concernWithLabels(writable), Then: slices.Concat(sent(commit, 1, 0, noConcern),
			sent(commit, 1, 0, majority))})
	tell(commit, story{Says: "is not retried after Interrupted" + option + " (R34)", Fails: errorCode(interrupted),
		Raises:  raisesPlain(interrupted),
		Applied: true, After: []value{abort.call(by, nil, raisedNetwork), again[0]},
		Then: slices.Concat(sent(commit, 1, 1, noConcern), sent(commit, 1, 0, majority))})
	for _, c := range []struct {
		says            string
		set, own, retry value
	}{
		{"keeps journal and gets a wtimeout", flow("{ w: 1, journal: true }"), flow("{ w: 1, j: true }"),
			flow("{ w: majority, j: true, wtimeout: 10000 }")},
		{"keeps its wtimeout", flow("{ w: 1, wtimeoutMS: 15000 }"), flow("{ w: 1, wtimeout: 15000 }"),
			flow("{ w: majority, wtimeout: 15000 }")},
	} {
		tell(commit, story{Says: ended(c.says+" when retried with w: majority", by), Fails: closes, After: again,
			Before: []value{merge(onSession("startTransaction", by), doc("arguments", doc("writeConcern", c.set))), begin[1]},
			Then: slices.Concat(commit.attempts(1, 1, doc("writeConcern", c.own)),
				commit.attempts(2, 0, doc("writeConcern", c.retry)))})
	}
}

// end is an error after which commit and abort are retried.
type end struct {
	says    string
	data    value
	require requirement
	raises  value
}

func ends() []end {
	rows := []end{{"a network error", closes, requirement{}, raisedNetwork}}
	for _, c := range []code{hostUnreachable, primarySteppedDown, shutdownInProgress} {
		rows = append(rows,
			end{c.Name + " with the label " + writable, writes.fails(c), labelling, raisedCode(c)},
			end{c.Name + " from a server before 4.4", errorCode(c), before44, raisedCode(c)})
	}
	return rows
}

func (p policy) bulk() *file {
	f := newFile("bulk", "bulkWrite of several commands", retrying,
		"Each command of a bulk write whose statements write at most one document each has its own transaction number and is",
		"retried with that number. If the retry fails too, the bulk write ends, ordered or not.")
	f.Clients = p.clients()
	p.bulks(f, "ordered")
	p.bulks(f, "unordered")
	// Drivers may send the two updates in one command or in two. Either way the first command has the updateMany.
	f.add(bulkOf("ordered", "update", updateAll, updateSecond),
		story{Says: "an updateOne that shares a command with an updateMany is not retried (R34)",
			Mode: always, Fails: closes, Raises: raisedNetwork, Then: p.sent("update", 0, "fails")})
	return f
}

// Write models.
var (
	insertFourth = doc("insertOne", doc("document", fourth))
	updateSecond = doc("updateOne", increase)
	updateAll    = flow("{ updateMany: { filter: { _id: { $lte: 2 } }, update: { $inc: { x: 1 } } } }")
	deleteThird  = flow("{ deleteOne: { filter: { _id: 3 } } }")
	deleteThirds = flow("{ deleteMany: { filter: { _id: 3 } } }")
)

func bulkOf(order, fails string, models ...value) operation {
	return operation{Heading: "bulkWrite " + order + ":", Object: "collection", Name: "bulkWrite", Command: fails,
		Arguments: doc("requests", list(models...), "ordered", order == "ordered")}
}

// sent returns the events of a command with a transaction number, 0 for none. Attempts are "succeeds" or "fails".
func (p policy) sent(command string, number int, attempts ...string) (out []value) {
	carries := unnumbered
	if number > 0 {
		carries = doc("txnNumber", long(number))
	}
	o := operation{Command: command, Database: p.Database, Started: doc(command, collection, "lsid", present)}
	for _, a := range attempts {
		out = append(out, o.attempts(1, strings.Count(a, "fails"), carries)...)
	}
	return out
}

func (p policy) bulks(f *file, order string) {
	const yes, no = "succeeds", "fails"
	commands := []string{"insert", "update", "delete"}
	after := [][]outcome{
		left(first, second, third),         // nothing is written
		left(first, second, third, fourth), // the insert
		left(first, raised, third, fourth), // the update as well
		left(first, raised, fourth),        // all
	}
	allOfMany := left(document(1, 12), raised, fourth) // with an update of many
	name, concern, today := "HostUnreachable", "a write concern error that has the label", ""
	if p.Label == "" {
		name, today = p.labelled(hostUnreachable), "the label makes an error retryable"
		concern = "the write concern error ShutdownInProgress without a label"
	}
	fails := []struct {
		says                string
		data, raises, plain value
		require             requirement
		rule, today         string
	}{
		{"a network error", closes, withLabels(raisedNetwork, p.labels(), nil), raisedNetwork, requirement{}, p.Network, ""},
		{name, p.fails(hostUnreachable), p.raises(hostUnreachable),
			raisedCode(hostUnreachable), labelling, p.Codes, today},
		{"HostUnreachable from a server before 4.4", errorCode(hostUnreachable), p.raises(hostUnreachable),
			raisedCode(hostUnreachable), before44, p.Codes, ""},
	}
	for at, command := range commands {
		o := bulkOf(order, command, insertFourth, updateSecond, deleteThird)
		var before, unnumbered, rest []value
		for n, c := range commands {
			switch {
			case n < at:
				before, unnumbered = append(before, p.sent(c, n+1, yes)...), append(unnumbered, p.sent(c, 0, yes)...)
			case n > at:
				rest = append(rest, p.sent(c, n+1, yes)...)
			}
		}
		for _, e := range fails {
			f.add(o,
				story{Says: "the " + command + " is retried with its own transaction number after " + e.says + " (" + e.rule + ")",
					Require: e.require, Fails: e.data,
					Seen: before, Then: slices.Concat(p.sent(command, at+1, no, yes), rest), Outcome: after[3], Today: e.today},
				story{Says: "nothing is sent after the retry of the " + command + " fails with " + e.says + " (" + p.Once + ")",
					Require: e.require,
					Mode:    times(2), Fails: e.data, Raises: e.raises, Seen: before, Then: p.sent(command, at+1, no, no),
					Outcome: after[at], Today: e.today})
		}
		f.add(o,
			story{Says: "nothing is sent after the retry of the " + command + " fails with " + concern + " (" + p.Once + ")",
				Require: labelling, Mode: times(2), Fails: concernWithLabels(p.labels()...), Raises: withLabels(serverError,
					p.labels(), nil),
				Seen: before, Then: p.sent(command, at+1, yes, yes), Outcome: after[at+1], Today: today},
			story{Says: "the " + command + " is not retried" + off + " (W30)", By: "noRetry", Fails: closes,
				Raises: raisesNetworkPlain,
				Seen:   unnumbered, Then: p.sent(command, 0, no), Outcome: after[at]})
	}
	for _, mode := range []struct {
		says string
		mode value
		lost [3]bool
	}{
		{"the first reply is", times(1), [3]bool{true}},
		{"all replies but the first are", skip(1), [3]bool{false, true, true}},
		{"the last reply is", skip(2), [3]bool{false, false, true}},
		{"every reply is", always, [3]bool{true, true, true}},
	} {
		var events []value
		for n, c := range commands {
			if mode.lost[n] {
				events = append(events, p.sent(c, n+1, no)...)
			}
			events = append(events, p.sent(c, n+1, yes)...)
		}
		f.add(bulkOf(order, "", insertFourth, updateSecond, deleteThird),
			story{Says: "everything is written once if " + mode.says + " lost (" + p.Network + ")",
				Require: onlySets, Points: []value{setFailPoint(transactionalWrite, mode.mode,
					nil)}, Then: events, Outcome: after[3]})
	}
	// A command beside the command of the updateMany or the deleteMany.
	number, neighbors, then := func(n int) int { return n }, "but its neighbors do", ""
	if p.Whole {
		number, neighbors, then = func(int) int { return 0 }, "nor do its neighbors", "commands count one by one"
	}
	many := func(fails string) operation { return bulkOf(order, fails, insertFourth, updateAll, deleteThird) }
	inserted, updated, deleted := p.sent("insert", number(1), yes), p.sent("update", 0, yes), p.sent("delete",
		number(2), yes)
	f.add(many(""), story{Says: "the updateMany carries no transaction number, " + neighbors + " (R6)",
		Then: slices.Concat(inserted, updated, deleted), Outcome: allOfMany, Today: then})
	f.add(bulkOf(order, "", insertFourth, updateSecond, deleteThirds),
		story{Says: "the deleteMany carries no transaction number, " + neighbors + " (R6)",
			Then: slices.Concat(inserted, p.sent("update", number(2), yes),
				p.sent("delete", 0, yes)), Outcome: after[3], Today: then})
	for _, e := range fails {
		f.add(many("update"), story{Says: "the updateMany is not retried after " + e.says + " and ends the bulk write (R34)",
			Require: e.require,
			Fails:   e.data, Raises: e.plain, Then: slices.Concat(inserted,
				p.sent("update", 0, no)), Outcome: after[1], Today: then})
		beside := story{Says: "the insert next to an updateMany is retried after " + e.says + " (" + e.rule + ")",
			Require: e.require,
			Fails:   e.data, Then: slices.Concat(p.sent("insert", 1, no, yes), updated, deleted), Outcome: allOfMany}
		if p.Whole {
			beside.Says, beside.Raises, beside.Today = "the insert next to an updateMany is not retried after "+e.says+
				" (R34)", e.plain, then
			beside.Then, beside.Outcome = p.sent("insert", 0, no), after[0]
		}
		f.add(many("insert"), beside)
	}
}
