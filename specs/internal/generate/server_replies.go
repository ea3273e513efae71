package main

// replyFiles returns the suite of the replies of writes.
func replyFiles() []*file {
	add := "u: { $inc: { x: 1 } }"
	modify := "findAndModify: documents, query: { _id: 1 }, "
	duplicate := "{ index: 0, code: 11000, errmsg: { $$type: string } }"
	demands := []demand{
		{"insert returns n: drivers add it up (S36)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 4 }, { _id: 5 } ]").gets("n: 2")}, left(append(initial(),
				doc("_id", 4), doc("_id", 5))...)},
		{"insert stops at the first error: it is ordered unless the client says otherwise (S37)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 1 }, { _id: 4 } ]").carries("n: 0, writeErrors: [ " + duplicate +
				" ]")}, left(initial()...)},
		{"insert with ordered false continues after an error: drivers report all errors (S37)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 1 }, { _id: 4 } ], ordered: false").carries("n: 1, writeErrors: [ " + duplicate + " ]")},
			left(append(initial(), doc("_id", 4))...)},
		{"an error of a duplicate key has the key: drivers hand it to applications (S37)", servers("4.9", single|sets),
			[]step{send("insert: documents, documents: [ { _id: 1 } ]").
				carries("n: 0, writeErrors: [ { index: 0, code: 11000, keyPattern: { _id: 1 }, keyValue: { _id: 1 }, errmsg: { $$type: string } } ]")}, left(initial()...)},
		{"update returns n and nModified: drivers add them up (S36)", requirement{},
			[]step{send("update: documents, updates: [ { q: { _id: 1 }, " + add +
				" } ]").gets("n: 1, nModified: 1")}, left(doc("_id", 1, "x", 12), second, third)},
		{"update without multi changes one document: drivers send updateOne so (S36)", requirement{},
			[]step{send("update: documents, updates: [ { q: { x: 11 }, " + add +
				" } ]").gets("n: 1, nModified: 1")}, left(doc("_id", 1, "x", 12), second, third)},
		{"update with multi changes all documents: drivers send updateMany so (S36)", requirement{},
			[]step{send("update: documents, updates: [ { q: {}, " + add + ", multi: true } ]").gets("n: 3, nModified: 3")},
			left(doc("_id", 1, "x", 12), doc("_id", 2, "x", 23), doc("_id", 3, "x", 34))},
		{"update with upsert returns the index and the _id: drivers hand them to applications (S36)", requirement{},
			[]step{send("update: documents, updates: [ { q: { _id: 4 }, " + add +
				", upsert: true } ]").gets("n: 1, nModified: 0, upserted: [ { index: 0, _id: 4 } ]")},
			left(append(initial(), doc("_id", 4, "x", 1))...)},
		{"update with an unknown operator is an error of the statement: others are executed (S37)", requirement{},
			[]step{send("update: documents, updates: [ { q: { _id: 1 }, u: { $nosuch: { x: 1 } } } ]").
				carries("n: 0, nModified: 0, writeErrors: [ { index: 0, code: 9, errmsg: { $$type: string } } ]")}, left(initial()...)},
		{"update of the _id is an error of the statement: the _id of a document stays the same (S37)", requirement{},
			[]step{send("update: documents, updates: [ { q: { _id: 1 }, u: { _id: 2 } } ]").
				carries("n: 0, nModified: 0, writeErrors: [ { index: 0, code: 66, errmsg: { $$type: string } } ]")}, left(initial()...)},
		{"delete returns n: drivers add it up (S36)", requirement{},
			[]step{send("delete: documents, deletes: [ { q: { _id: 1 }, limit: 1 } ]").gets("n: 1")}, left(second, third)},
		{"delete with limit 0 removes all documents: drivers send deleteMany so (S36)", requirement{},
			[]step{send("delete: documents, deletes: [ { q: {}, limit: 0 } ]").gets("n: 3")}, left()},
		{"delete with another limit is refused: no driver sends it (S38)", requirement{},
			[]step{send("delete: documents, deletes: [ { q: { _id: 1 }, limit: 2 } ]").fails(failedToParse)}, left(initial()...)},
		{"insert without documents is refused: no driver sends it (S38)", requirement{},
			[]step{send("insert: documents, documents: []").fails(code{16, "InvalidLength"})}, left(initial()...)},
		{"findAndModify returns the document before the update: drivers hand it to applications (S36)", requirement{},
			[]step{send(modify + "update: { $inc: { x: 1 } }").gets("value: { _id: 1, x: 11 }, lastErrorObject: { n: 1, updatedExisting: true }")},
			left(doc("_id", 1, "x", 12), second, third)},
		{"findAndModify with new returns the document after the update: drivers hand it to applications (S36)", requirement{},
			[]step{send(modify + "update: { $inc: { x: 1 } }, new: true").gets("value: { _id: 1, x: 12 }, lastErrorObject: { n: 1, updatedExisting: true }")},
			left(doc("_id", 1, "x", 12), second, third)},
		{"findAndModify that finds nothing returns null: drivers return no document (S36)", requirement{},
			[]step{send("findAndModify: documents, query: { _id: 4 }, update: { $inc: { x: 1 } }").
				gets("value: null, lastErrorObject: { n: 0, updatedExisting: false }")}, left(initial()...)},
		{"findAndModify with remove returns the removed document: drivers hand it to applications (S36)", requirement{},
			[]step{send(modify + "remove: true").gets("value: { _id: 1, x: 11 }, lastErrorObject: { n: 1 }")}, left(second,
				third)},
		{"findAndModify with upsert returns the _id: drivers hand it to applications (S36)", requirement{},
			[]step{send("findAndModify: documents, query: { _id: 4 }, update: { x: 1 }, upsert: true, new: true").
				gets("value: { _id: 4, x: 1 }, lastErrorObject: { n: 1, updatedExisting: false, upserted: 4 }")}, left(append(initial(), doc("_id", 4, "x", 1))...)},
		{"findAndModify without an update is refused: it is a mistake of the client (S38)", requirement{},
			[]step{send("findAndModify: documents, query: { _id: 1 }").fails(failedToParse)}, left(initial()...)},
		{"insert with w majority returns no writeConcernError: the write is on most members (S39)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 4 } ], writeConcern: { w: majority }").gets("n: 1, writeConcernError: { $$exists: false }")},
			left(append(initial(), doc("_id", 4))...)},
		{"insert with an unknown mode of w is applied and returns a writeConcernError: drivers report both (S39)",
			servers("4.2", clusters),
			[]step{send("insert: documents, documents: [ { _id: 4 } ], writeConcern: { w: nosuch }").
				carries("n: 1, writeConcernError: { code: 79, errmsg: { $$type: string } }")}, left(append(initial(),
				doc("_id", 4))...)},
		{"insert with w 99 is refused: no replica set has as many members (S39)", requirement{},
			[]step{send("insert: documents, documents: [ { _id: 4 } ], writeConcern: { w: 99 }").fails(failedToParse)}, left(initial()...)},
	}
	return []*file{serverFile("writes", "replies of writes", servers("4.2", monitored),
		[]string{"Drivers compute their results from these fields (CRUD). The key of a duplicate is shown by recordings of 4.9 and 5.0."}, demands)}
}
