package writes

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// bulk checks that each command of a bulk is retryable or not by itself.
func bulk() *suites.File {
	f := suites.NewFile("bulk", "bulkWrite of several commands", retrying,
		"Each command of a bulk has a transaction number of its own, if it writes no more than one document a statement,",
		"and is retried with that number. A command that fails for good ends the bulk, ordered or not.")
	f.Clients = policy.Both("")
	bulks(f, "ordered")
	bulks(f, "unordered")
	// Drivers may send the two updates in one command or in two: the first
	// command has an update of many in both cases.
	f.Tell(bulkOf("ordered", "update", updateAll, updateSecond),
		story{Says: "an update of one document in a command with an update of many is not retried (R34)",
			Mode: suites.Always, Fails: suites.Closes, Raises: suites.RaisedNetwork, Then: sent("update", 0, "fails")})
	return f
}

// Models of the bulks.
const (
	insertFourth = "{ insertOne: { document: " + fourth + " } }"
	updateSecond = "{ updateOne: { filter: { _id: 2 }, update: { $inc: { x: 1 } } } }"
	updateAll    = "{ updateMany: { filter: { _id: { $lte: 2 } }, update: { $inc: { x: 1 } } } }"
	deleteThird  = "{ deleteOne: { filter: { _id: 3 } } }"
	deleteThirds = "{ deleteMany: { filter: { _id: 3 } } }"
)

// bulkOf is a bulk of which a command fails.
func bulkOf(order, fails string, models ...string) operation {
	return operation{Heading: "bulkWrite " + order + ":", Object: "collection", Name: "bulkWrite", Command: fails,
		Arguments: fmt.Sprintf("{ requests: [ %s ], ordered: %t }", strings.Join(models, ", "), order == "ordered")}
}

// sent are events of a command with a transaction number, 0 for none, whose
// attempts succeed or fail.
func sent(command string, number int, attempts ...string) (out []string) {
	carries := suites.Unnumbered
	if number > 0 {
		carries = fmt.Sprintf(`txnNumber: { $numberLong: "%d" }`, number)
	}
	o := operation{Command: command, Database: databaseName, Started: "{ " + command + ": " + suites.Collection + ", lsid: { $$exists: true } }"}
	for _, a := range attempts {
		out = append(out, o.Attempts(1, strings.Count(a, "fails"), carries)...)
	}
	return out
}

// bulks are the tests of ordered or of unordered bulks.
func bulks(f *suites.File, order string) {
	const yes, no = "succeeds", "fails"
	commands := []string{"insert", "update", "delete"}
	after := func(documents ...string) []suites.Outcome {
		return []suites.Outcome{{Collection: suites.Collection, Documents: documents}}
	}
	left := [][]suites.Outcome{
		after(first, second, third),         // nothing is written
		after(first, second, third, fourth), // the insert
		after(first, raised, third, fourth), // the update as well
		after(first, raised, fourth),        // all
	}
	allOfMany := after("{ _id: 1, x: 12 }", raised, fourth) // with an update of many
	fails := []struct{ says, data, raises, plain, require string }{
		{"a network error", suites.Closes, raisesNetwork, suites.RaisedNetwork, ""},
		{"HostUnreachable", policy.Fails(suites.HostUnreachable), policy.Raises(suites.HostUnreachable),
			suites.RaisedCode(suites.HostUnreachable), labelling},
		{"HostUnreachable of a server before 4.4", suites.ErrorCode(suites.HostUnreachable), policy.Raises(suites.HostUnreachable),
			suites.RaisedCode(suites.HostUnreachable), before44},
	}
	for at, command := range commands {
		o := bulkOf(order, command, insertFourth, updateSecond, deleteThird)
		var before, unnumbered, rest []string
		for n, c := range commands {
			switch {
			case n < at:
				before, unnumbered = append(before, sent(c, n+1, yes)...), append(unnumbered, sent(c, 0, yes)...)
			case n > at:
				rest = append(rest, sent(c, n+1, yes)...)
			}
		}
		for _, e := range fails {
			f.Tell(o,
				story{Says: "the " + command + " is retried with its own number after " + e.says + " (W10)", Require: e.require, Fails: e.data,
					Seen: before, Then: suites.Join(sent(command, at+1, no, yes), rest), Outcome: left[3]},
				story{Says: "nothing is sent after the retry of the " + command + " failed with " + e.says + " (R35)", Require: e.require,
					Mode: suites.Times(2), Fails: e.data, Raises: e.raises, Seen: before, Then: sent(command, at+1, no, no), Outcome: left[at]})
		}
		f.Tell(o,
			story{Says: "nothing is sent after the retry of the " + command + " failed with a write concern error that has the label (R35)",
				Require: labelling, Mode: suites.Times(2), Fails: suites.LabelledConcern(label), Raises: raisesConcern,
				Seen: before, Then: sent(command, at+1, yes, yes), Outcome: left[at+1]},
			story{Says: "the " + command + " is not retried" + off + " (W30)", By: "noRetry", Fails: suites.Closes, Raises: raisesNetworkPlain,
				Seen: unnumbered, Then: sent(command, 0, no), Outcome: left[at]})
	}
	for _, mode := range []struct {
		says, mode string
		lost       [3]bool
	}{
		{"the first reply is", suites.Times(1), [3]bool{true}},
		{"all replies but the first are", suites.SkipFirst, [3]bool{false, true, true}},
		{"the last reply is", "{ skip: 2 }", [3]bool{false, false, true}},
		{"every reply is", suites.Always, [3]bool{true, true, true}},
	} {
		var events []string
		for n, c := range commands {
			if mode.lost[n] {
				events = append(events, sent(c, n+1, no)...)
			}
			events = append(events, sent(c, n+1, yes)...)
		}
		f.Tell(bulkOf(order, "", insertFourth, updateSecond, deleteThird), story{Says: "everything is written once if " + mode.says + " lost (W10)",
			Require: onlySets, Points: []string{suites.SetFailPoint(suites.TransactionalWrite, mode.mode, "")}, Then: events, Outcome: left[3]})
	}
	many := func(fails string) operation { return bulkOf(order, fails, insertFourth, updateAll, deleteThird) }
	inserted, updated, deleted := sent("insert", 1, yes), sent("update", 0, yes), sent("delete", 2, yes)
	f.Tell(many(""), story{Says: "the update of many carries no transaction number, its neighbours do (R6)",
		Then: suites.Join(inserted, updated, deleted), Outcome: allOfMany})
	f.Tell(bulkOf(order, "", insertFourth, updateSecond, deleteThirds),
		story{Says: "the delete of many carries no transaction number, its neighbours do (R6)",
			Then: suites.Join(inserted, sent("update", 2, yes), sent("delete", 0, yes)), Outcome: left[3]})
	for _, e := range fails {
		f.Tell(many("update"), story{Says: "the update of many is not retried after " + e.says + ", and ends the bulk (R34)", Require: e.require,
			Fails: e.data, Raises: e.plain, Then: suites.Join(inserted, sent("update", 0, no)), Outcome: left[1]})
		f.Tell(many("insert"), story{Says: "the insert beside an update of many is retried after " + e.says + " (W10)", Require: e.require,
			Fails: e.data, Then: suites.Join(sent("insert", 1, no, yes), updated, deleted), Outcome: allOfMany})
	}
}
