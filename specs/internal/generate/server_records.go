package main

// recordFiles returns the suites of the records that a server keeps of retryable writes.
func recordFiles() []*file {
	const again = ", and the repetition returns the same reply: its first reply may be lost"
	repeated := func(command, reply string) []step {
		s := send(command).numbered(1).gets(reply)
		return []step{s, s}
	}
	carried := func(command, reply string) []step {
		s := send(command).numbered(1).carries(reply)
		return []step{s, s}
	}
	insert := func(ids string) string { return "insert: documents, documents: [ " + ids + " ]" }
	increment := "update: documents, updates: [ { q: { _id: 1 }, u: { $inc: { x: 1 } } } ]"
	four, twelve := doc("_id", 4), doc("_id", 1, "x", 12)
	withFour := left(append(initial(), four)...)
	incremented := left(twelve, second, third)
	duplicate := "writeErrors: [ { index: 0, code: 11000, errmsg: { $$type: string } } ]"
	records := []demand{
		{"insert with a transaction number is executed once" + again + " (S16)", requirement{},
			repeated(insert("{ _id: 4 }"), "n: 1"), withFour},
		{"insert of three documents is executed once" + again + " (S16)", requirement{},
			repeated(insert("{ _id: 4 }, { _id: 5 }, { _id: 6 }"),
				"n: 3"), left(append(initial(), four, doc("_id", 5), doc("_id", 6))...)},
		{"update with $inc is executed once" + again + " (S16)", requirement{}, repeated(increment, "n: 1, nModified: 1"),
			incremented},
		{"update with upsert is executed once" + again + ", with the _id (S16)", requirement{},
			repeated("update: documents, updates: [ { q: { _id: 4 }, u: { $inc: { x: 1 } }, upsert: true } ]",
				"n: 1, nModified: 0, upserted: [ { index: 0, _id: 4 } ]"),
			left(append(initial(), doc("_id", 4, "x", 1))...)},
		{"update of two statements is executed once" + again + " (S16)", requirement{},
			repeated("update: documents, updates: [ { q: { _id: 1 }, u: { $inc: { x: 1 } } }, { q: { _id: 2 }, u: { $inc: { x: 1 } } } ]", "n: 2, nModified: 2"),
			left(twelve, doc("_id", 2, "x", 23), third)},
		{"delete of one document is executed once" + again + " (S16)", requirement{},
			repeated("delete: documents, deletes: [ { q: { x: { $gt: 1 } }, limit: 1 } ]", "n: 1"), nil},
		{"findAndModify returns the document before the update twice, and is executed once: its first reply may be lost (S17)", requirement{},
			repeated("findAndModify: documents, query: { _id: 1 }, update: { $inc: { x: 1 } }",
				"value: { _id: 1, x: 11 }, lastErrorObject: { n: 1, updatedExisting: true }"), incremented},
		{"findAndModify with new returns the document after the update twice, and is executed once: its first reply may be lost (S17)", requirement{},
			repeated("findAndModify: documents, query: { _id: 1 }, update: { $inc: { x: 1 } }, new: true",
				"value: { _id: 1, x: 12 }, lastErrorObject: { n: 1, updatedExisting: true }"), incremented},
		{"findAndModify with remove returns the removed document twice: its first reply may be lost (S17)", requirement{},
			repeated("findAndModify: documents, query: { _id: 1 }, remove: true",
				"value: { _id: 1, x: 11 }, lastErrorObject: { n: 1 }"), left(second, third)},
		{"a third attempt returns the same reply: drivers with timeoutMS retry more than once (S16)", requirement{},
			append(repeated(increment, "n: 1, nModified: 1"),
				send(increment).numbered(1).gets("n: 1, nModified: 1")), incremented},
		{"a repetition that inserts another document is not executed: the number identifies the write, not its content (S16)",
			requirement{},
			[]step{send(insert("{ _id: 4 }")).numbered(1).gets("n: 1"),
				send(insert("{ _id: 5 }")).numbered(1).gets("n: 1")}, withFour},
		{"a delete with the number of an insert is not executed: the number identifies the write, not its content (S16)",
			requirement{},
			[]step{send(insert("{ _id: 4 }")).numbered(1).gets("n: 1"),
				send("delete: documents, deletes: [ { q: { _id: 1 }, limit: 1 } ]").numbered(1).gets("n: 1")}, withFour},
		{"a higher number is a new write: drivers count up with every write of a session (S18)", requirement{},
			[]step{send(increment).numbered(1).gets("n: 1, nModified: 1"),
				send(increment).numbered(2).gets("n: 1, nModified: 1")},
			left(doc("_id", 1, "x", 13), second, third)},
		{"numbers may have gaps: drivers also count commands that never reach the server (S18)", requirement{},
			[]step{send(increment).numbered(3).gets("n: 1, nModified: 1"),
				send(increment).numbered(70).gets("n: 1, nModified: 1")},
			left(doc("_id", 1, "x", 13), second, third)},
		{"another session has its own numbers: they count the writes of one session (S18)", requirement{},
			[]step{send(increment).numbered(1).gets("n: 1, nModified: 1"),
				send(increment + ", txnNumber: { $numberLong: \"1\" }").in("another").gets("n: 1, nModified: 1")},
			left(doc("_id", 1, "x", 13), second, third)},
		{"a session without a number executes the same write twice: there is no record of it (S18)", requirement{},
			[]step{send(increment).in("session").gets("n: 1, nModified: 1"),
				send(increment).in("session").gets("n: 1, nModified: 1")},
			left(doc("_id", 1, "x", 13), second, third)},
		{"a lower number is refused: the driver no longer waits for that write (S18)", servers("4.2", sets),
			[]step{send(increment).numbered(2).gets("n: 1, nModified: 1"),
				send(increment).numbered(1).fails(code{225, "TransactionTooOld"})}, incremented},
		{"a lower number is refused by a mongos as an error of the statement: the driver no longer waits for that write (S18)", servers("4.2", sharded),
			[]step{send(increment).numbered(2).gets("n: 1, nModified: 1"),
				send(increment).numbered(1).carries("n: 0, writeErrors: [ { index: 0, code: 225 } ]")}, incremented},
		{"a negative number is refused: drivers begin with 0 or 1 (S18)", requirement{},
			[]step{send(increment + ", txnNumber: { $numberLong: \"-1\" }").in("session").fails(code{72,
				"InvalidOptions"})}, left(initial()...)},
		{"a number that is not a 64-bit integer is refused: drivers must send that type (S18)", servers("5.0", withRetries),
			[]step{send(increment + ", txnNumber: 7").in("session").fails(code{14, "TypeMismatch"})}, left(initial()...)},
		{"a failed insert is tried again by the repetition: only executed statements are recorded (S19)", requirement{},
			carried(insert("{ _id: 1 }"), "n: 0, "+duplicate), left(initial()...)},
		{"an insert that failed succeeds once the obstacle is gone: only executed statements are recorded (S19)",
			requirement{},
			[]step{send(insert("{ _id: 1 }")).numbered(1).carries("n: 0, " + duplicate),
				send("delete: documents, deletes: [ { q: { _id: 1 }, limit: 1 } ]").gets("n: 1"),
				send(insert("{ _id: 1 }")).numbered(1).gets("n: 1")}, left(doc("_id", 1), second, third)},
		{"an ordered insert stops at its error, also when repeated: the statements before it are executed once (S19)",
			requirement{},
			carried(insert("{ _id: 4 }, { _id: 1 }, { _id: 5 }"),
				"n: 1, writeErrors: [ { index: 1, code: 11000, errmsg: { $$type: string } } ]"), withFour},
		{"an unordered insert continues after its error, also when repeated: all other statements are executed once (S19)",
			requirement{},
			carried(insert("{ _id: 4 }, { _id: 1 }, { _id: 5 }")+", ordered: false",
				"n: 2, writeErrors: [ { index: 1, code: 11000, errmsg: { $$type: string } } ]"),
			left(append(initial(), four, doc("_id", 5))...)},
		{"statements have the ids of stmtIds: a mongos or a driver may split a write into several commands (S19)",
			requirement{},
			[]step{send(insert("{ _id: 4 }") + ", stmtIds: [ 7 ]").numbered(1).gets("n: 1"),
				send(insert("{ _id: 4 }") + ", stmtIds: [ 7 ]").numbered(1).gets("n: 1")}, withFour},
		{"update with multi and a number is refused: the server could not repeat its reply (S20)", requirement{},
			carried("update: documents, updates: [ { q: {}, u: { $inc: { x: 1 } }, multi: true } ]",
				"n: 0, nModified: 0, writeErrors: [ { index: 0, code: 72 } ]"), left(initial()...)},
		{"delete without limit and with a number is refused: the server could not repeat its reply (S20)", requirement{},
			carried("delete: documents, deletes: [ { q: {}, limit: 0 } ]",
				"n: 0, writeErrors: [ { index: 0, code: 72 } ]"), left(initial()...)},
		{"findAndModify with the number of an insert is refused: it has no document to return (S17)",
			servers("4.2", clusters),
			[]step{send(insert("{ _id: 4 }")).numbered(1).gets("n: 1"),
				send("findAndModify: documents, query: { _id: 1 }, update: { $inc: { x: 1 } }").numbered(1).fails(code{40608,
					""})}, withFour},
	}
	for _, command := range []string{"find: documents", "aggregate: documents, pipeline: [], cursor: {}",
		"count: documents", "distinct: documents, key: x",
		"create: other", "drop: other", "createIndexes: documents, indexes: [ { key: { x: 1 }, name: x_1 } ]", "listCollections: 1", "listIndexes: documents",
		"getMore: { $numberLong: \"9\" }, collection: documents", "killCursors: documents, cursors: [ { $numberLong: \"9\" } ]"} {
		s := send(command).numbered(1).fails(code{50768, ""})
		records = append(records, demand{s.name() +
			" with a transaction number is refused: it is not a retryable write (S20)", servers("5.0", clusters),
			[]step{s}, nil})
	}
	var refused []demand
	for _, command := range []string{insert("{ _id: 4 }"), increment,
		"delete: documents, deletes: [ { q: { _id: 1 }, limit: 1 } ]",
		"findAndModify: documents, query: { _id: 1 }, remove: true"} {
		s := send(command).numbered(1).fails(code{20, "IllegalOperation"})
		refused = append(refused, demand{s.name() +
			" with a transaction number is refused by a standalone: drivers recognize by it that writes cannot be retried (S21)",
			requirement{}, []step{s}, left(initial()...)})
	}
	return []*file{
		serverFile("records", "records of retryable writes", servers("4.2", withRetries),
			[]string{"A server remembers each write with a transaction number by session, number and statement, and executes it once (Retryable",
				"Writes). That a number must have the right type and that reads are refused is shown by recordings of 5.0."}, records),
		serverFile("records-standalone", "retryable writes on a standalone", servers("4.2", single),
			[]string{"A standalone has no oplog, and so no records (Retryable Writes, \"Supported Server Versions\")."},
			refused),
	}
}
