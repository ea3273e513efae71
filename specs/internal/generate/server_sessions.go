package main

// sessionFiles returns the suite of session commands.
func sessionFiles() []*file {
	random := `{ id: { $binary: { base64: "AAECAwQFRgeICQoLDA0ODw==", subType: "04" } } }`
	demands := []demand{
		{"ping accepts the id of a session: drivers send it with every command (S12)", requirement{},
			[]step{send("ping: 1").in("session").gets("")}, nil},
		{"insert and find accept the id of a session: drivers send it with every command (S12)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 4 } ]").in("session").gets("n: 1"),
				send("find: documents, filter: { _id: 4 }").in("session").gets("cursor: { firstBatch: [ { _id: 4 } ] }")}, left(append(initial(), doc("_id", 4))...)},
		{"two sessions are used in turn: the server keeps nothing of one for the other (S12)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 4 } ]").in("session").gets("n: 1"),
				send("find: documents, filter: { _id: 4 }").in("another").gets("cursor: { firstBatch: [ { _id: 4 } ] }"),
				send("find: documents, filter: { _id: 4 }").in("session").gets("cursor: { firstBatch: [ { _id: 4 } ] }")}, nil},
		{"startSession returns an id and timeoutMinutes: some clients let the server create sessions (S13)", requirement{},
			[]step{send("startSession: 1").to("admin").gets("id: { id: { $$type: binData } }, timeoutMinutes: { $$type: [ int, long ] }")}, nil},
		{"refreshSessions accepts no sessions: there is nothing to refresh (S13)", requirement{},
			[]step{send("refreshSessions: []").to("admin").gets("")}, nil},
		{"refreshSessions accepts sessions that the server does not know: they begin with their first use (S13)",
			requirement{},
			[]step{send("refreshSessions: [ " + random + " ]").to("admin").gets("")}, nil},
		{"endSessions accepts sessions that the server does not know: drivers send it when they close (S13)", requirement{},
			[]step{send("endSessions: [ " + random + " ]").to("admin").gets("")}, nil},
		{"endSessions accepts no sessions: there is nothing to end (S13)", requirement{},
			[]step{send("endSessions: []").to("admin").gets("")}, nil},
		{"killSessions accepts sessions that the server does not know: another server may know them (S13)", requirement{},
			[]step{send("killSessions: [ " + random + " ]").to("admin").gets("")}, nil},
	}
	for _, name := range []string{"refreshSessions", "endSessions", "killSessions"} {
		demands = append(demands,
			demand{name + " refuses what is not a list: it is a mistake of the client (S14)", servers("5.0", 0),
				[]step{send(name + ": 1").to("admin").fails(code{14, "TypeMismatch"})}, nil},
			demand{name + " refuses a session that is not a document: it is a mistake of the client (S14)", servers("5.0", 0),
				[]step{send(name + ": [ 5 ]").to("admin").fails(code{14, "TypeMismatch"})}, nil},
			demand{name + " refuses a session without an id: it is a mistake of the client (S14)", servers("5.0", 0),
				[]step{send(name + ": [ {} ]").to("admin").fails(code{40414, ""})}, nil})
	}
	for _, name := range []string{"startSession: 1", "refreshSessions: []", "endSessions: []", "killSessions: []"} {
		s := send(name + ", writeConcern: { w: 1 }").to("admin")
		demands = append(demands, demand{s.name() +
			" refuses a write concern: it writes nothing that a client could wait for (S14)", servers("5.0", 0),
			[]step{s.fails(code{72, "InvalidOptions"})}, nil})
	}
	times := "$clusterTime: { clusterTime: { $$type: timestamp }, signature: { $$type: object } }, operationTime: { $$type: timestamp }"
	for _, command := range []string{"ping: 1", "find: documents", "insert: documents, documents: [ { _id: 4 } ]",
		"update: documents, updates: [ { q: { _id: 1 }, u: { $inc: { x: 1 } } } ]", "delete: documents, deletes: [ { q: { _id: 1 }, limit: 1 } ]",
		"findAndModify: documents, query: { _id: 1 }, remove: true", "aggregate: documents, pipeline: [], cursor: {}",
		"distinct: documents, key: x", "count: documents", "listCollections: 1"} {
		s := send(command)
		demands = append(demands, demand{s.name() +
			" returns $clusterTime and operationTime: a later read of the session can be causally consistent (S15)",
			servers("4.2", clusters), []step{s.gets(times)}, nil})
	}
	return []*file{serverFile("sessions", "sessions", servers("4.2", monitored),
		[]string{"Sessions exist since 3.6 (Driver Sessions). How mistakes are refused is shown by recordings of 5.0."},
		demands)}
}
