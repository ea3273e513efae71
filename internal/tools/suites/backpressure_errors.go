package main

import "slices"

// patient are options of a client that retries 11 times. If it backs off after each error it times out in 299 of
// 300 runs; if it only does so after overload errors it has time to spare.
var patient = doc("maxAdaptiveRetries", 11, "timeoutMS", 10000)

func overloadSequences() *file {
	f := newFile("sequences", "attempts that fail in different ways", sequenceServers(withRetries),
		"How overload errors and other errors in one operation affect the limit of retries, the backoff, and the error that is",
		"raised. Each attempt fails differently, which needs a fail point of utr's embedded deployment.")
	f.Clients = []client{observed("client", nil), observed("timed", doc("timeoutMS", 20000)),
		observed("one", doc("maxAdaptiveRetries", 1)), observed("patient", patient)}
	notFound, raises := hostNotFound, raisedLabels
	over, other, second := overload, errorWithLabels(hostUnreachable, writable), errorWithLabels(notFound, writable)
	// Also retryable by the other policies.
	lost := raises(hostUnreachable, nil, labels{overloaded})
	tell(f, []string{"collection.find", "collection.aggregate", "collection.insertOne", "collection.findOneAndUpdate"},
		failedInTurn("is retried twice after an overload error and HostUnreachable (B2)", nil, over, other),
		failedInTurn("is retried no more than twice after an overload error and HostUnreachable (B2)", lost, over,
			other, other),
		failedInTurn("is retried twice after HostUnreachable and an overload error (B2)", nil, other, over),
		failedInTurn("is retried no more than twice after HostUnreachable and overload errors (B2)", raisesOverload, other,
			over, over),
		failedInTurn("is retried no more than twice after different errors with an overload error between them (B2)",
			raises(notFound, nil, labels{overloaded}), other, over, second),
		story{Says: "is not retried again after two HostUnreachable errors, even if an overload error would follow (R35)",
			Each: []value{other, other, over}, Attempts: 2, Raises: lost},
		failedInTurn("is retried once after an overload error and HostUnreachable with maxAdaptiveRetries 1 (B2)", lost, over,
			other).byClient("one"),
		failedInTurn("is not retried again within timeoutMS after HostUnreachable three times and an overload error (B2)",
			raisesOverload, other, other, other, over).byClient("timed"),
		failedInTurn("is retried no more than twice within timeoutMS after an overload error and HostUnreachable (B2)", lost,
			over, other, other).byClient("timed"),
		failedInTurn("is not retried after an overload error and one with "+overloaded+" alone (R34)", raisesOverloadedOnly,
			over, overloadedOnly),
		failedInTurn("backs off only after the overload error (B6)", nil,
			append([]value{over}, slices.Repeat([]value{other}, 10)...)...).byClient("patient"))
	// Only retryable by client backpressure.
	tell(f, []string{"collection.updateMany", "collection.deleteMany", "database.runCommand with ping"},
		failedInTurn("is not retried after an overload error and HostUnreachable (R34)",
			raises(hostUnreachable, labels{writable}, labels{overloaded}), over, other),
		failedInTurn("is not retried after an overload error and a network error (R34)",
			withLabels(raisedNetwork, nil, labels{overloaded}), over, closes))
	// The error that is raised. runCommand is treated as a write.
	first, later := errorWithLabels(hostUnreachable, overloaded, retryable), errorWithLabels(notFound,
		overloaded, retryable)
	quiet, quietLater := errorWithLabels(hostUnreachable, overloaded, retryable, noWrites),
		errorWithLabels(notFound, overloaded, retryable, noWrites)
	tell(f, []string{"collection.insertOne", "collection.updateMany", "database.runCommand with ping"},
		failedInTurn("raises the last of different overload errors (R20)",
			raises(notFound, labels{overloaded}, labels{noWrites}), first, later, later),
		failedInTurn("raises the first overload error if the others have the label "+noWrites+" (R21)",
			raises(hostUnreachable, labels{overloaded}, labels{noWrites}), first, quietLater, quietLater),
		failedInTurn("raises the overload error between two with the label "+noWrites+" (R20)",
			raises(notFound, labels{overloaded}, labels{noWrites}), quiet, later, quiet),
		failedInTurn("raises the first overload error if all have the label "+noWrites+" (R21)",
			raises(hostUnreachable, labels{overloaded, noWrites}, nil), quiet, quietLater, quietLater))
	tell(f, []string{"collection.find"},
		failedInTurn("raises the last overload error, even with the label "+noWrites+" (R20)",
			raises(notFound, labels{overloaded, noWrites}, nil), first, first, quietLater))
	return f
}

