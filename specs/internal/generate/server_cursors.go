package main

import "fmt"

// cursorFiles returns the suites of cursors.
func cursorFiles() []*file {
	const zero = "{ $numberLong: \"0\" }"
	ns := func(name string) string { return fmt.Sprintf("ns: %q", serverDatabase+"."+name) }
	sorted := "find: documents, sort: { _id: 1 }, "
	one, two, three := "{ _id: 1, x: 11 }", "{ _id: 2, x: 22 }", "{ _id: 3, x: 33 }"
	first := func(id, documents string) string {
		return fmt.Sprintf("cursor: { id: %s, firstBatch: [ %s ] }", id, documents)
	}
	refusal := func(says string, r requirement, s step) demand { return demand{says, r, []step{s}, nil} }
	lost := code{43, "CursorNotFound"}
	demands := []demand{
		{"find that returns all documents has cursor id 0: drivers send no getMore (S51)", requirement{},
			[]step{send(sorted + "limit: 0").gets(first(zero, one+", "+two+", "+three))}, nil},
		{"find names its namespace: getMore has the name from it (S51)", requirement{},
			[]step{send("find: documents").gets("cursor: { " + ns("documents") + ", firstBatch: { $$type: array } }")}, nil},
		{"find that finds nothing has cursor id 0: drivers send no getMore (S51)", requirement{},
			[]step{send("find: documents, filter: { _id: 4 }").gets(first(zero, ""))}, nil},
		{"find with limit has cursor id 0: it has returned what was asked for (S51)", requirement{},
			[]step{send(sorted + "limit: 2").gets(first(zero, one+", "+two))}, nil},
		{"find with limit 1 returns one document: drivers send findOne so (S51)", requirement{},
			[]step{send(sorted + "limit: 1").gets(first(zero, one))}, nil},
		{"find with singleBatch has cursor id 0: the client asked for one batch (S51)", requirement{},
			[]step{send(sorted + "batchSize: 2, singleBatch: true").gets(first(zero, one+", "+two))}, nil},
		{"find with batchSize 0 and singleBatch returns nothing: the client asked for one batch (S51)", requirement{},
			[]step{send(sorted + "batchSize: 0, singleBatch: true").gets(first(zero, ""))}, nil},
		{"aggregate that returns all documents has cursor id 0: drivers send no getMore (S51)", requirement{},
			[]step{send("aggregate: documents, pipeline: [ { $sort: { _id: 1 } } ], cursor: {}").gets(first(zero,
				one+", "+two+", "+three))}, nil},
		{"aggregate with $limit has cursor id 0: it has returned what was asked for (S51)", requirement{},
			[]step{send("aggregate: documents, pipeline: [ { $sort: { _id: 1 } }, { $limit: 2 } ], cursor: {}").gets(first(zero,
				one+", "+two))}, nil},
		{"listIndexes has a cursor: drivers iterate it (S51)", requirement{},
			[]step{send("listIndexes: documents").gets("cursor: { id: " + zero + ", " + ns("documents") +
				", firstBatch: [ { v: 2, key: { _id: 1 }, name: _id_ } ] }")}, nil},
		{"listCollections has a cursor of the database: drivers iterate it (S51)", requirement{},
			[]step{send("listCollections: 1, nameOnly: true, filter: { name: documents }").
				gets("cursor: { id: " + zero + ", " + ns("$cmd.listCollections") +
					", firstBatch: [ { name: documents, type: collection } ] }")}, nil},
		{"distinct has no cursor: its reply has all values (S51)", requirement{},
			[]step{send("distinct: documents, key: x").gets("values: [ 11, 22, 33 ], cursor: { $$exists: false }")}, nil},
		refusal("getMore of an unknown cursor is CursorNotFound: drivers raise it, and resume change streams (S52)",
			requirement{},
			send("getMore: { $numberLong: \"1\" }, collection: documents").fails(lost)),
		refusal("getMore of cursor 0 is CursorNotFound: it stands for no cursor (S52)", requirement{},
			send("getMore: { $numberLong: \"0\" }, collection: documents").fails(lost)),
		refusal("getMore without a collection is refused: the client must name the cursor's (S52)", servers("5.0", 0),
			send("getMore: { $numberLong: \"1\" }").fails(code{40414, ""})),
		refusal("getMore with an id of the wrong type is TypeMismatch: ids are 64-bit integers (S52)", servers("5.0", 0),
			send("getMore: a, collection: documents").fails(code{14, "TypeMismatch"})),
		{"killCursors lists cursors that it does not find: they may have ended (S53)", requirement{},
			[]step{send("killCursors: documents, cursors: [ { $numberLong: \"12345\" } ]").
				gets("cursorsKilled: [], cursorsNotFound: [ { $numberLong: \"12345\" } ], cursorsAlive: [], cursorsUnknown: []")}, nil},
		refusal("find with a negative batchSize is refused: no driver sends it (S54)", servers("5.0", 0),
			send("find: documents, batchSize: -1").fails(code{51024, ""})),
		refusal("find with awaitData but not tailable is FailedToParse: only a tailable cursor can wait (S54)", requirement{},
			send("find: documents, awaitData: true").fails(failedToParse)),
		refusal("find with tailable on a plain collection is BadValue: only capped collections keep the order of inserts (S54)", requirement{},
			send("find: documents, tailable: true").fails(badValue)),
		refusal("find with tailable that is not a boolean is TypeMismatch: it is a mistake of the client (S54)",
			servers("5.0", 0),
			send("find: documents, tailable: x").fails(code{14, "TypeMismatch"})),
	}
	f := serverFile("cursors", "cursors", servers("4.2", 0), []string{
		"The life of a cursor (Find, getMore and killCursors Commands). Codes for which recordings of 5.0 are the only proof require it."}, demands)

	opens := func(reply string) value {
		return flow("{ cursor: { id: { $$type: [ int, long ] }, firstBatch: [ " + reply + " ] } }")
	}
	more := func(id, reply string) value {
		return replied("getMore", flow("{ cursor: { id: "+id+", "+ns("documents")+", nextBatch: [ "+reply+" ] } }"))
	}
	iterate := func(command string, size int) []value {
		c := flow("{ " + command + " }")
		arguments := doc("commandName", c.Content[0].Value, "command", c)
		if size > 0 {
			arguments = merge(arguments, doc("batchSize", size))
		}
		return []value{doc("name", "runCursorCommand", "object", "database", "arguments", arguments)}
	}
	live := serverFile("cursors-batches", "batches of cursors", servers("4.2", 0), []string{
		"A driver iterates each cursor to its end, and events show the batches (Find, getMore and killCursors Commands)."}, nil)
	for _, c := range []struct{ name, plain, sized, empty string }{
		{"find", "find: documents, sort: { _id: 1 }", ", batchSize: 2", ", batchSize: 0"},
		{"aggregate", "aggregate: documents, pipeline: [ { $sort: { _id: 1 } } ]", ", cursor: { batchSize: 2 }",
			", cursor: { batchSize: 0 }"},
	} {
		live.seen(c.name+" returns a batch of batchSize documents, and the last getMore has id 0: the cursor has ended (S55)",
			requirement{},
			iterate(c.plain+c.sized, 2), replied(c.name, opens(one+", "+two)), more(zero, three))
		live.seen(c.name+" with batchSize 0 returns no documents, and getMore returns them: the cursor has begun (S55)",
			requirement{},
			iterate(c.plain+c.empty, 0), replied(c.name, opens("")), more(zero, one+", "+two+", "+three))
		live.seen("getMore of "+c.name+" returns a batch of its own batchSize: the id stays until the last one (S55)",
			requirement{},
			iterate(c.plain+c.empty, 2), replied(c.name, opens("")), more("{ $$type: [ int, long ] }", one+", "+two),
			more(zero, three))
	}
	const cursor = "cursor"
	open := block(doc("name", "createFindCursor", "object", "collection", "arguments",
		flow("{ filter: {}, sort: { _id: 1 }, batchSize: 2 }"), "saveResultAsEntity", cursor))
	live.seen("killCursors ends a cursor and lists it: the driver has closed it (S53)", requirement{},
		[]value{open, doc("name", "close", "object", cursor)},
		replied("find", opens(one+", "+two)),
		replied("killCursors", flow("{ cursorsKilled: [ { $$type: [ int, long ] } ], cursorsNotFound: [], cursorsAlive: [], cursorsUnknown: [] }")))

	tail := func(name string) value { return doc("name", name, "object", cursor) }
	tailed := block(doc("name", "createFindCursor", "object", "capped", "arguments",
		flow("{ filter: {}, cursorType: tailable }"), "saveResultAsEntity", cursor))
	made := func(more ...value) []value {
		return append([]value{doc("name", "dropCollection", "object", "database", "arguments", doc("collection", "capped")),
			doc("name", "createCollection", "object", "database", "arguments",
				flow("{ collection: capped, capped: true, size: 100000 }"))}, more...)
	}
	put := func(id int) value {
		return doc("name", "insertOne", "object", "capped", "arguments", doc("document", doc("_id", id)))
	}
	created, inserted := replied("create", doc("ok", 1)), replied("insert", doc("ok", 1, "n", 1))
	empty := replied("getMore", flow("{ cursor: { id: { $$type: [ int, long ] }, nextBatch: [] } }"))
	tailing := serverFile("cursors-tailable", "tailable cursors", servers("4.2", monitored), []string{
		"A tailable cursor outlives its last document (Find, getMore and killCursors Commands)."}, nil)
	tailing.Clients[0].Ignore = []string{"drop"} // it fails if there is no such collection
	tailing.Entities = append(tailing.Entities,
		block(doc("collection", doc("id", "capped", "database", "database", "collectionName", "capped"))))
	tailing.seen("a tailable cursor lives on at the end, and returns documents that are inserted later: it follows the collection (S56)", requirement{},
		made(put(1), tailed, merge(tail("iterateUntilDocumentOrError"), doc("expectResult", doc("_id", 1))),
			tail("iterateOnce"), put(2),
			merge(tail("iterateUntilDocumentOrError"), doc("expectResult", doc("_id", 2)))),
		created, inserted, replied("find", flow("{ cursor: { id: { $$type: [ int, long ] }, firstBatch: [ { _id: 1 } ] } }")),
		empty, inserted,
		replied("getMore", flow("{ cursor: { id: { $$type: [ int, long ] }, nextBatch: [ { _id: 2 } ] } }")))
	tailing.seen("a tailable cursor on an empty collection has id 0: there is no document whose place it could keep (S56)",
		servers("5.0", monitored),
		made(tailed), created, replied("find", flow("{ cursor: { id: "+zero+", firstBatch: [] } }")))
	return []*file{f, live, tailing}
}
