package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

var harmless = operation{Object: "collection", Name: "updateOne", Command: "update", Database: databaseName,
	Arguments: "{ filter: { _id: 9 }, update: { $set: { x: 1 } } }", Started: "{ update: " + suites.Collection + " }"}

// sessions checks that a retry has the session and the transaction number of
// the first attempt, and the next write another number.
func sessions(operations []operation) *suites.File {
	f := suites.NewFile("sessions", "the session and the transaction number of a retry", retrying,
		"A retry has lsid and txnNumber of the first attempt; the next write of the session has the next number.")
	f.Sessions = true
	carries := func(n int) string {
		return fmt.Sprintf(`lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "%d" }`, n)
	}
	for _, o := range operations {
		f.Tell(o,
			story{Says: "is retried with lsid and txnNumber of its explicit session (R5)", Require: special(o), Fails: suites.Closes,
				With: "session: session", After: []string{harmless.Call("client", "session: session", "")},
				Attempts: 2, Carries: carries(1), Then: harmless.Attempts(1, 0, carries(2))},
			story{Says: "is retried with lsid and txnNumber of its implicit session (R5)", Require: special(o), Fails: suites.Closes,
				After: []string{suites.SameLsid}, Attempts: 2},
			story{Says: "carries a 64-bit transaction number (R5)", Require: special(o),
				Attempts: 1, Carries: "lsid: { $$type: object }, txnNumber: { $$type: long }"})
	}
	return f
}
