package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// sessions checks that a retry has the session and the transaction number of
// the first attempt, and the next write another number.
func sessions(operations []suites.Operation) *suites.File {
	f := &suites.File{
		Name:        "sessions",
		Description: "retryable writes: the session and the transaction number of a retry",
		About:       []string{"A retry has lsid and txnNumber of the first attempt; the next write of the session has the next number."},
		Require:     []string{requirement(suites.Operation{})},
		Clients:     []suites.Client{suites.SetupClient(), suites.PlainClient()},
		Entities:    append(objects("client", "collection"), suites.Session("client")),
	}
	next := suites.Operation{Object: "collection", Name: "updateOne", Command: "update", Database: databaseName,
		Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ update: " + suites.Collection + " }"}
	for _, o := range operations {
		carries := func(n int) string {
			return fmt.Sprintf(`lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "%d" }`, n)
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried with lsid and txnNumber of its explicit session (R5)",
			Require:     special(o),
			Operations: []string{suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "session: session", ""),
				next.Call("client", "session: session", "")},
			Events:  []suites.Expected{{Client: "client", Events: append(o.Attempts(2, 1, carries(1)), next.Attempts(1, 0, carries(2))...)}},
			Outcome: o.Outcome(true),
		})
		f.Add(suites.Test{
			Description: o.Title() + " is retried with lsid and txnNumber of its implicit session (R5)",
			Require:     special(o),
			Operations: []string{suites.FailPoint(o.Command, suites.Times(1), suites.Closes), o.Call("client", "", ""),
				"{ name: assertSameLsidOnLastTwoCommands, object: testRunner, arguments: { client: client } }"},
			Events:  []suites.Expected{{Client: "client", Events: o.Attempts(2, 1, numbered)}},
			Outcome: o.Outcome(true),
		})
		f.Add(suites.Test{
			Description: o.Title() + " carries a 64-bit transaction number (R5)",
			Require:     special(o),
			Operations:  []string{o.Call("client", "", "")},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 0, "lsid: { $$type: object }, txnNumber: { $$type: long }")}},
			Outcome:     o.Outcome(true),
		})
	}
	return f
}
