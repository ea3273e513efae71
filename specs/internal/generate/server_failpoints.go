package main

// failPointFiles returns the suite of the server's fail points.
func failPointFiles() []*file {
	find := send("find: documents, limit: 1")
	ok, down := find.gets("cursor: { firstBatch: [ { _id: 1, x: 11 } ] }"), find.fails(shutdownInProgress)
	fail := errorCode(shutdownInProgress)
	set := func(mode, data value, commands ...string) step { return do(failPoint(mode, data, commands...)) }
	named := flow("{ name: createEntities, object: testRunner, arguments: { entities: [ " +
		"{ client: { id: named, useMultipleMongoses: false, uriOptions: { appname: utr-named } } }, " +
		"{ database: { id: database-named, client: named, databaseName: " + serverDatabase + " } } ] } }")
	refused := func(says, command string, c code) demand {
		return demand{says, requirement{}, []step{send(command).to("admin").fails(c)}, nil}
	}
	demands := []demand{
		{"failCommand with times 2 fails two commands: a test counts the attempts (S46)", requirement{},
			[]step{set(times(2), fail, "find"), down, down, ok}, nil},
		{"failCommand with skip 1 spares one command: a test fails a later attempt (S46)", requirement{},
			[]step{set(skip(1), fail, "find"), ok, down, down}, nil},
		{"failCommand with alwaysOn fails every command: a test exhausts the retries (S46)", requirement{},
			[]step{set(always, fail, "find"), down, down, down}, nil},
		{"failCommand with off fails none: a test ends it (S46)", requirement{},
			[]step{set(always, fail, "find"), down, set(never, nil), ok}, nil},
		{"failCommand with times 0 fails one command: so does the server (S46)", servers("4.9", monitored),
			[]step{set(times(0), fail, "find"), down}, nil},
		{"failCommand with activationProbability 1 fails every command: it is certain (S46)", servers("4.9", monitored),
			[]step{set(flow("{ activationProbability: 1.0 }"), fail, "find"), down, down}, nil},
		{"failCommand spares commands that it does not name: a test fails one command of an operation (S47)", requirement{},
			[]step{set(always, fail, "find"), send("count: documents").gets("n: 3"), down}, nil},
		{"failCommand fails each of the commands that it names: a test fails an operation of several commands (S47)",
			requirement{},
			[]step{set(always, fail, "find", "ping"), down, send("ping: 1").fails(shutdownInProgress)}, nil},
		{"failCommand with a namespace spares others: tests run beside each other (S47)", servers("4.9", monitored),
			[]step{set(always, merge(fail, doc("namespace", serverDatabase+"."+collection)), "find"),
				send("find: other").gets("cursor: { firstBatch: [] }"), down}, nil},
		{"failCommand with an appName spares other clients: tests run beside each other (S47)", servers("4.4", monitored),
			[]step{set(always, merge(fail, doc("appName", "utr-named")), "find"), ok, do(named),
				find.to("database-named").fails(shutdownInProgress)}, nil},
		{"failCommand with blockTimeMS 0 fails none: it is still a hit (S47)", requirement{},
			[]step{set(times(1), doc("blockConnection", true, "blockTimeMS", 0), "find"), ok}, nil},
		{"failCommand with errorCode executes nothing: the write is not applied (S48)", requirement{},
			[]step{set(times(1), fail, "insert"),
				send("insert: documents, documents: [ { _id: 4 } ]").fails(shutdownInProgress)}, left(initial()...)},
		{"failCommand with writeConcernError executes the command: the write is applied (S48)", requirement{},
			[]step{set(times(1), writeConcernError(shutdownInProgress, "x"), "insert"),
				send("insert: documents, documents: [ { _id: 4 } ]").carries("n: 1, writeConcernError: { code: 91, errmsg: x }")}, left(append(initial(), doc("_id", 4))...)},
		{"failCommand with blockConnection delays the command and executes it: a test waits for a timeout (S48)",
			requirement{},
			[]step{set(times(1), doc("blockConnection", true, "blockTimeMS", 20), "find"), ok}, nil},
		{"failCommand with blockConnection and errorCode delays the error: both effects are seen (S48)", requirement{},
			[]step{set(times(1), merge(doc("blockConnection", true, "blockTimeMS", 20), fail), "find"), down, ok}, nil},
		{"failCommand does not fail configureFailPoint: it could not be ended (S47)", requirement{},
			[]step{set(always, fail, "configureFailPoint", "find"), down, set(never, nil), ok}, nil},
		{"failCommand with errorCode names an unknown code by its number: tests use codes of later versions (S48)",
			requirement{},
			[]step{set(times(1), doc("errorCode", 999999), "find"), find.fails(code{999999, "Location999999"})}, nil},
		refused("configureFailPoint refuses an unknown fail point: a test would wait for nothing (S49)",
			"configureFailPoint: noSuchFailPoint, mode: \"off\"", code{266, "FailPointSetFailed"}),
		refused("configureFailPoint refuses a missing mode: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand", code{20, "IllegalOperation"}),
		refused("configureFailPoint refuses an unknown mode: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand, mode: sometimes", badValue),
		refused("configureFailPoint refuses an unknown field of the mode: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand, mode: { nosuch: 1 }", badValue),
		refused("configureFailPoint refuses negative times: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand, mode: { times: -1 }", badValue),
		refused("configureFailPoint refuses times that are not a number: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand, mode: { times: x }", code{14, "TypeMismatch"}),
		refused("configureFailPoint refuses a probability above 1: it is a mistake of the test (S49)",
			"configureFailPoint: failCommand, mode: { activationProbability: 2.0 }", badValue),
		{"configureFailPoint outside of admin is Unauthorized: it is about the whole server (S49)", requirement{},
			[]step{send("configureFailPoint: failCommand, mode: \"off\"").fails(code{13, "Unauthorized"})}, nil},
	}
	lost := do(setFailPoint(transactionalWrite, times(1), nil))
	insert := send("insert: documents, documents: [ { _id: 4 } ]").numbered(1)
	another := send("insert: documents, documents: [ { _id: 5 } ]").numbered(1)
	written := []demand{
		{"onPrimaryTransactionalWrite applies the write and closes the connection, and a repetition returns the reply: the first one is lost (S50)", requirement{},
			[]step{lost, {Command: insert.Command, Arguments: insert.Arguments, Fails: raisedNetwork},
				insert.gets("n: 1")}, left(append(initial(), doc("_id", 4))...)},
		{"onPrimaryTransactionalWrite spares writes without a transaction number: they are not repeated (S50)", requirement{},
			[]step{lost, send("insert: documents, documents: [ { _id: 4 } ]").gets("n: 1"),
				{Command: another.Command, Arguments: another.Arguments, Fails: raisedNetwork}},
			left(append(initial(), doc("_id", 4), doc("_id", 5))...)},
		{"onPrimaryTransactionalWrite with a code fails before the write is applied: a repetition applies it (S50)",
			requirement{},
			[]step{do(setFailPoint(transactionalWrite, times(1), beforeCommit)),
				{Command: insert.Command, Arguments: insert.Arguments, Fails: raisedNetwork},
				insert.gets("n: 1")}, left(append(initial(), doc("_id", 4))...)},
	}
	tested := func(version string, t topologies) requirement {
		return requirement{min: version, topologies: t, commands: true}
	}
	return []*file{
		serverFile("fail-points", "fail points", tested("4.4", monitored), []string{
			"The server's own fail points, which it has with test commands (Unified Test Format, \"failPoint\"). Fields and modes exist since 4.4",
			"at the latest; those for which recordings of 4.9 are the oldest proof require it."}, demands),
		serverFile("fail-points-writes", "the fail point of lost replies", tested("4.4", sets), []string{
			"A mongod's own fail point (Retryable Writes, \"Test Plan\")."}, written),
	}
}
