package backpressure

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// patient are options with which a client that backs off after every error
// runs out of time, but for one run in fifty, and one that does so after
// overload errors alone has time to spare.
const patient = "maxAdaptiveRetries: 8, timeoutMS: 3000"

// sequences are attempts that fail in different ways.
func sequences() *suites.File {
	f := suites.NewFile("sequences", "attempts that fail in different ways", suites.Sequences(suites.Retrying),
		"Overload errors and others in one operation: what they do to the limit of retries, to the backoff, and to the error that is",
		"raised. Each attempt has a failure of its own, which needs a fail point of utr's embedded deployment.")
	f.Clients = []suites.Client{suites.Observed("client", ""), suites.Observed("timed", "timeoutMS: 20000"),
		suites.Observed("one", "maxAdaptiveRetries: 1"), suites.Observed("patient", patient)}
	notFound, raises := suites.HostNotFound, suites.RaisedLabels
	over, other, second := overload, suites.Labelled(unreachable, writable), suites.Labelled(notFound, writable)
	// Retryable by the other policies.
	lost := raises(unreachable, "", overloaded)
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.findOneAndUpdate"},
		story{Says: "is retried twice after an overload error and HostUnreachable (B2)", Each: []string{over, other}, Attempts: 3},
		story{Says: "is retried no more than twice after an overload error and HostUnreachable (B2)", Each: []string{over, other, other},
			Attempts: 3, Raises: lost},
		story{Says: "is retried twice after HostUnreachable and an overload error (B2)", Each: []string{other, over}, Attempts: 3},
		story{Says: "is retried no more than twice after HostUnreachable and overload errors (B2)", Each: []string{other, over, over},
			Attempts: 3, Raises: raised},
		story{Says: "is retried no more than twice after different errors with an overload error between them (B2)",
			Each: []string{other, over, second}, Attempts: 3, Raises: raises(notFound, "", overloaded)},
		story{Says: "is not retried again after HostUnreachable twice, though an overload error would follow (R35)",
			Each: []string{other, other, over}, Attempts: 2, Raises: lost},
		story{Says: "is retried once after an overload error and HostUnreachable with maxAdaptiveRetries 1 (B2)", By: "one",
			Each: []string{over, other}, Attempts: 2, Raises: lost},
		story{Says: "is not retried after HostUnreachable three times and an overload error within timeoutMS (B2)", By: "timed",
			Each: []string{other, other, other, over}, Attempts: 4, Raises: raised},
		story{Says: "is retried no more than twice within timeoutMS after an overload error and HostUnreachable (B2)", By: "timed",
			Each: []string{over, other, other}, Attempts: 3, Raises: lost},
		story{Says: "is not retried after an overload error and one with " + overloaded + " alone (R34)",
			Each: []string{over, overloadedOnly}, Attempts: 2, Raises: raisedOnly},
		story{Says: "backs off after the overload error alone (B6)", By: "patient",
			Each: append([]string{over}, slices.Repeat([]string{other}, 7)...), Attempts: 9})
	// Retryable by client backpressure alone.
	tell(f, []string{"collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		story{Says: "is not retried after an overload error and HostUnreachable (R34)", Each: []string{over, other}, Attempts: 2,
			Raises: raises(unreachable, writable, overloaded)},
		story{Says: "is not retried after an overload error and a network error (R34)", Each: []string{over, suites.Closes}, Attempts: 2,
			Raises: suites.WithLabels(suites.RaisedNetwork, "", overloaded)})
	// Which error is raised: runCommand counts as a write.
	first, later := suites.Labelled(unreachable, overloaded, retryable), suites.Labelled(notFound, overloaded, retryable)
	quiet, quietLater := suites.Labelled(unreachable, overloaded, retryable, noWrites), suites.Labelled(notFound, overloaded, retryable, noWrites)
	tell(f, []string{"collection.insertOne", "collection.updateMany", "database.runCommand with ping"},
		story{Says: "raises the last of different overload errors (R20)", Each: []string{first, later, later}, Attempts: 3,
			Raises: raises(notFound, overloaded, noWrites)},
		story{Says: "raises the first overload error if the others have the label " + noWrites + " (R21)",
			Each: []string{first, quietLater, quietLater}, Attempts: 3, Raises: raises(unreachable, overloaded, noWrites)},
		story{Says: "raises the overload error between two with the label " + noWrites + " (R20)",
			Each: []string{quiet, later, quiet}, Attempts: 3, Raises: raises(notFound, overloaded, noWrites)},
		story{Says: "raises the first overload error if all have the label " + noWrites + " (R21)",
			Each: []string{quiet, quietLater, quietLater}, Attempts: 3, Raises: raises(unreachable, overloaded+", "+noWrites, "")})
	tell(f, []string{"collection.find"},
		story{Says: "raises the last overload error, though it has the label " + noWrites + " (R20)",
			Each: []string{first, first, quietLater}, Attempts: 3, Raises: raises(notFound, overloaded+", "+noWrites, "")})
	return f
}

// commitSequences are commits whose attempts fail in different ways.
func commitSequences() *suites.File {
	f := suites.NewFile("commit-sequences", "the write concern of commits that fail in different ways", suites.Sequences(suites.Retrying),
		"A commit is sent with its own write concern as long as overload errors alone came before, and with w: majority ever after another",
		"error. Each attempt has a failure of its own, which needs a fail point of utr's embedded deployment.")
	f.Clients = []suites.Client{suites.Watched("client", "")}
	f.Sessions = true
	insert, commit := named("collection.insertOne"), ending("commitTransaction", "")
	over, other, either := overload, suites.Labelled(unreachable, writable), suites.Labelled(unreachable, overloaded, writable)
	const own = "writeConcern: { w: 1 }"
	for _, r := range []struct {
		says          string
		fails         []string
		own, majority int // attempts with each write concern
	}{
		{"keeps its write concern after two overload errors (B1)", []string{over, over}, 3, 0},
		{"asks for majority after an overload error and HostUnreachable (B1)", []string{over, other}, 2, 1},
		{"goes on to ask for majority after HostUnreachable and an overload error (B1)", []string{other, over}, 1, 2},
		{"asks for majority after an error with " + overloaded + " that is no retryable overload error (W10)", []string{either}, 1, 1},
		{"asks for majority after a lost reply (W10)", []string{suites.LostReply}, 1, 1},
	} {
		f.Tell(commit, story{Says: r.says, Each: r.fails,
			Before: []string{"{ name: startTransaction, object: session, arguments: { " + own + " } }", insert.Call("client", "session: session", "")},
			Seen:   insert.Attempts(1, 0, begins),
			Then: suites.Join(commit.Attempts(r.own, min(r.own, r.own+r.majority-1), own),
				commit.Attempts(r.majority, r.majority-1, majority))})
	}
	return f
}
