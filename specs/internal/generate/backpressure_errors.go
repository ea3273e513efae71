package main

import "slices"

// patient are options of a client that retries 11 times. If it backs off after each error it times out in 299 of
// 300 runs; if it only does so after overload errors it has time to spare.
const patient = "maxAdaptiveRetries: 11, timeoutMS: 10000"

func overloadSequences() *File {
	f := NewFile("sequences", "attempts that fail in different ways", Sequences(Retrying),
		"How overload errors and other errors in one operation affect the limit of retries, the backoff, and the error that is",
		"raised. Each attempt fails differently, which needs a fail point of utr's embedded deployment.")
	f.Clients = []Client{Observed("client", ""), Observed("timed", "timeoutMS: 20000"),
		Observed("one", "maxAdaptiveRetries: 1"), Observed("patient", patient)}
	notFound, raises := HostNotFound, RaisedLabels
	over, other, second := overload, Labelled(HostUnreachable, writable), Labelled(notFound, writable)
	// Also retryable by the other policies.
	lost := raises(HostUnreachable, "", overloaded)
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.findOneAndUpdate"},
		Failing("is retried twice after an overload error and HostUnreachable (B2)", "", over, other),
		Failing("is retried no more than twice after an overload error and HostUnreachable (B2)",
			lost, over, other, other),
		Failing("is retried twice after HostUnreachable and an overload error (B2)", "", other, over),
		Failing("is retried no more than twice after HostUnreachable and overload errors (B2)",
			raisesOverload, other, over, over),
		Failing("is retried no more than twice after different errors with an overload error between them (B2)",
			raises(notFound, "", overloaded), other, over, second),
		Story{Says: "is not retried again after two HostUnreachable errors, even if an overload error would follow (R35)",
			Each: []string{other, other, over}, Attempts: 2, Raises: lost},
		Failing("is retried once after an overload error and HostUnreachable with maxAdaptiveRetries 1 (B2)",
			lost, over, other).Of("one"),
		Failing("is not retried again within timeoutMS after HostUnreachable three times and an overload error (B2)",
			raisesOverload, other, other, other, over).Of("timed"),
		Failing("is retried no more than twice within timeoutMS after an overload error and HostUnreachable (B2)",
			lost, over, other, other).Of("timed"),
		Failing("is not retried after an overload error and one with "+overloaded+" alone (R34)",
			raisesOverloadedOnly, over, overloadedOnly),
		Failing("backs off only after the overload error (B6)", "",
			append([]string{over}, slices.Repeat([]string{other}, 10)...)...).Of("patient"))
	// Only retryable by client backpressure.
	tell(f, []string{"collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		Failing("is not retried after an overload error and HostUnreachable (R34)",
			raises(HostUnreachable, writable, overloaded), over, other),
		Failing("is not retried after an overload error and a network error (R34)",
			WithLabels(RaisedNetwork, "", overloaded), over, Closes))
	// Which error is raised. runCommand is treated as a write.
	first, later := Labelled(HostUnreachable, overloaded, retryable), Labelled(notFound, overloaded, retryable)
	quiet, quietLater := Labelled(HostUnreachable, overloaded, retryable, noWrites), Labelled(notFound, overloaded, retryable, noWrites)
	tell(f, []string{"collection.insertOne", "collection.updateMany", "database.runCommand with ping"},
		Failing("raises the last of different overload errors (R20)",
			raises(notFound, overloaded, noWrites), first, later, later),
		Failing("raises the first overload error if the others have the label "+noWrites+" (R21)",
			raises(HostUnreachable, overloaded, noWrites), first, quietLater, quietLater),
		Failing("raises the overload error between two with the label "+noWrites+" (R20)",
			raises(notFound, overloaded, noWrites), quiet, later, quiet),
		Failing("raises the first overload error if all have the label "+noWrites+" (R21)",
			raises(HostUnreachable, overloaded+", "+noWrites, ""), quiet, quietLater, quietLater))
	tell(f, []string{"collection.find"},
		Failing("raises the last overload error, even with the label "+noWrites+" (R20)",
			raises(notFound, overloaded+", "+noWrites, ""), first, first, quietLater))
	return f
}

func commitSequences() *File {
	f := NewFile("commit-sequences", "the write concern of commits that fail in different ways", Sequences(Retrying),
		"A commit keeps its write concern as long as all errors before it were overload errors. After any other error it uses",
		"w: majority. Each attempt fails differently, which needs a fail point of utr's embedded deployment.")
	f.Clients = []Client{Watched("client", "")}
	f.Sessions = true
	insert, commit := named("collection.insertOne"), endingWith("commitTransaction", "")
	over, other, either := overload, Labelled(HostUnreachable, writable), Labelled(HostUnreachable, overloaded, writable)
	const own = "writeConcern: { w: 1 }"
	for _, r := range []struct {
		says          string
		fails         []string
		own, majority int // attempts with each write concern
	}{
		{"keeps its write concern after two overload errors (B1)", []string{over, over}, 3, 0},
		{"uses w: majority after an overload error and HostUnreachable (B1)", []string{over, other}, 2, 1},
		{"keeps using w: majority after HostUnreachable and an overload error (B1)", []string{other, over}, 1, 2},
		{"uses w: majority after an error with " + overloaded + " that is not a retryable overload error (W10)", []string{either}, 1, 1},
		{"uses w: majority after a lost reply (W10)", []string{LostReply}, 1, 1},
	} {
		f.Tell(commit, Story{Says: r.says, Each: r.fails,
			Before: []string{"{ name: startTransaction, object: session, arguments: { " + own + " } }", insert.Call("client", "session: session", "")},
			Seen:   insert.Attempts(1, 0, begins), Then: slices.Concat(commit.Attempts(r.own, min(r.own, r.own+r.majority-1), own),
				commit.Attempts(r.majority, r.majority-1, majority))})
	}
	return f
}

