package writes

import "github.com/unified-test-runner/utr/specs/internal/suites"

// off ends what stories of a client with retryWrites false say.
const off = " with retryWrites false"

// stories are made for every operation.
func stories() []story {
	interrupted, concern := suites.Interrupted, suites.LabelledConcern(label)
	const labelled = "write concern error with the label " + label
	list := []story{
		{Says: "succeeds at the first attempt (R6)", Attempts: 1},
		{Says: "carries no transaction number" + off + " (R6)", Attempts: 1, By: "noRetry"},
		suites.Retried("a network error (W10)", suites.Closes),
		suites.Twice("network error (R35)", suites.Closes, raisesNetwork),
		suites.NotRetried("a network error"+off+" (W30)", suites.Closes, raisesNetworkPlain).Of("noRetry"),
		{Says: "is written once if the reply is lost (W10)", Require: onlySets,
			Points: []string{suites.SetFailPoint(suites.TransactionalWrite, suites.Times(1), "")}, Attempts: 2},
		{Says: "is not written if both attempts fail before the commit (R35)", Require: onlySets,
			Points: []string{suites.SetFailPoint(suites.TransactionalWrite, suites.Always, suites.BeforeCommit)}, Attempts: 2, Raises: raisesNetwork},

		suites.Retried("Interrupted with the label "+label+" (W10)", policy.Fails(interrupted)).On(labelling),
		suites.NotRetried("Interrupted (R34)", suites.ErrorCode(interrupted), raisesPlain(interrupted)),

		suites.Retried("a "+labelled+" (W10)", concern).Concerned().On(labelling),
		suites.Twice(labelled+" (R35)", concern, raisesConcern).Concerned().On(labelling),
		suites.NotRetried("a "+labelled+off+" (W30)", concern, "{ isClientError: false }").Concerned().On(labelling).Of("noRetry"),
		suites.NotRetried("write concern error ShutdownInProgress without a label (R34)", suites.LabelledConcern(""), raisesConcernPlain).
			Concerned().On(labelling),
		suites.NotRetried("write concern error WriteConcernFailed (R34)", suites.WriteConcernError(suites.WriteConcernFailed), raisesConcernPlain).
			Concerned(),
	}
	with := func(c suites.Code) string { return c.Name + " with the label " + label }
	for _, c := range retryable {
		list = append(list, suites.Retried(with(c)+" (W10)", policy.Fails(c)).On(labelling))
	}
	// A code that leaves the server known, one that makes it unknown, and one
	// that clears its pool.
	for _, c := range []suites.Code{suites.HostUnreachable, suites.PrimarySteppedDown, suites.ShutdownInProgress} {
		list = append(list,
			suites.Twice(with(c)+" (R35)", policy.Fails(c), policy.Raises(c)).On(labelling),
			suites.NotRetried(c.Name+" without a label (R34)", suites.Labelled(c), raisesPlain(c)).On(labelling),
			suites.NotRetried(with(c)+off+" (W30)", policy.Fails(c), suites.RaisedCode(c)).On(labelling).Of("noRetry"),
			suites.Retried(c.Name+", which a mongod gives the label to (W10)", suites.ErrorCode(c)).On(suites.Servers("4.4", suites.Sets)))
	}
	return list
}

// oldStories are made for every operation of a server before 4.4, which gives no
// labels.
func oldStories() []story {
	const old = " of a server before 4.4"
	var list []story
	for _, c := range retryable {
		list = append(list, suites.Retried(c.Name+old+" (W10)", suites.ErrorCode(c)).On(before44))
	}
	for _, c := range []suites.Code{suites.HostUnreachable, suites.PrimarySteppedDown} {
		list = append(list,
			suites.Twice(c.Name+old+" (R35)", suites.ErrorCode(c), policy.Raises(c)).On(before44),
			suites.NotRetried(c.Name+old+off+" (W30)", suites.ErrorCode(c), raisesPlain(c)).On(before44).Of("noRetry"))
	}
	onlyReads, set := suites.ReadConcernMajorityNotAvailableYet, suites.Before44(suites.Sets)
	concern := suites.WriteConcernError(suites.ShutdownInProgress)
	return append(list,
		suites.NotRetried(onlyReads.Name+old+" (R34)", suites.ErrorCode(onlyReads), raisesPlain(onlyReads)).On(before44),
		suites.Retried("write concern error ShutdownInProgress of a mongod before 4.4 (W10)", concern).Concerned().On(set),
		suites.Twice("write concern error of a mongod before 4.4 (R35)", concern, raisesConcern).Concerned().On(set),
		suites.NotRetried("write concern error ShutdownInProgress of a mongos before 4.4 (R34)", concern, raisesConcernPlain).Concerned().
			On(suites.Before44(suites.Sharded)))
}