func commitSequences() *file {
	f := newFile("commit-sequences", "the write concern of commits that fail in different ways",
		sequenceServers(withRetries),
		"A commit keeps its write concern as long as all errors before it were overload errors. After any other error it uses",
		"w: majority. Each attempt fails differently, which needs a fail point of utr's embedded deployment.")
	f.Clients = []client{watched("client", nil)}
	f.Sessions = true
	insert, commit := named("collection.insertOne"), endingWith("commitTransaction", nil)
	over, other, either := overload, errorWithLabels(hostUnreachable, writable), errorWithLabels(hostUnreachable,
		overloaded, writable)
	own := flow("{ writeConcern: { w: 1 } }")
	for _, r := range []struct {
		says          string
		fails         []value
		own, majority int // attempts with each write concern
	}{
		{"keeps its write concern after two overload errors (B1)", []value{over, over}, 3, 0},
		{"uses w: majority after an overload error and HostUnreachable (B1)", []value{over, other}, 2, 1},
		{"keeps using w: majority after HostUnreachable and an overload error (B1)", []value{other, over}, 1, 2},
		{"uses w: majority after an error with " + overloaded + " that is not a retryable overload error (W10)",
			[]value{either}, 1, 1},
		{"uses w: majority after a lost reply (W10)", []value{lostReply}, 1, 1},
	} {
		f.add(commit, story{Says: r.says, Each: r.fails,
			Before: []value{doc("name", "startTransaction", "object", "session", "arguments", own),
				insert.call("client", inSession("client"), nil)},
			Seen: insert.attempts(1, 0, begins), Then: slices.Concat(commit.attempts(r.own,
				min(r.own, r.own+r.majority-1), own),
				commit.attempts(r.majority, r.majority-1, majority))})
	}
	return f
}