// mixed has network errors of a fail point in the storage engine, which only affects retryable writes on a replica set.
func mixed() *File {
	f := NewFile("mixed-errors", "overload errors and network errors in one operation", Servers("4.4", Sets),
		"After an overload error, the limit of two retries applies to all attempts, including earlier ones, whatever their",
		"errors. The data is written once.")
	f.Clients = []Client{Observed("client", ""), Observed("one", "maxAdaptiveRetries: 1"),
		Observed("timed", "timeoutMS: 20000"), Observed("none", "maxAdaptiveRetries: 0"), Observed("patient", patient)}
	network := WithLabels(RaisedNetwork, writable, overloaded)
	lost := SetFailPoint(TransactionalWrite, Times(1), "")
	breaks := SetFailPoint(TransactionalWrite, Always, BeforeCommit)
	for _, title := range []string{"collection.insertOne", "collection.insertMany ordered", "collection.updateOne", "collection.deleteOne",
		"collection.findOneAndUpdate", "collection.bulkWrite ordered"} {
		o := named(title)
		once := FailPoint(o.Command, Times(1), overload)
		later := FailPoint(o.Command, SkipFirst, overload)
		quiet := FailPoint(o.Command, SkipFirst, Labelled(limited, overloaded, retryable, noWrites))
		broken := Story{Points: []string{once, breaks}, Raises: network}
		shed := Story{Points: []string{lost, later}, Raises: raisesOverload, Applied: true}
		f.Tell(o,
			Story{Says: "is retried twice after an overload error and a lost reply (B2)", Points: []string{once, lost}, Attempts: 3},
			broken.As("is retried twice after an overload error and network errors (B2)", "client", 3),
			broken.As("is retried twice after an overload error and network errors within timeoutMS (B2)", "timed", 3),
			shed.As("is retried twice after a lost reply and overload errors (B2)", "client", 3),
			shed.As("is retried twice after a lost reply and overload errors within timeoutMS (B2)", "timed", 3),
			Story{Says: "raises the network error after overload errors with " + noWrites + " (R21)", Points: []string{lost, quiet},
				Attempts: 3, Raises: network, Applied: true},
			broken.As("is retried once after an overload error and network errors with maxAdaptiveRetries 1 (B2)", "one", 2),
			shed.As("is not retried again after a lost reply and an overload error with maxAdaptiveRetries 1 (B2)", "one", 2),
			shed.As("is not retried again after a lost reply and an overload error with maxAdaptiveRetries 0 (B2)", "none", 2),
			Story{Says: "is retried once after nothing but network errors with maxAdaptiveRetries 0 (R35)", By: "none",
				Points: []string{breaks}, Attempts: 2, Raises: network})
	}
	for _, title := range []string{"collection.findOneAndUpdate", "collection.findOneAndReplace", "collection.findOneAndDelete"} {
		o := named(title) // an error in the storage engine is a command error
		f.Tell(o, Story{Says: "backs off only after the overload error (B6)", By: "patient", Attempts: 12,
			Points: []string{FailPoint(o.Command, Times(1), overload),
				SetFailPoint(TransactionalWrite, Times(10), "closeConnection: false, failBeforeCommitExceptionCode: 6")}})
	}
	return f
}

func otherErrors() *File {
	f := NewFile("other-retryable-errors", "overload errors that other policies retry", labelling,
		"An error that is retryable for reads or writes anyway may have only the label SystemOverloadedError. Their rules",
		"apply, with the limit of client backpressure.")
	f.Clients = []Client{Observed("client", ""), Observed("none", "maxAdaptiveRetries: 0"),
		Observed("noReads", "retryReads: false"), Observed("noWrites", "retryWrites: false"),
		Observed("timed", "timeoutMS: 20000")}
	raises := RaisedLabels(HostUnreachable, overloaded, "")
	const after = "after HostUnreachable with " + overloaded
	for _, r := range []struct{ title, data, off, option string }{
		{"collection.find", Labelled(HostUnreachable, overloaded), "noReads", "retryReads"},
		{"collection.aggregate", Labelled(HostUnreachable, overloaded), "noReads", "retryReads"},
		{"collection.insertOne", Labelled(HostUnreachable, overloaded, writable), "noWrites", "retryWrites"},
		{"collection.findOneAndUpdate", Labelled(HostUnreachable, overloaded, writable), "noWrites", "retryWrites"},
	} {
		failing := Story{Fails: r.data, Raises: raises}
		always := Story{Mode: Always, Fails: r.data, Raises: raises}
		f.Tell(named(r.title),
			Story{Says: "is retried twice " + after + " (B2)", Fails: r.data, Attempts: 3},
			always.As("is retried no more than twice "+after+" (B4)", "client", 3),
			always.As("is retried no more than twice "+after+" within timeoutMS (B4)", "timed", 3),
			failing.As("is not retried "+after+" if maxAdaptiveRetries is 0 (B4)", "none", 1),
			failing.As("is not retried "+after+" if "+r.option+" is false (R34)", r.off, 1))
	}
	// Not retryable without the label RetryableError.
	f.Tell(named("collection.updateMany"), Story{Says: "is not retried " + after + " and " + writable + " (R34)",
		Fails: Labelled(HostUnreachable, overloaded, writable), Attempts: 1, Raises: RaisedCode(HostUnreachable)})
	return f
}
