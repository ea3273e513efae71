package writes

import (
	"fmt"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// inside is what the first command of the session's first transaction carries.
const inside = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "1" }, startTransaction: true, autocommit: false`

// transactions checks that no write in a transaction is retried, and that the
// session is as before afterwards.
func transactions(operations []operation) *suites.File {
	f := suites.NewFile("transactions", "no retries in a transaction", retrying,
		"A write in a transaction is attempted once, and the driver gives its errors no label "+label+". After the",
		"transaction its session retries again, with the next number.")
	f.Sessions = true
	const outside = `lsid: { $$sessionLsid: session }, txnNumber: { $numberLong: "2" }, startTransaction: { $$exists: false }, autocommit: { $$exists: false }`
	unreachable, shutdown := suites.HostUnreachable, suites.InterruptedAtShutdown
	for _, o := range operations {
		f.TellInTransaction(o, inside, "W31",
			suites.NotRetried("a network error", suites.Closes, suites.WithLabels(suites.RaisedNetwork, suites.TransientTransactionError, label)),
			suites.NotRetried("HostUnreachable with the label "+label, policy.Fails(unreachable), suites.RaisedCode(unreachable)).On(labelling),
			suites.NotRetried("InterruptedAtShutdown", suites.ErrorCode(shutdown), raisesPlain(shutdown)).On(labelling),
			suites.NotRetried("HostUnreachable of a server before 4.4", suites.ErrorCode(unreachable), raisesPlain(unreachable)).On(before44))
		f.TellAfterTransaction(o, inside, outside, policy.Network)
	}
	return f
}

// ending is the operation that ends a transaction with an insert.
func ending(command string) operation {
	o := operation{Object: "session", Name: command, Command: command, Database: "admin", Started: "{ " + command + ": 1 }"}
	if command == "commitTransaction" {
		o.Wrote = named("insertOne").Wrote
	}
	return o
}

// ended says what happens to the end of a transaction, with the option of the
// client and the rule.
func ended(says, by string) string {
	if by == "noRetry" {
		return says + off + " (W30)"
	}
	return says + " (W31)"
}

// endings are commit and abort, which are retried whatever retryWrites says.
func endings() *suites.File {
	f := suites.NewFile("transactions-end", "commitTransaction and abortTransaction", retrying,
		"Commit and abort are retried once, with retryWrites false as well. The retry of a commit asks for w: majority. The",
		"errors of abort are not raised. A transaction that is still open in the server is ended before the test is.")
	f.Clients = []suites.Client{suites.Watched("client", ""), suites.Watched("noRetry", "retryWrites: false")}
	f.Sessions = true
	for _, by := range []string{"client", "noRetry"} {
		endingsBy(f, by)
	}
	return f
}

// endingsBy adds the tests of endings by one client.
func endingsBy(f *suites.File, by string) {
	const majority = "writeConcern: { w: majority, wtimeout: 10000 }"
	insert, commit, abort := named("insertOne"), ending("commitTransaction"), ending("abortTransaction")
	s := suites.Suffix(by)
	// sent is a command of the session's nth transaction, which fails or not.
	sent := func(o operation, n, failing int, concern string) []string {
		return o.Attempts(1, failing, fmt.Sprintf(`lsid: { $$sessionLsid: session%s }, txnNumber: { $numberLong: "%d" }, `+
			`startTransaction: { $$exists: false }, autocommit: false, %s`, s, n, concern))
	}
	inserted := func(n int) []string {
		return insert.Attempts(1, 0, fmt.Sprintf(`lsid: { $$sessionLsid: session%s }, txnNumber: { $numberLong: "%d" }, startTransaction: true, autocommit: false`, s, n))
	}
	const none = "writeConcern: { $$exists: false }"
	begin := []string{suites.OnSession("startTransaction", by), insert.Call(by, suites.InSession(by), "")}
	again := []string{suites.OnSession("commitTransaction", by)}
	tell := func(o operation, story story) {
		story.By, story.Seen = by, suites.Join(inserted(1), story.Seen)
		if story.Before == nil {
			story.Before = begin
		}
		f.Tell(o, story)
	}
	option := map[string]string{"noRetry": off}[by]
	for _, o := range []operation{commit, abort} {
		retry := none
		if o.Name == commit.Name {
			retry = majority
		}
		for _, e := range ends() {
			tell(o, story{Says: ended("is retried after "+e.says, by), Require: e.require, Fails: e.data,
				Then: suites.Join(sent(o, 1, 1, none), sent(o, 1, 0, retry))})
			twice := story{Says: "is not retried again after a second failure by " + e.says + option + " (R35)", Require: e.require,
				Mode: suites.Times(2), Fails: e.data, Then: suites.Join(sent(o, 1, 1, none), sent(o, 1, 1, retry))}
			if o.Name == commit.Name {
				twice.Raises, twice.Applied = suites.WithLabels(e.raises, suites.UnknownTransactionCommitResult, ""), true
				twice.After, twice.Then = again, suites.Join(twice.Then, sent(o, 1, 0, retry))
			} else {
				twice.After = suites.Join(begin, []string{suites.OnSession(o.Name, by)})
				twice.Then = suites.Join(twice.Then, inserted(2), sent(o, 2, 0, none))
			}
			tell(o, twice)
		}
	}
	tell(commit, story{Says: ended("is retried after a write concern error with the label "+label, by), Require: labelling,
		Fails: suites.LabelledConcern(label),
		Then:  suites.Join(sent(commit, 1, 0, none), sent(commit, 1, 0, majority))})
	tell(commit, story{Says: "is not retried after Interrupted" + option + " (R34)", Fails: suites.ErrorCode(suites.Interrupted),
		Raises:  raisesPlain(suites.Interrupted),
		Applied: true, After: []string{abort.Call(by, "", "{ isClientError: true }"), again[0]},
		Then: suites.Join(sent(commit, 1, 1, none), sent(commit, 1, 0, majority))})
	for _, c := range []struct{ says, set, own, retry string }{
		{"keeps journal and gets a wtimeout", "{ w: 1, journal: true }", "{ w: 1, j: true }", "{ w: majority, j: true, wtimeout: 10000 }"},
		{"keeps its wtimeout", "{ w: 1, wtimeoutMS: 15000 }", "{ w: 1, wtimeout: 15000 }", "{ w: majority, wtimeout: 15000 }"},
	} {
		tell(commit, story{Says: ended(c.says+" when it is retried with majority", by), Fails: suites.Closes, After: again,
			Before: []string{"{ name: startTransaction, object: session" + s + ", arguments: { writeConcern: " + c.set + " } }", begin[1]},
			Then:   suites.Join(commit.Attempts(1, 1, "writeConcern: "+c.own), commit.Attempts(2, 0, "writeConcern: "+c.retry))})
	}
}

// end is an error after which a transaction's end is retried.
type end struct{ says, data, require, raises string }

func ends() []end {
	rows := []end{{"a network error", suites.Closes, "", suites.RaisedNetwork}}
	for _, c := range []suites.Code{suites.HostUnreachable, suites.PrimarySteppedDown, suites.ShutdownInProgress} {
		rows = append(rows,
			end{c.Name + " with the label " + label, policy.Fails(c), labelling, suites.RaisedCode(c)},
			end{c.Name + " of a server before 4.4", suites.ErrorCode(c), before44, suites.RaisedCode(c)})
	}
	return rows
}