// mixed has network errors of a fail point in the storage engine. It only affects retryable writes on a replica set.
func mixed() *file {
	f := newFile("mixed-errors", "overload errors and network errors in one operation", servers("4.4", sets),
		"After an overload error, the limit of two retries applies to all attempts, including earlier ones, whatever their",
		"errors. The data is written once.")
	f.Clients = []client{observed("client", nil), observed("one", doc("maxAdaptiveRetries", 1)),
		observed("timed", doc("timeoutMS", 20000)), observed("none",
			doc("maxAdaptiveRetries", 0)), observed("patient", patient)}
	network := withLabels(raisedNetwork, labels{writable}, labels{overloaded})
	lost := setFailPoint(transactionalWrite, times(1), nil)
	breaks := setFailPoint(transactionalWrite, always, beforeCommit)
	for _, title := range []string{"collection.insertOne", "collection.insertMany ordered", "collection.updateOne",
		"collection.deleteOne",
		"collection.findOneAndUpdate", "collection.bulkWrite ordered"} {
		o := named(title)
		once := failPoint(times(1), overload, o.Command)
		later := failPoint(skip(1), overload, o.Command)
		quiet := failPoint(skip(1), errorWithLabels(limited, overloaded, retryable, noWrites), o.Command)
		broken := story{Points: []value{once, breaks}, Raises: network}
		shed := story{Points: []value{lost, later}, Raises: raisesOverload, Applied: true}
		f.add(o,
			story{Says: "is retried twice after an overload error and a lost reply (B2)", Points: []value{once, lost},
				Attempts: 3},
			broken.variant("is retried twice after an overload error and network errors (B2)", "client", 3),
			broken.variant("is retried twice after an overload error and network errors within timeoutMS (B2)", "timed", 3),
			shed.variant("is retried twice after a lost reply and overload errors (B2)", "client", 3),
			shed.variant("is retried twice after a lost reply and overload errors within timeoutMS (B2)", "timed", 3),
			story{Says: "raises the network error after overload errors with " + noWrites + " (R21)",
				Points:   []value{lost, quiet},
				Attempts: 3, Raises: network, Applied: true},
			broken.variant("is retried once after an overload error and network errors with maxAdaptiveRetries 1 (B2)", "one",
				2),
			shed.variant("is not retried again after a lost reply and an overload error with maxAdaptiveRetries 1 (B2)", "one",
				2),
			shed.variant("is not retried again after a lost reply and an overload error with maxAdaptiveRetries 0 (B2)",
				"none", 2),
			story{Says: "is retried once after nothing but network errors with maxAdaptiveRetries 0 (R35)", By: "none",
				Points: []value{breaks}, Attempts: 2, Raises: network})
	}
	for _, title := range []string{"collection.findOneAndUpdate", "collection.findOneAndReplace",
		"collection.findOneAndDelete"} {
		o := named(title) // an error in the storage engine is a command error
		f.add(o, story{Says: "backs off only after the overload error (B6)", By: "patient", Attempts: 12,
			Points: []value{failPoint(times(1), overload, o.Command),
				setFailPoint(transactionalWrite, times(10), errorBeforeCommit(hostUnreachable))}})
	}
	return f
}

func otherErrors() *file {
	f := newFile("other-retryable-errors", "overload errors that other policies retry", labelling,
		"An error that is retryable for reads or writes anyway may have only the label SystemOverloadedError. Their rules",
		"apply, with the limit of client backpressure.")
	f.Clients = []client{observed("client", nil), observed("none", doc("maxAdaptiveRetries", 0)),
		observed("noReads", doc("retryReads", false)), observed("noWrites", doc("retryWrites", false)),
		observed("timed", doc("timeoutMS", 20000))}
	raises := raisedLabels(hostUnreachable, labels{overloaded}, nil)
	const after = "after HostUnreachable with " + overloaded
	for _, r := range []struct {
		title       string
		data        value
		off, option string
	}{
		{"collection.find", errorWithLabels(hostUnreachable, overloaded), "noReads", "retryReads"},
		{"collection.aggregate", errorWithLabels(hostUnreachable, overloaded), "noReads", "retryReads"},
		{"collection.insertOne", errorWithLabels(hostUnreachable, overloaded, writable), "noWrites", "retryWrites"},
		{"collection.findOneAndUpdate", errorWithLabels(hostUnreachable, overloaded, writable), "noWrites", "retryWrites"},
	} {
		failing := story{Fails: r.data, Raises: raises}
		always := story{Mode: always, Fails: r.data, Raises: raises}
		f.add(named(r.title),
			story{Says: "is retried twice " + after + " (B2)", Fails: r.data, Attempts: 3},
			always.variant("is retried no more than twice "+after+" (B4)", "client", 3),
			always.variant("is retried no more than twice "+after+" within timeoutMS (B4)", "timed", 3),
			failing.variant("is not retried "+after+" if maxAdaptiveRetries is 0 (B4)", "none", 1),
			failing.variant("is not retried "+after+" if "+r.option+" is false (R34)", r.off, 1))
	}
	// Not retryable without the label RetryableError.
	f.add(named("collection.updateMany"), story{Says: "is not retried " + after + " and " + writable + " (R34)",
		Fails: errorWithLabels(hostUnreachable, overloaded, writable), Attempts: 1, Raises: raisedCode(hostUnreachable)})
	return f
}
