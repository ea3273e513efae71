package main

import (
	"fmt"
	"slices"
	"strings"
)

// harmless returns a retryable write that changes nothing.
func (p Policy) harmless() Operation {
	return Operation{Object: "collection", Name: "updateOne", Command: "update", Database: p.Database,
		Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ update: " + Collection + " }"}
}

func (p Policy) sessions(operations []Operation) *File {
	f := NewFile("sessions", "the session and the transaction number of a retry", retrying,
		"A retry has the lsid and txnNumber of the first attempt. The next write of the session has the next number.")
	f.Clients, f.Sessions = []Client{p.client("client", "")}, true
	carries := func(n int) string {
		return fmt.Sprintf(`lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "%d" }`, n)
	}
	for _, o := range operations {
		f.Tell(o,
			Story{Says: "is retried with the lsid and txnNumber of its explicit session (R5)", Require: special(o), Fails: Closes,
				With: "session: session", After: []string{p.harmless().Call("client", "session: session", "")},
				Attempts: 2, Carries: carries(1), Then: p.harmless().Attempts(1, 0, carries(2))},
			Story{Says: "is retried with the lsid and txnNumber of its implicit session (R5)", Require: special(o), Fails: Closes,
				After: []string{SameLsid}, Attempts: 2},
			Story{Says: "carries a 64-bit transaction number (R5)", Require: special(o),
				Attempts: 1, Carries: "lsid: { $$type: object }, txnNumber: { $$type: long }"})
	}
	return f
}

