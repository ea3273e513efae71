package main

// secondaryFiles returns the suite of secondaries.
func secondaryFiles() []*file {
	const insert = "insert: documents, documents: [ { _id: 4 } ]"
	write := func(command string) step { return send(command).preferring("secondary") }
	refused := code{10107, ""}
	hello := func(field string) []step { return []step{send("hello: 1").preferring("secondary").gets(field)} }
	demands := []demand{
		{"a secondary says that it accepts no writes: drivers choose the primary for them (S44)", requirement{},
			hello("isWritablePrimary: false"), nil},
		{"a secondary says that it is one: drivers read from it with such a preference (S44)", requirement{},
			hello("secondary: true"), nil},
		{"a secondary has no electionId: only a primary was elected (S44)", requirement{},
			hello("electionId: { $$exists: false }"), nil},
		{"a secondary states the primary: drivers connect to it (S44)", requirement{},
			hello("primary: { $$type: string }"), nil},
		{"a secondary states setName: drivers remove members of other replica sets (S44)", requirement{},
			hello("setName: { $$type: string }"), nil},
		{"a secondary states lastWrite: drivers compute its staleness from it (S44)", requirement{},
			hello("lastWrite: { lastWriteDate: { $$type: date } }"), nil},
		{"a secondary answers ping: drivers measure the round trip (S44)", requirement{},
			[]step{send("ping: 1").preferring("secondary").gets("")}, nil},
		{"a secondary executes a find with a read preference: it may be a little old (S45)", requirement{},
			[]step{send("find: documents, limit: 1").preferring("secondary").gets("cursor: { id: { $numberLong: \"0\" }, firstBatch: { $$type: array } }")}, nil},
		{"a secondary refuses an insert: the driver looks for the primary (S45)", requirement{},
			[]step{write(insert).failsWithout(refused, nil, labels{writable})}, left(initial()...)},
		{"a secondary refuses an insert with a transaction number, with a label: the driver retries it on the primary (S45)",
			servers("4.4", sets),
			[]step{write(insert).numbered(1).fails(refused, writable)}, left(initial()...)},
		{"a secondary refuses an insert with its topologyVersion: drivers ignore the error if they know a newer state (S45)",
			servers("4.4", sets),
			[]step{write(insert).fails(refused).responds("topologyVersion: { processId: { $$type: objectId }, counter: { $$type: [ int, long ] } }")}, left(initial()...)},
	}
	return []*file{serverFile("secondary", "secondaries", servers("4.4", sets), []string{
		"The replica set must have a secondary, which no requirement can express. The command hello and labels exist since 4.4 (Retryable",
		"Writes, \"RetryableWriteError Labels\")."}, demands)}
}
