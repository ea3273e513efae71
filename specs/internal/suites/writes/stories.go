package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

// off ends what stories of a client with retryWrites false say.
const off = " with retryWrites false"

// stories are told of every operation.
func stories() []story {
	once, twice, interrupted := suites.Times(1), suites.Times(2), suites.Interrupted
	concern := suites.LabelledConcern(label)
	list := []story{
		{Says: "succeeds at the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number" + off + " (R6)", Attempts: 1, By: "noRetry"},
		{Says: "is retried after a network error (W10)", Fails: suites.Closes, Attempts: 2},
		{Says: "is not retried again after a second network error (R35)", Mode: twice, Fails: suites.Closes, Attempts: 2, Raises: raisesNetwork},
		{Says: "is not retried after a network error" + off + " (W30)", Fails: suites.Closes, Attempts: 1, Raises: raisesNetworkPlain, By: "noRetry"},
		{Says: "is written once if the reply is lost (W10)", Require: onlySets,
			Points: []string{suites.SetFailPoint(suites.TransactionalWrite, once, "")}, Attempts: 2},
		{Says: "is not written if both attempts fail before the commit (R35)", Require: onlySets,
			Points: []string{suites.SetFailPoint(suites.TransactionalWrite, suites.Always, suites.BeforeCommit)}, Attempts: 2, Raises: raisesNetwork},

		{Says: "is retried after Interrupted with the label " + label + " (W10)", Require: labelling, Fails: policy.Fails(interrupted), Attempts: 2},
		{Says: "is not retried after Interrupted (R34)", Fails: suites.ErrorCode(interrupted), Attempts: 1, Raises: raisesPlain(interrupted)},

		{Says: "is retried after a write concern error with the label " + label + " (W10)", Require: labelling, Fails: concern, Attempts: 2,
			Replied: true},
		{Says: "is not retried again after a second write concern error with the label " + label + " (R35)", Require: labelling,
			Mode: twice, Fails: concern, Attempts: 2, Replied: true, Raises: raisesConcern, Applied: true},
		{Says: "is not retried after a write concern error with the label " + label + off + " (W30)", Require: labelling, By: "noRetry",
			Fails: concern, Attempts: 1, Replied: true, Raises: "{ isClientError: false }", Applied: true},
		{Says: "is not retried after write concern error ShutdownInProgress without a label (R34)", Require: labelling,
			Fails: suites.LabelledConcern(""), Attempts: 1, Replied: true, Raises: raisesConcernPlain, Applied: true},
		{Says: "is not retried after write concern error WriteConcernFailed (R34)",
			Fails: suites.WriteConcernError(suites.WriteConcernFailed), Attempts: 1, Replied: true, Raises: raisesConcernPlain, Applied: true},
	}
	for _, c := range retryable {
		list = append(list, story{Says: "is retried after " + c.Name + " with the label " + label + " (W10)", Require: labelling,
			Fails: policy.Fails(c), Attempts: 2})
	}
	// A code that leaves the server known, one that makes it unknown, and one
	// that clears its pool.
	for _, c := range []suites.Code{suites.HostUnreachable, suites.PrimarySteppedDown, suites.ShutdownInProgress} {
		list = append(list,
			story{Says: "is not retried again after a second " + c.Name + " with the label " + label + " (R35)", Require: labelling,
				Mode: twice, Fails: policy.Fails(c), Attempts: 2, Raises: policy.Raises(c)},
			story{Says: "is not retried after " + c.Name + " without a label (R34)", Require: labelling,
				Fails: suites.Labelled(c), Attempts: 1, Raises: raisesPlain(c)},
			story{Says: "is not retried after " + c.Name + " with the label " + label + off + " (W30)", Require: labelling, By: "noRetry",
				Fails: policy.Fails(c), Attempts: 1, Raises: suites.RaisedCode(c)},
			story{Says: "is retried after " + c.Name + ", which a mongod gives the label to (W10)", Require: suites.Servers("4.4", suites.Sets),
				Fails: suites.ErrorCode(c), Attempts: 2},
		)
	}
	return list
}

// oldStories are told of every operation of a server before 4.4, which gives no
// labels.
func oldStories() []story {
	const old = " of a server before 4.4"
	twice := suites.Times(2)
	var list []story
	for _, c := range retryable {
		list = append(list, story{Says: "is retried after " + c.Name + old + " (W10)", Require: before44, Fails: suites.ErrorCode(c), Attempts: 2})
	}
	for _, c := range []suites.Code{suites.HostUnreachable, suites.PrimarySteppedDown} {
		list = append(list,
			story{Says: "is not retried again after a second " + c.Name + old + " (R35)", Require: before44,
				Mode: twice, Fails: suites.ErrorCode(c), Attempts: 2, Raises: policy.Raises(c)},
			story{Says: "is not retried after " + c.Name + old + off + " (W30)", Require: before44, By: "noRetry",
				Fails: suites.ErrorCode(c), Attempts: 1, Raises: raisesPlain(c)})
	}
	onlyReads, set := suites.ReadConcernMajorityNotAvailableYet, suites.Before44(suites.Sets)
	concern := suites.WriteConcernError(suites.ShutdownInProgress)
	return append(list,
		story{Says: "is not retried after " + onlyReads.Name + old + " (R34)", Require: before44,
			Fails: suites.ErrorCode(onlyReads), Attempts: 1, Raises: raisesPlain(onlyReads)},
		story{Says: "is retried after write concern error ShutdownInProgress of a mongod before 4.4 (W10)", Require: set,
			Fails: concern, Attempts: 2, Replied: true},
		story{Says: "is not retried again after a second write concern error of a mongod before 4.4 (R35)", Require: set,
			Mode: twice, Fails: concern, Attempts: 2, Replied: true, Raises: raisesConcern, Applied: true},
		story{Says: "is not retried after write concern error ShutdownInProgress of a mongos before 4.4 (R34)",
			Require: suites.Before44(suites.Sharded),
			Fails:   concern, Attempts: 1, Replied: true, Raises: raisesConcernPlain, Applied: true},
	)
}