func writeTransactions(operations []Operation) *File {
	f := NewFile("transactions", "no retries in a transaction", retrying,
		"A write in a transaction is attempted once, and the driver does not add the label "+writable+" to its errors.",
		"After the transaction, writes of its session are retried again, with the next number.")
	f.Sessions = true
	const outside = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "2" }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }`
	for _, o := range operations {
		f.TellInTransaction(o, begins, "W31",
			NotRetried("a network error", Closes, WithLabels(RaisedNetwork, TransientTransactionError, writable)),
			NotRetried("HostUnreachable with the label "+writable, writes.Fails(HostUnreachable), RaisedCode(HostUnreachable)).On(labelling),
			NotRetried("InterruptedAtShutdown", ErrorCode(InterruptedAtShutdown), raisesPlain(InterruptedAtShutdown)).On(labelling),
			NotRetried("HostUnreachable from a server before 4.4", ErrorCode(HostUnreachable), raisesPlain(HostUnreachable)).On(before44))
		f.TellAfterTransaction(o, begins, outside, writes.Network)
	}
	return f
}

// ending returns the operation that ends a transaction of collection.insertOne, with extra fields of its command.
func ending(name, extra string) Operation {
	o := Operation{Object: "session", Name: name, Command: name, Database: "admin", Started: Merge("{ "+name+": 1 }", extra)}
	if name == "commitTransaction" {
		o.Wrote = append(Initial(), fourth)
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

func endings() *File {
	f := NewFile("transactions-end", "commitTransaction and abortTransaction", retrying,
		"Commit and abort are retried once, even if retryWrites is false. The retry of a commit uses w: majority. Errors of",
		"abort are not raised. A test ends every transaction that is still open on the server.")
	f.Clients = []Client{Watched("client", ""), Watched("noRetry", "retryWrites: false")}
	f.Sessions = true
	for _, by := range []string{"client", "noRetry"} {
		endingsBy(f, by)
	}
	return f
}

func endingsBy(f *File, by string) {
	insert, commit, abort := writeNamed("insertOne"), ending("commitTransaction", ""), ending("abortTransaction", "")
	// sent returns the events of a command of the session's nth transaction.
	sent := func(o Operation, n, failing int, concern string) []string {
		return o.Attempts(1, failing, within(by, n, false)+", "+concern)
	}
	inserted := func(n int) []string { return insert.Attempts(1, 0, within(by, n, true)) }
	begin := Begin(insert, by)
	again := []string{OnSession("commitTransaction", by)}
	tell := func(o Operation, story Story) {
		story.By, story.Seen = by, slices.Concat(inserted(1), story.Seen)
		if story.Before == nil {
			story.Before = begin
		}
		f.Tell(o, story)
	}
	option := map[string]string{"noRetry": off}[by]
	for _, o := range []Operation{commit, abort} {
		retry := noConcern
		if o.Name == commit.Name {
			retry = majority
		}
		for _, e := range ends() {
			tell(o, Story{Says: ended("is retried after "+e.says, by), Require: e.require, Fails: e.data,
				Then: slices.Concat(sent(o, 1, 1, noConcern), sent(o, 1, 0, retry))})
			twice := Story{Says: "is not retried again after failing twice with " + e.says + option + " (R35)", Require: e.require,
				Mode: Times(2), Fails: e.data, Then: slices.Concat(sent(o, 1, 1, noConcern), sent(o, 1, 1, retry))}
			if o.Name == commit.Name {
				twice.Raises, twice.Applied = WithLabels(e.raises, UnknownTransactionCommitResult, ""), true
				twice.After, twice.Then = again, slices.Concat(twice.Then, sent(o, 1, 0, retry))
			} else {
				twice.After = slices.Concat(begin, []string{OnSession(o.Name, by)})
				twice.Then = slices.Concat(twice.Then, inserted(2), sent(o, 2, 0, noConcern))
			}
			tell(o, twice)
		}
	}
	tell(commit, Story{Says: ended("is retried after a write concern error with the label "+writable, by), Require: labelling,
		Fails: LabelledConcern(writable), Then: slices.Concat(sent(commit, 1, 0, noConcern), sent(commit, 1, 0, majority))})
	tell(commit, Story{Says: "is not retried after Interrupted" + option + " (R34)", Fails: ErrorCode(Interrupted),
		Raises:  raisesPlain(Interrupted),
		Applied: true, After: []string{abort.Call(by, "", "{ isClientError: true }"), again[0]},
		Then: slices.Concat(sent(commit, 1, 1, noConcern), sent(commit, 1, 0, majority))})
	for _, c := range []struct{ says, set, own, retry string }{
		{"keeps journal and gets a wtimeout", "{ w: 1, journal: true }", "{ w: 1, j: true }", "{ w: majority, j: true, wtimeout: 10000 }"},
		{"keeps its wtimeout", "{ w: 1, wtimeoutMS: 15000 }", "{ w: 1, wtimeout: 15000 }", "{ w: majority, wtimeout: 15000 }"},
	} {
		tell(commit, Story{Says: ended(c.says+" when retried with w: majority", by), Fails: Closes, After: again,
			Before: []string{"{ name: startTransaction, object: session" + Suffix(by) + ", arguments: { writeConcern: " + c.set + " } }", begin[1]},
			Then:   slices.Concat(commit.Attempts(1, 1, "writeConcern: "+c.own), commit.Attempts(2, 0, "writeConcern: "+c.retry))})
	}
}

// end is an error after which commit and abort are retried.
type end struct{ says, data, require, raises string }

func ends() []end {
	rows := []end{{"a network error", Closes, "", RaisedNetwork}}
	for _, c := range []Code{HostUnreachable, PrimarySteppedDown, ShutdownInProgress} {
		rows = append(rows,
			end{c.Name + " with the label " + writable, writes.Fails(c), labelling, RaisedCode(c)},
			end{c.Name + " from a server before 4.4", ErrorCode(c), before44, RaisedCode(c)})
	}
	return rows
}

func (p Policy) bulk() *File {
	f := NewFile("bulk", "bulkWrite of several commands", retrying,
		"Each command of a bulk write whose statements write at most one document each has its own transaction number and is",
		"retried with that number. If the retry fails too, the bulk write ends, ordered or not.")
	f.Clients = p.Both("")
	p.bulks(f, "ordered")
	p.bulks(f, "unordered")
	// Drivers may send the two updates in one command or in two. Either way the first command has the updateMany.
	f.Tell(bulkOf("ordered", "update", updateAll, updateSecond),
		Story{Says: "an updateOne that shares a command with an updateMany is not retried (R34)",
			Mode: Always, Fails: Closes, Raises: RaisedNetwork, Then: p.sent("update", 0, "fails")})
	return f
}

// Write models.
const (
	insertFourth = "{ insertOne: { document: " + fourth + " } }"
	updateSecond = "{ updateOne: { filter: { _id: 2 }, update: { $inc: { x: 1 } } } }"
	updateAll    = "{ updateMany: { filter: { _id: { $lte: 2 } }, update: { $inc: { x: 1 } } } }"
	deleteThird  = "{ deleteOne: { filter: { _id: 3 } } }"
	deleteThirds = "{ deleteMany: { filter: { _id: 3 } } }"
)

func bulkOf(order, fails string, models ...string) Operation {
	return Operation{Heading: "bulkWrite " + order + ":", Object: "collection", Name: "bulkWrite", Command: fails,
		Arguments: fmt.Sprintf("{ requests: [ %s ], ordered: %t }", strings.Join(models, ", "), order == "ordered")}
}

// sent returns the events of a command with a transaction number, 0 for none. Attempts are "succeeds" or "fails".
func (p Policy) sent(command string, number int, attempts ...string) (out []string) {
	carries := Unnumbered
	if number > 0 {
		carries = fmt.Sprintf(`txnNumber: { $numberLong: "%d" }`, number)
	}
	o := Operation{Command: command, Database: p.Database, Started: "{ " + command + ": " + Collection + ", lsid: { $$exists: true } }"}
	for _, a := range attempts {
		out = append(out, o.Attempts(1, strings.Count(a, "fails"), carries)...)
	}
	return out
}

func (p Policy) bulks(f *File, order string) {
	const yes, no = "succeeds", "fails"
	commands := []string{"insert", "update", "delete"}
	left := [][]Outcome{
		After(first, second, third),         // nothing is written
		After(first, second, third, fourth), // the insert
		After(first, raised, third, fourth), // the update as well
		After(first, raised, fourth),        // all
	}
	allOfMany := After("{ _id: 1, x: 12 }", raised, fourth) // with an update of many
	name, concern, today := "HostUnreachable", "a write concern error that has the label", ""
	if p.Label == "" {
		name, today = p.labelled(HostUnreachable), "the label makes an error retryable"
		concern = "the write concern error ShutdownInProgress without a label"
	}
	fails := []struct{ says, data, raises, plain, require, rule, today string }{
		{"a network error", Closes, WithLabels(RaisedNetwork, p.Label, ""), RaisedNetwork, "", p.Network, ""},
		{name, p.Fails(HostUnreachable), p.Raises(HostUnreachable),
			RaisedCode(HostUnreachable), labelling, p.Codes, today},
		{"HostUnreachable from a server before 4.4", ErrorCode(HostUnreachable), p.Raises(HostUnreachable),
			RaisedCode(HostUnreachable), before44, p.Codes, ""},
	}
	for at, command := range commands {
		o := bulkOf(order, command, insertFourth, updateSecond, deleteThird)
		var before, unnumbered, rest []string
		for n, c := range commands {
			switch {
			case n < at:
				before, unnumbered = append(before, p.sent(c, n+1, yes)...), append(unnumbered, p.sent(c, 0, yes)...)
			case n > at:
				rest = append(rest, p.sent(c, n+1, yes)...)
			}
		}
		for _, e := range fails {
			f.Tell(o,
				Story{Says: "the " + command + " is retried with its own transaction number after " + e.says + " (" + e.rule + ")", Require: e.require, Fails: e.data,
					Seen: before, Then: slices.Concat(p.sent(command, at+1, no, yes), rest), Outcome: left[3], Today: e.today},
				Story{Says: "nothing is sent after the retry of the " + command + " fails with " + e.says + " (" + p.Once + ")", Require: e.require,
					Mode: Times(2), Fails: e.data, Raises: e.raises, Seen: before, Then: p.sent(command, at+1, no, no), Outcome: left[at], Today: e.today})
		}
		f.Tell(o,
			Story{Says: "nothing is sent after the retry of the " + command + " fails with " + concern + " (" + p.Once + ")",
				Require: labelling, Mode: Times(2), Fails: LabelledConcern(p.Label), Raises: WithLabels("{ isClientError: false }", p.Label, ""),
				Seen: before, Then: p.sent(command, at+1, yes, yes), Outcome: left[at+1], Today: today},
			Story{Says: "the " + command + " is not retried" + off + " (W30)", By: "noRetry", Fails: Closes, Raises: raisesNetworkPlain,
				Seen: unnumbered, Then: p.sent(command, 0, no), Outcome: left[at]})
	}
	for _, mode := range []struct {
		says, mode string
		lost       [3]bool
	}{
		{"the first reply is", Times(1), [3]bool{true}},
		{"all replies but the first are", SkipFirst, [3]bool{false, true, true}},
		{"the last reply is", "{ skip: 2 }", [3]bool{false, false, true}},
		{"every reply is", Always, [3]bool{true, true, true}},
	} {
		var events []string
		for n, c := range commands {
			if mode.lost[n] {
				events = append(events, p.sent(c, n+1, no)...)
			}
			events = append(events, p.sent(c, n+1, yes)...)
		}
		f.Tell(bulkOf(order, "", insertFourth, updateSecond, deleteThird), Story{Says: "everything is written once if " + mode.says + " lost (" + p.Network + ")",
			Require: onlySets, Points: []string{SetFailPoint(TransactionalWrite, mode.mode, "")}, Then: events, Outcome: left[3]})
	}
	// A command beside that of the updateMany or the deleteMany.
	number, neighbors, then := func(n int) int { return n }, "but its neighbors do", ""
	if p.Whole {
		number, neighbors, then = func(int) int { return 0 }, "nor do its neighbors", "commands count one by one"
	}
	many := func(fails string) Operation { return bulkOf(order, fails, insertFourth, updateAll, deleteThird) }
	inserted, updated, deleted := p.sent("insert", number(1), yes), p.sent("update", 0, yes), p.sent("delete", number(2), yes)
	f.Tell(many(""), Story{Says: "the updateMany carries no transaction number, " + neighbors + " (R6)",
		Then: slices.Concat(inserted, updated, deleted), Outcome: allOfMany, Today: then})
	f.Tell(bulkOf(order, "", insertFourth, updateSecond, deleteThirds),
		Story{Says: "the deleteMany carries no transaction number, " + neighbors + " (R6)",
			Then: slices.Concat(inserted, p.sent("update", number(2), yes), p.sent("delete", 0, yes)), Outcome: left[3], Today: then})
	for _, e := range fails {
		f.Tell(many("update"), Story{Says: "the updateMany is not retried after " + e.says + " and ends the bulk write (R34)", Require: e.require,
			Fails: e.data, Raises: e.plain, Then: slices.Concat(inserted, p.sent("update", 0, no)), Outcome: left[1], Today: then})
		beside := Story{Says: "the insert next to an updateMany is retried after " + e.says + " (" + e.rule + ")", Require: e.require,
			Fails: e.data, Then: slices.Concat(p.sent("insert", 1, no, yes), updated, deleted), Outcome: allOfMany}
		if p.Whole {
			beside.Says, beside.Raises, beside.Today = "the insert next to an updateMany is not retried after "+e.says+" (R34)", e.plain, then
			beside.Then, beside.Outcome = p.sent("insert", 0, no), left[0]
		}
		f.Tell(many("insert"), beside)
	}
}
