package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

func onSession(name, raises string) string {
	if raises != "" {
		raises = ", expectError: " + raises
	}
	return "{ name: " + name + ", object: session" + raises + " }"
}

// inside is what the first command of the session's first transaction carries.
const inside = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "1" }, startTransaction: true, autocommit: false`

// transactions checks that no write in a transaction is retried, and that the
// session is as before afterwards.
func transactions(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "transactions",
		Description: "retryable writes: no retries in a transaction",
		About: []string{"A write in a transaction is attempted once, and the driver gives its errors no label " + label + ". After the",
			"transaction its session retries again, with the next number."},
		Require:  []string{requirement(suites.Operation{})},
		Clients:  []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities: append(objects("client", "collection"), suites.Session("client")),
	}
	for _, o := range operations {
		for _, e := range []struct{ says, data, raises, require string }{
			{"a network error", suites.Closes, "{ isClientError: true, errorLabelsContain: [ TransientTransactionError ], errorLabelsOmit: [ " + label + " ] }", ""},
			{"HostUnreachable with the label " + label, suites.Labelled(coded("HostUnreachable"), label), suites.RaisedCode(coded("HostUnreachable")), since44(o, every)},
			{"InterruptedAtShutdown", suites.ErrorCode(coded("InterruptedAtShutdown")), raisesPlain(coded("InterruptedAtShutdown")), since44(o, every)},
			{"HostUnreachable of a server before 4.4", suites.ErrorCode(coded("HostUnreachable")), raisesPlain(coded("HostUnreachable")), before44},
		} {
			if e.require == before44 && o.Since != "" {
				continue
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is not retried in a transaction after %s (W31)", o.Title(), e.says),
				Require:     require(e.require),
				Operations: []string{onSession("startTransaction", ""), suites.FailPoint(o.Command, suites.Times(1), e.data),
					o.Call("client", "session: session", e.raises), onSession("abortTransaction", "")},
				Events:  []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, inside)}},
				Outcome: o.Outcome(false),
			})
		}
		outside := `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "2" }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }`
		f.Add(suites.Test{
			Description: o.Title() + " is retried after the transaction of its session (W10)",
			Operations: []string{onSession("startTransaction", ""), o.Call("client", "session: session", ""), onSession("abortTransaction", ""),
				suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "session: session", "")},
			Events:  []suites.Expected{{Client: "client", Events: append(o.Attempts(1, 0, inside), o.Attempts(2, 1, outside)...)}},
			Outcome: o.Outcome(true),
		})
	}
	return f
}

// endings are commit and abort, which are retried whatever retryWrites says.
func endings() *suites.File {
	ignore := []string{"killCursors"}
	watched := func(id, options string) suites.Client {
		c := suites.Observed(id, options)
		c.Ignore = ignore
		return c
	}
	f := &suites.File{
		Name:        "transactions-end",
		Description: "retryable writes: commitTransaction and abortTransaction",
		About: []string{"Commit and abort are retried once, with retryWrites false as well. The retry of a commit asks for w: majority. The",
			"errors of abort are not raised. A transaction that is still open in the server is ended before the test is."},
		Require: []string{requirement(suites.Operation{})},
		Clients: []suites.Client{suites.SetupClient(), watched("client", ""), watched("noRetry", "{ retryWrites: false }")},
	}
	insert := named("collection", "insertOne", "")
	events := func(by, command string, n int, attempts ...string) []string {
		started := fmt.Sprintf(`{ %s: 1, lsid: { $$sessionLsid: session%s }, txnNumber: { $numberLong: "%d" }, startTransaction: { $$exists: false }, autocommit: false`,
			command, suites.Suffix(by), n)
		var out []string
		for i, a := range attempts {
			concern := "writeConcern: { $$exists: false }"
			if i > 0 && command == "commitTransaction" {
				concern = "writeConcern: { w: majority, wtimeout: 10000 }"
			}
			out = append(out, suites.StartedEvent(started+", "+concern+" }", command, "admin"))
			if a == "fails" {
				out = append(out, suites.FailedEvent(command))
			} else {
				out = append(out, suites.SucceededEvent(command))
			}
		}
		return out
	}
	const yes, no = "succeeds", "fails"
	for _, by := range []string{"client", "noRetry"} {
		f.Entities = append(append(f.Entities, objects(by, "collection")...), suites.Session(by))
		option, rule := "", "W31"
		if by == "noRetry" {
			option, rule = notRetriedWithOption, "W30"
		}
		s := suites.Suffix(by)
		on := func(name, raises string) string {
			if raises != "" {
				raises = ", expectError: " + raises
			}
			return "{ name: " + name + ", object: session" + s + raises + " }"
		}
		begin := []string{on("startTransaction", ""), insert.Call(by, "session: session"+s, "")}
		carries := func(n int) string {
			return fmt.Sprintf(`lsid: { $$sessionLsid: session%s }, txnNumber: { $numberLong: "%d" }, startTransaction: true, autocommit: false`, s, n)
		}
		unknown := func(code string) string {
			return "{ " + code + "errorLabelsContain: [ UnknownTransactionCommitResult ] }"
		}
		type row struct{ says, data, require, raises, plain string }
		var rows []row
		rows = append(rows, row{"a network error", suites.Closes, "", unknown("isClientError: true, "), ""})
		for _, c := range []suites.Code{coded("HostUnreachable"), coded("PrimarySteppedDown"), coded("ShutdownInProgress")} {
			code := fmt.Sprintf("isClientError: false, errorCode: %d, ", c.Number)
			rows = append(rows,
				row{c.Name + " with the label " + label, suites.Labelled(c, label), since44(insert, every), unknown(code), ""},
				row{c.Name + " of a server before 4.4", suites.ErrorCode(c), before44, unknown(code), ""})
		}
		for _, command := range []string{"commitTransaction", "abortTransaction"} {
			commits := command == "commitTransaction"
			for _, e := range rows {
				f.Add(suites.Test{
					Description: fmt.Sprintf("%s is retried after %s%s (%s)", command, e.says, option, rule),
					Require:     require(e.require),
					Operations:  append(append([]string{}, begin...), suites.FailPoint(command, suites.Times(1), e.data), on(command, "")),
					Events:      []suites.Expected{{Client: by, Events: append(insert.Attempts(1, 0, carries(1)), events(by, command, 1, no, yes)...)}},
					Outcome:     insert.Outcome(commits),
				})
				t := suites.Test{
					Description: fmt.Sprintf("%s is not retried again after a second failure by %s%s (R35)", command, e.says, option),
					Require:     require(e.require),
					Outcome:     insert.Outcome(commits),
				}
				if commits {
					t.Operations = append(append([]string{}, begin...), suites.FailPoint(command, suites.Times(2), e.data), on(command, e.raises), on(command, ""))
					t.Events = []suites.Expected{{Client: by, Events: append(insert.Attempts(1, 0, carries(1)), events(by, command, 1, no, no, yes)...)}}
				} else {
					t.Operations = append(append(append([]string{}, begin...), suites.FailPoint(command, suites.Times(2), e.data), on(command, "")), append(begin, on(command, ""))...)
					t.Events = []suites.Expected{{Client: by, Events: append(append(append(insert.Attempts(1, 0, carries(1)), events(by, command, 1, no, no)...),
						insert.Attempts(1, 0, carries(2))...), events(by, command, 2, yes)...)}}
				}
				f.Add(t)
			}
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("commitTransaction is retried after a write concern error with the label %s%s (%s)", label, option, rule),
			Require:     []string{since44(insert, every)},
			Operations:  append(append([]string{}, begin...), suites.FailPoint("commitTransaction", suites.Times(1), concern(91, "ShutdownInProgress", label)), on("commitTransaction", "")),
			Events:      []suites.Expected{{Client: by, Events: append(insert.Attempts(1, 0, carries(1)), events(by, "commitTransaction", 1, yes, yes)...)}},
			Outcome:     insert.Outcome(true),
		})
		f.Add(suites.Test{
			Description: fmt.Sprintf("commitTransaction is not retried after Interrupted%s (R34)", option),
			Operations: append(append([]string{}, begin...), suites.FailPoint("commitTransaction", suites.Times(1), suites.ErrorCode(interrupted)),
				on("commitTransaction", raisesPlain(interrupted)), on("abortTransaction", "{ isClientError: true }"), on("commitTransaction", "")),
			Events:  []suites.Expected{{Client: by, Events: append(insert.Attempts(1, 0, carries(1)), events(by, "commitTransaction", 1, no, yes)...)}},
			Outcome: insert.Outcome(true),
		})
		for _, c := range []struct{ says, set, own, retry string }{
			{"keeps journal and gets a wtimeout", "{ w: 1, journal: true }", "{ w: 1, j: true }", "{ w: majority, j: true, wtimeout: 10000 }"},
			{"keeps its wtimeout", "{ w: 1, wtimeoutMS: 15000 }", "{ w: 1, wtimeout: 15000 }", "{ w: majority, wtimeout: 15000 }"},
		} {
			commit := func(concern string) string {
				return suites.StartedEvent("{ commitTransaction: 1, writeConcern: "+concern+" }", "commitTransaction", "admin")
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("commitTransaction %s when it is retried with majority%s (%s)", c.says, option, rule),
				Operations: []string{"{ name: startTransaction, object: session" + s + ", arguments: { writeConcern: " + c.set + " } }", begin[1],
					suites.FailPoint("commitTransaction", suites.Times(1), suites.Closes), on("commitTransaction", ""), on("commitTransaction", "")},
				Events: []suites.Expected{{Client: by, Events: append(insert.Attempts(1, 0, carries(1)),
					commit(c.own), suites.FailedEvent("commitTransaction"), commit(c.retry), suites.SucceededEvent("commitTransaction"),
					commit(c.retry), suites.SucceededEvent("commitTransaction"))}},
				Outcome: insert.Outcome(true),
			})
		}
	}
	return f
}
