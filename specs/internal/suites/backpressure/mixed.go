package backpressure

import "github.com/unified-test-runner/utr/specs/internal/suites"

// overload errors that another policy retries, or that come beside others.

// mixed has overload errors and network errors in one operation. The network
// errors come from a fail point of the storage engine, which only retryable
// writes on a replica set meet.
func mixed() *suites.File {
	f := suites.NewFile("mixed-errors", "overload errors and network errors in one operation", suites.Servers("4.4", suites.Sets),
		"Once an overload error was seen, the limit of two retries holds for all attempts, whatever their errors, and for",
		"those before. What is written is written once.")
	f.Clients = []suites.Client{suites.Observed("client", ""), suites.Observed("one", "maxAdaptiveRetries: 1"),
		suites.Observed("timed", "timeoutMS: 20000"), suites.Observed("none", "maxAdaptiveRetries: 0"), suites.Observed("patient", patient)}
	network := suites.WithLabels(suites.RaisedNetwork, writable, overloaded)
	lost := suites.SetFailPoint(suites.TransactionalWrite, suites.Times(1), "")
	breaks := suites.SetFailPoint(suites.TransactionalWrite, suites.Always, suites.BeforeCommit)
	for _, title := range []string{"collection.insertOne", "collection.insertMany ordered", "collection.updateOne", "collection.deleteOne",
		"collection.findOneAndUpdate", "collection.bulkWrite ordered"} {
		o := named(title)
		once := suites.FailPoint(o.Command, suites.Times(1), overload)
		later := suites.FailPoint(o.Command, suites.SkipFirst, overload)
		quiet := suites.FailPoint(o.Command, suites.SkipFirst, suites.Labelled(limited, overloaded, retryable, noWrites))
		f.Tell(o,
			story{Says: "is retried twice after an overload error and a lost reply (B2)", Points: []string{once, lost}, Attempts: 3},
			story{Says: "is retried twice after an overload error and network errors (B2)", Points: []string{once, breaks}, Attempts: 3,
				Raises: network},
			story{Says: "is retried twice after an overload error and network errors within timeoutMS (B2)", By: "timed",
				Points: []string{once, breaks}, Attempts: 3, Raises: network},
			story{Says: "is retried twice after a lost reply and overload errors (B2)", Points: []string{lost, later}, Attempts: 3,
				Raises: raised, Applied: true},
			story{Says: "is retried twice after a lost reply and overload errors within timeoutMS (B2)", By: "timed",
				Points: []string{lost, later}, Attempts: 3, Raises: raised, Applied: true},
			story{Says: "raises the network error after overload errors with " + noWrites + " (R21)", Points: []string{lost, quiet},
				Attempts: 3, Raises: network, Applied: true},
			story{Says: "is retried once after an overload error and network errors with maxAdaptiveRetries 1 (B2)", By: "one",
				Points: []string{once, breaks}, Attempts: 2, Raises: network},
			story{Says: "is not retried again after a lost reply and an overload error with maxAdaptiveRetries 1 (B2)", By: "one",
				Points: []string{lost, later}, Attempts: 2, Raises: raised, Applied: true},
			story{Says: "is not retried again after a lost reply and an overload error with maxAdaptiveRetries 0 (B2)", By: "none",
				Points: []string{lost, later}, Attempts: 2, Raises: raised, Applied: true},
			story{Says: "is retried once after network errors alone with maxAdaptiveRetries 0 (R35)", By: "none", Points: []string{breaks},
				Attempts: 2, Raises: network})
	}
	for _, title := range []string{"collection.findOneAndUpdate", "collection.findOneAndReplace", "collection.findOneAndDelete"} {
		o := named(title) // whose error of the storage engine is one of the command
		f.Tell(o, story{Says: "backs off after the overload error alone (B6)", By: "patient", Attempts: 9,
			Points: []string{suites.FailPoint(o.Command, suites.Times(1), overload),
				suites.SetFailPoint(suites.TransactionalWrite, suites.Times(7), "closeConnection: false, failBeforeCommitExceptionCode: 6")}})
	}
	return f
}

// otherErrors are retried by the rules of reads or writes, and come of an
// overloaded server.
func otherErrors() *suites.File {
	f := suites.NewFile("other-retryable-errors", "overload errors that other policies retry", retrying,
		"An error that reads or writes retry anyway may have the label SystemOverloadedError alone: it is retried by their",
		"rules, with the limit of client backpressure.")
	f.Clients = []suites.Client{suites.Observed("client", ""), suites.Observed("none", "maxAdaptiveRetries: 0"),
		suites.Observed("noReads", "retryReads: false"), suites.Observed("noWrites", "retryWrites: false"),
		suites.Observed("timed", "timeoutMS: 20000")}
	raises := suites.RaisedLabels(unreachable, overloaded, "")
	const after = "after HostUnreachable with " + overloaded
	for _, r := range []struct{ title, data, off, option string }{
		{"collection.find", suites.Labelled(unreachable, overloaded), "noReads", "retryReads"},
		{"collection.aggregate", suites.Labelled(unreachable, overloaded), "noReads", "retryReads"},
		{"collection.insertOne", suites.Labelled(unreachable, overloaded, writable), "noWrites", "retryWrites"},
		{"collection.findOneAndUpdate", suites.Labelled(unreachable, overloaded, writable), "noWrites", "retryWrites"},
	} {
		f.Tell(named(r.title),
			story{Says: "is retried twice " + after + " (B2)", Mode: suites.Times(2), Fails: r.data, Attempts: 3},
			story{Says: "is retried no more than twice " + after + " (B4)", Mode: suites.Always, Fails: r.data, Attempts: 3, Raises: raises},
			story{Says: "is retried no more than twice " + after + " within timeoutMS (B4)", By: "timed", Mode: suites.Always,
				Fails: r.data, Attempts: 3, Raises: raises},
			story{Says: "is not retried " + after + " and maxAdaptiveRetries 0 (B4)", By: "none", Fails: r.data, Attempts: 1, Raises: raises},
			story{Says: "is not retried " + after + " and " + r.option + " false (R34)", By: r.off, Fails: r.data, Attempts: 1, Raises: raises})
	}
	// Not retryable by itself.
	f.Tell(named("collection.updateMany"), story{Says: "is not retried " + after + " and " + writable + " (R34)",
		Fails: suites.Labelled(unreachable, overloaded, writable), Attempts: 1, Raises: suites.RaisedCode(unreachable)})
	return f
}
