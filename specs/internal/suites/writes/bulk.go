package writes

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// bulk checks that each command of a bulk is retryable or not by itself.
func bulk() *suites.File {
	f := &suites.File{
		Name:        "bulk",
		Description: "retryable writes: bulkWrite of several commands",
		About: []string{"Each command of a bulk has a transaction number of its own, if it writes no more than one document a statement,",
			"and is retried with that number. A command that fails for good ends the bulk, ordered or not."},
		Require:  []string{requirement(suites.Operation{})},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient(), noRetryClient()},
		Entities: append(objects("client", "collection"), objects("noRetry", "collection")...),
	}
	insert := "{ insertOne: { document: " + fourth + " } }"
	one := "{ updateOne: { filter: { _id: 2 }, update: { $inc: { x: 1 } } } }"
	all := "{ updateMany: { filter: { _id: { $lte: 2 } }, update: { $inc: { x: 1 } } } }"
	remove := "{ deleteOne: { filter: { _id: 3 } } }"
	removeAll := "{ deleteMany: { filter: { _id: 3 } } }"
	call := func(by, ordered, raises string, models ...string) string {
		o := suites.Operation{Object: "collection", Name: "bulkWrite",
			Arguments: fmt.Sprintf("{ requests: [ %s ], ordered: %s }", strings.Join(models, ", "), ordered)}
		return o.Call(by, "", raises)
	}
	number := func(n int) string {
		if n == 0 {
			return unmarked
		}
		return fmt.Sprintf(`txnNumber: { $numberLong: "%d" }`, n)
	}
	sent := func(command string, n int, events ...string) []string {
		started := suites.StartedEvent(fmt.Sprintf("{ %s: %s, lsid: { $$exists: true }, %s }", command, suites.Collection, number(n)), command, databaseName)
		var out []string
		for _, e := range events {
			if e == "fails" {
				out = append(out, started, suites.FailedEvent(command))
			} else {
				out = append(out, started, suites.SucceededEvent(command))
			}
		}
		return out
	}
	join := func(lists ...[]string) (out []string) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	outcome := func(documents ...string) []suites.Outcome {
		return []suites.Outcome{{Collection: suites.Collection, Documents: documents}}
	}
	const yes, no = "succeeds", "fails"
	fails := []struct{ says, data, raises, require string }{
		{"a network error", suites.Closes, raisesNetwork, ""},
		{"HostUnreachable", suites.Labelled(coded("HostUnreachable"), label), raisesLabelled(coded("HostUnreachable")), since44(suites.Operation{}, every)},
		{"HostUnreachable of a server before 4.4", suites.ErrorCode(coded("HostUnreachable")), raisesLabelled(coded("HostUnreachable")), before44},
	}
	for _, ordered := range []string{"true", "false"} {
		title := map[string]string{"true": "ordered", "false": "unordered"}[ordered]
		after := [][]string{
			{first, second, third},                // nothing
			{first, second, third, fourth},        // the insert
			{first, raised, third, fourth},        // the update as well
			{first, raised, fourth},               // all
			{"{ _id: 1, x: 12 }", raised, fourth}, // all, with an update of many
		}
		for at, command := range []string{"insert", "update", "delete"} {
			for _, e := range fails {
				var once, twice []string
				for n, c := range []string{"insert", "update", "delete"} {
					switch {
					case n == at:
						once, twice = append(once, sent(c, n+1, no, yes)...), append(twice, sent(c, n+1, no, no)...)
					case n < at:
						once, twice = append(once, sent(c, n+1, yes)...), append(twice, sent(c, n+1, yes)...)
					default:
						once = append(once, sent(c, n+1, yes)...)
					}
				}
				f.Add(suites.Test{
					Description: fmt.Sprintf("bulkWrite %s: the %s is retried with its own number after %s (W10)", title, command, e.says),
					Require:     require(e.require),
					Operations:  []string{suites.FailPoint(command, suites.Times(1), e.data), call("client", ordered, "", insert, one, remove)},
					Events:      []suites.Expected{{Client: "client", Events: once}},
					Outcome:     outcome(after[3]...),
				})
				f.Add(suites.Test{
					Description: fmt.Sprintf("bulkWrite %s: nothing is sent after the retry of the %s failed with %s (R35)", title, command, e.says),
					Require:     require(e.require),
					Operations:  []string{suites.FailPoint(command, suites.Times(2), e.data), call("client", ordered, e.raises, insert, one, remove)},
					Events:      []suites.Expected{{Client: "client", Events: twice}},
					Outcome:     outcome(after[at]...),
				})
			}
			var written []string
			for n, c := range []string{"insert", "update", "delete"}[:at+1] {
				written = append(written, sent(c, n+1, yes)...)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("bulkWrite %s: nothing is sent after the retry of the %s failed with a write concern error that has the label (R35)", title, command),
				Require:     []string{since44(suites.Operation{}, every)},
				Operations: []string{suites.FailPoint(command, suites.Times(2), concern(91, "ShutdownInProgress", label)),
					call("client", ordered, raisesConcern, insert, one, remove)},
				Events:  []suites.Expected{{Client: "client", Events: append(written, sent(command, at+1, yes)...)}},
				Outcome: outcome(after[at+1]...),
			})
			f.Add(suites.Test{
				Description: fmt.Sprintf("bulkWrite %s: the %s is not retried with retryWrites false (W30)", title, command),
				Operations:  []string{suites.FailPoint(command, suites.Times(1), suites.Closes), call("noRetry", ordered, raisesNetworkPlain, insert, one, remove)},
				Events: []suites.Expected{{Client: "noRetry", Events: join(
					[][]string{{}, sent("insert", 0, yes), join(sent("insert", 0, yes), sent("update", 0, yes))}[at], sent(command, 0, no))}},
				Outcome: outcome(after[at]...),
			})
		}
		for _, mode := range []struct {
			says, mode string
			lost       [3]bool
		}{
			{"the first reply is", suites.Times(1), [3]bool{true}},
			{"all replies but the first are", "{ skip: 1 }", [3]bool{false, true, true}},
			{"the last reply is", "{ skip: 2 }", [3]bool{false, false, true}},
			{"every reply is", suites.Always, [3]bool{true, true, true}},
		} {
			var events []string
			for n, c := range []string{"insert", "update", "delete"} {
				if mode.lost[n] {
					events = append(events, sent(c, n+1, no)...)
				}
				events = append(events, sent(c, n+1, yes)...)
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("bulkWrite %s: everything is written once if %s lost (W10)", title, mode.says),
				Require:     []string{onlySets(suites.Operation{})},
				Operations:  []string{suites.SetFailPoint(transactionalWrite, mode.mode, ""), call("client", ordered, "", insert, one, remove)},
				Events:      []suites.Expected{{Client: "client", Events: events}},
				Outcome:     outcome(after[3]...),
			})
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("bulkWrite %s: the update of many carries no transaction number, its neighbours do (R6)", title),
			Operations:  []string{call("client", ordered, "", insert, all, remove)},
			Events:      []suites.Expected{{Client: "client", Events: join(sent("insert", 1, yes), sent("update", 0, yes), sent("delete", 2, yes))}},
			Outcome:     outcome(after[4]...),
		})
		f.Add(suites.Test{
			Description: fmt.Sprintf("bulkWrite %s: the delete of many carries no transaction number, its neighbours do (R6)", title),
			Operations:  []string{call("client", ordered, "", insert, one, removeAll)},
			Events:      []suites.Expected{{Client: "client", Events: join(sent("insert", 1, yes), sent("update", 2, yes), sent("delete", 0, yes))}},
			Outcome:     outcome(after[3]...),
		})
		for _, e := range []struct{ says, data, raises, require string }{
			{"a network error", suites.Closes, suites.RaisedNetwork, ""},
			{"HostUnreachable", suites.Labelled(coded("HostUnreachable"), label), suites.RaisedCode(coded("HostUnreachable")), since44(suites.Operation{}, every)},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(coded("HostUnreachable")), suites.RaisedCode(coded("HostUnreachable")), before44},
		} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("bulkWrite %s: the update of many is not retried after %s, and ends the bulk (R34)", title, e.says),
				Require:     require(e.require),
				Operations:  []string{suites.FailPoint("update", suites.Times(1), e.data), call("client", ordered, e.raises, insert, all, remove)},
				Events:      []suites.Expected{{Client: "client", Events: join(sent("insert", 1, yes), sent("update", 0, no))}},
				Outcome:     outcome(after[1]...),
			})
			f.Add(suites.Test{
				Description: fmt.Sprintf("bulkWrite %s: the insert beside an update of many is retried after %s (W10)", title, e.says),
				Require:     require(e.require),
				Operations:  []string{suites.FailPoint("insert", suites.Times(1), e.data), call("client", ordered, "", insert, all, remove)},
				Events:      []suites.Expected{{Client: "client", Events: join(sent("insert", 1, no, yes), sent("update", 0, yes), sent("delete", 2, yes))}},
				Outcome:     outcome(after[4]...),
			})
		}
	}
	// Drivers may send the two updates in one command or in two: the first
	// command has an update of many in both cases.
	f.Add(suites.Test{
		Description: "bulkWrite ordered: an update of one document in a command with an update of many is not retried (R34)",
		Operations:  []string{suites.FailPoint("update", suites.Always, suites.Closes), call("client", "true", suites.RaisedNetwork, all, one)},
		Events:      []suites.Expected{{Client: "client", Events: sent("update", 0, no)}},
		Outcome:     outcome(suites.Initial()...),
	})
	return f
}
