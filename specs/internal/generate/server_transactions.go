package main

// transactionFiles returns the suite of transactions.
func transactionFiles() []*file {
	const insert = "insert: documents, documents: [ { _id: 4 } ]"
	const find = "find: documents, filter: { _id: 4 }"
	const found, none = "cursor: { firstBatch: [ { _id: 4 } ] }", "cursor: { firstBatch: [] }"
	began := send(insert).starts(1).gets("n: 1")
	increment := "update: documents, updates: [ { q: { _id: 1 }, u: { $inc: { x: 1 } } } ]"
	committed, same := left(append(initial(), doc("_id", 4))...), left(initial()...)
	committedError, missing := code{256, "TransactionCommitted"}, code{251, "NoSuchTransaction"}
	anyone, replica, routed := requirement{}, servers("4.2", sets), servers("4.2", sharded)
	demands := []demand{
		{"a write of a transaction is seen inside it: it reads its own writes (S29)", anyone,
			[]step{began, send(find).inside(1).gets(found), abort(1).gets("")}, same},
		{"a write of a transaction is not seen outside it before the commit: it may still be aborted (S29)", anyone,
			[]step{began, send(find).gets(none), send(find).in("another").gets(none), abort(1).gets("")}, same},
		{"a write of a transaction is seen after the commit: all of it at once (S29)", anyone,
			[]step{began, commit(1).gets(""), send(find).gets(found)}, committed},
		{"a write of a transaction is gone after the abort: all of it at once (S29)", anyone,
			[]step{began, abort(1).gets(""), send(find).gets(none)}, same},
		{"commitTransaction succeeds twice: its first reply may be lost (S30)", anyone,
			[]step{began, commit(1).gets(""), commit(1).gets("")}, committed},
		{"commitTransaction succeeds a third time: drivers with timeoutMS retry more than once (S30)", anyone,
			[]step{began, commit(1).gets(""), commit(1).gets(""), commit(1).gets("")}, committed},
		{"abortTransaction after the commit is refused: the writes are durable (S30)", anyone,
			[]step{began, commit(1).gets(""), abort(1).fails(committedError)}, committed},
		{"abortTransaction fails the second time: drivers ignore that (S30)", anyone,
			[]step{began, abort(1).gets(""), abort(1).fails(missing, transientTransaction)}, same},
		{"commitTransaction after the abort is refused: drivers repeat the transaction (S30)", anyone,
			[]step{began, abort(1).gets(""), commit(1).fails(missing, transientTransaction)}, same},
		{"a find after the commit is refused: the transaction has ended (S30)", anyone,
			[]step{began, commit(1).gets(""), send(find).inside(1).fails(committedError)}, committed},
		{"a find after the abort is refused: drivers repeat the transaction (S30)", anyone,
			[]step{began, abort(1).gets(""), send(find).inside(1).fails(missing, transientTransaction)}, same},
		{"a transaction that was not started is refused: the server may have lost it (S31)", anyone,
			[]step{send(find).inside(1).fails(missing, transientTransaction)}, same},
		{"a commit of a transaction that was not started is refused: the server may have lost it (S31)", replica,
			[]step{commit(1).fails(missing, transientTransaction)}, same},
		{"a mongos refuses the commit of a transaction that it does not know and without a recovery token: it cannot know the outcome (S31)", routed,
			[]step{commit(1).fails(code{50940, ""})}, same},
		{"a transaction cannot be started twice: a number is one transaction (S31)", anyone,
			[]step{send(find).starts(1).gets(none), send(find).starts(1).fails(code{117, "ConflictingOperationInProgress"}),
				abort(1).gets("")}, same},
		{"the next transaction of a session has a higher number: numbers count its transactions (S31)", anyone,
			[]step{began, commit(1).gets(""), send(increment).starts(2).gets("n: 1, nModified: 1"), commit(2).gets("")},
			left(doc("_id", 1, "x", 12), second, third, doc("_id", 4))},
		{"a higher number aborts the transaction of the session: the driver has given it up (S31)", anyone,
			[]step{began, send(increment).starts(2).gets("n: 1, nModified: 1"), commit(2).gets("")}, left(doc("_id", 1, "x", 12),
				second, third)},
		{"autocommit false without a transaction number is refused: the server could not tell transactions apart (S32)",
			anyone,
			[]step{send(increment + ", autocommit: false").in("session").fails(code{72, "InvalidOptions"})}, same},
		{"startTransaction without autocommit is refused: it would be a retryable write (S32)", anyone,
			[]step{send(increment + ", startTransaction: true").numbered(1).fails(code{72, "InvalidOptions"})}, same},
		{"count is refused in a transaction: drivers count with aggregate (S33)", anyone,
			[]step{send("count: documents").starts(1).fails(code{263, "OperationNotSupportedInTransaction"})}, same},
		{"a write concern inside a transaction is refused: the commit has it (S33)", replica,
			[]step{began, send("insert: documents, documents: [ { _id: 5 } ], writeConcern: { w: 1 }").inside(1).fails(code{72,
				"InvalidOptions"}), abort(1).gets("")}, same},
		{"an error of a statement aborts the transaction: none of it is applied (S34)", anyone,
			[]step{send(insert).starts(1).carries("n: 1"), send("insert: documents, documents: [ { _id: 1 } ]").inside(1).
				carries("n: 0, writeErrors: [ { index: 0, code: 11000, errmsg: { $$type: string } } ]"), commit(1).fails(missing,
				transientTransaction)}, same},
		{"a second transaction that writes the same document fails with a label: drivers repeat it (S34)", anyone,
			[]step{send(increment).starts(1).gets("n: 1, nModified: 1"),
				send(increment+", txnNumber: { $numberLong: \"1\" }, autocommit: false, startTransaction: true").in("another").fails(writeConflict, transientTransaction),
				commit(1).gets("")}, left(doc("_id", 1, "x", 12), second, third)},
		{"replies of a mongos have a recoveryToken: another mongos can find the outcome with it (S35)", routed,
			[]step{send(insert).starts(1).gets("n: 1, recoveryToken: { $$type: object }"),
				commit(1).gets("recoveryToken: { $$type: object }")}, committed},
		{"replies of a replica set have no recoveryToken: only a mongos reads it (S35)", replica,
			[]step{send(insert).starts(1).gets("n: 1, recoveryToken: { $$exists: false }"),
				commit(1).gets("recoveryToken: { $$exists: false }")}, committed},
	}
	refused := []demand{{"a transaction is refused by a standalone: drivers recognize by the code that it has none (S21)",
		requirement{},
		[]step{send(insert).starts(1).fails(code{20, "IllegalOperation"})}, same}}
	return []*file{
		serverFile("transactions", "transactions", servers("4.2", clusters), []string{
			"Transactions exist since 4.0 in replica sets and since 4.2 in sharded clusters (Transactions, \"Transactions Wire Protocol\").",
			"Only a mongos has recovery tokens (\"recoveryToken field\")."}, demands),
		serverFile("transactions-standalone", "transactions on a standalone", servers("4.2", single), []string{
			"A standalone has no transactions (Transactions)."}, refused),
	}
}
