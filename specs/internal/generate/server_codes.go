package main

// codeFiles returns the suite of error codes.
func codeFiles() []*file {
	refusal := func(says string, r requirement, s step) demand { return demand{says, r, []step{s}, nil} }
	missing, invalid := code{26, "NamespaceNotFound"}, code{73, "InvalidNamespace"}
	demands := []demand{
		refusal("an unknown command is CommandNotFound: drivers try an older one (S40)", requirement{},
			send("noSuchCommand: 1").fails(code{59, "CommandNotFound"})),
		refusal("an unknown field of find is refused: an option that is ignored would give a wrong result (S40)",
			servers("5.0", 0),
			send("find: documents, noSuchField: 1").fails(code{40415, ""})),
		refusal("an unknown field of ping is refused: an option that is ignored would give a wrong result (S40)",
			servers("5.0", monitored),
			send("ping: 1, noSuchField: 1").fails(code{40415, ""})),
		refusal("listDatabases outside of admin is Unauthorized: it is about the whole server (S40)", requirement{},
			send("listDatabases: 1").fails(code{13, "Unauthorized"})),
		refusal("find with an unknown operator is BadValue: it is a mistake of the application (S41)", requirement{},
			send("find: documents, filter: { x: { $nosuch: 1 } }").fails(badValue)),
		refusal("find with an unknown operator at the top is BadValue: it is a mistake of the application (S41)",
			requirement{},
			send("find: documents, filter: { $nosuch: 1 }").fails(badValue)),
		refusal("find with a negative limit is refused: drivers send singleBatch instead (S41)", servers("5.0", 0),
			send("find: documents, limit: -1").fails(code{51024, ""})),
		refusal("find with an unknown read concern is FailedToParse: it is a mistake of the application (S41)", requirement{},
			send("find: documents, readConcern: { level: nosuch }").fails(failedToParse)),
		refusal("aggregate with an unknown stage has code 40324: drivers recognize by it what a server lacks (S41)",
			requirement{},
			send("aggregate: documents, pipeline: [ { $nosuch: {} } ], cursor: {}").fails(code{40324, ""})),
		refusal("aggregate without cursor is FailedToParse: its reply could exceed a document (S41)", requirement{},
			send("aggregate: documents, pipeline: []").fails(failedToParse)),
		refusal("listIndexes of no collection is NamespaceNotFound: drivers return an empty list (S42)", requirement{},
			send("listIndexes: nosuch").fails(missing)),
		refusal("dropIndexes of no collection is NamespaceNotFound: drivers ignore it (S42)", requirement{},
			send("dropIndexes: nosuch, index: \"*\"").fails(missing)),
		refusal("dropIndexes of no index is IndexNotFound: it is a mistake of the application (S42)", requirement{},
			send("dropIndexes: documents, index: nosuch").fails(code{27, "IndexNotFound"})),
		refusal("create of an existing collection with other options is NamespaceExists: applications create what is missing (S42)", servers("4.2", single|sets),
			send("create: documents, capped: true, size: 1000").fails(code{48, "NamespaceExists"})),
		refusal("create without a name is InvalidNamespace: it is a mistake of the application (S42)", requirement{},
			send("create: \"\"").fails(invalid)),
		{"dropDatabase of no database succeeds: it is gone either way (S42)", requirement{},
			[]step{send("dropDatabase: 1").to("nosuch").gets("")}, nil},
		{"find in no collection is empty: collections are created by their first document (S42)", requirement{},
			[]step{send("find: nosuch").gets("cursor: { id: { $numberLong: \"0\" }, firstBatch: [] }")}, nil},
		{"count of no collection is 0: collections are created by their first document (S42)", requirement{},
			[]step{send("count: nosuch").gets("n: 0")}, nil},
		{"listCollections of no database is empty: databases are created by their first collection (S42)", requirement{},
			[]step{send("listCollections: 1").to("nosuch").gets("cursor: { id: { $numberLong: \"0\" }, firstBatch: [] }")}, nil},
		{"ping accepts API version 1: drivers declare it if the application does (S43)", servers("5.0", 0),
			[]step{send("ping: 1, apiVersion: \"1\"").gets("")}, nil},
		{"ping accepts API version 1 with apiStrict: it belongs to the version (S43)", servers("5.0", 0),
			[]step{send("ping: 1, apiVersion: \"1\", apiStrict: true, apiDeprecationErrors: true").gets("")}, nil},
		refusal("API version 2 is refused: no server has it (S43)", servers("5.0", 0),
			send("ping: 1, apiVersion: \"2\"").fails(code{322, "APIVersionError"})),
		refusal("apiStrict refuses distinct: it does not belong to API version 1 (S43)", servers("5.0", 0),
			send("distinct: documents, key: x, apiVersion: \"1\", apiStrict: true").fails(code{323, "APIStrictError"})),
		refusal("apiStrict without apiVersion is refused: it has no meaning (S43)", servers("5.0", 0),
			send("ping: 1, apiStrict: true").fails(code{4886600, ""})),
	}
	standalone := []demand{
		refusal("a change stream on a standalone is refused: it has no oplog (S21)", requirement{},
			send("aggregate: documents, pipeline: [ { $changeStream: {} } ], cursor: {}").fails(code{40573, ""})),
		refusal("an unknown mode of w on a standalone is BadValue: it has no members (S39)", requirement{},
			send("insert: documents, documents: [ { _id: 4 } ], writeConcern: { w: nosuch }").fails(badValue)),
		refusal("w 2 on a standalone is BadValue: it has no members (S39)", requirement{},
			send("insert: documents, documents: [ { _id: 4 } ], writeConcern: { w: 2 }").fails(badValue)),
		refusal("replSetGetStatus on a standalone is NoReplicationEnabled: tools recognize it by the code (S40)",
			requirement{},
			send("replSetGetStatus: 1").to("admin").fails(code{76, "NoReplicationEnabled"})),
	}
	f := serverFile("codes", "error codes", servers("4.2", 0), []string{
		"Drivers and applications recognize errors by their codes. The Stable API exists since 5.0 (Stable API For Drivers). That unknown fields",
		"and negative numbers have these codes is shown by recordings of 5.0."}, demands)
	f.Entities = append(f.Entities,
		block(doc("database", doc("id", "nosuch", "client", "client", "databaseName", "utr-server-nosuch"))))
	return []*file{f, serverFile("codes-standalone", "error codes of a standalone", servers("4.2", single), []string{
		"What a standalone does not have."}, standalone)}
}
