package main

import (
	"fmt"
)

// tracingDatabase is the database of the suites of spans.
const tracingDatabase = "utr-open-telemetry"

// tracingSuites returns the suites of the spans of attempts (OpenTelemetry specification).
func tracingSuites() specification {
	return specification{Name: "open-telemetry", Files: []*file{readSpans(), writeSpans(), overloadSpans(), cursorSpans(),
		transactionSpans(), payloadSpans()}}
}

// traced returns a client that observes spans, with the text of commands or without.
func traced(id string, options value, payload bool) client {
	return client{ID: id, Options: options, Traced: doc("enableCommandPayload", payload)}
}

func tracingFile(name, description string, require requirement, about ...string) *file {
	f := newFile(name, description, require, about...)
	f.Clients = []client{traced("client", nil, false)}
	return f
}

// try is an attempt: what its span has besides the attributes of every command span.
type try struct {
	code int   // of the error of the server
	lost bool  // no reply
	more value // further attributes
}

var (
	fine       = try{}
	noReply    = try{lost: true}
	failedWith = func(c code) try { return try{code: c.Number} }
)

// namespaced returns the attributes of the namespace of an operation, and its name.
func (o operation) namespaced() (attributes value, name string) {
	attributes, name = doc("db.system.name", "mongodb", "db.namespace", o.Database), o.Database
	if o.Object != "collection" {
		return merge(attributes, doc("db.collection.name", absent)), name
	}
	return merge(attributes, doc("db.collection.name", collection)), name + "." + collection
}

// span returns the span of an operation with the spans of its attempts.
func (o operation) span(tries ...try) value {
	name := o.Command
	if o.Name == "runCommand" {
		name = o.Name
	}
	attributes, namespace := o.namespaced()
	summary := name + " " + namespace
	return spanned(summary, merge(attributes, doc("db.operation.name", name, "db.operation.summary", summary)),
		o.tries(tries...)...)
}

// tries returns the spans of attempts ("Command Span Attributes", "Exceptions").
func (o operation) tries(tries ...try) (spans []value) {
	attributes, namespace := o.namespaced()
	attributes = merge(attributes, doc("db.command.name", o.Command, "db.query.summary", o.Command+" "+namespace,
		"network.transport", "tcp", "server.address", aText, "server.port", anInteger))
	for _, t := range tries {
		failure := doc("db.response.status_code", absent, "exception.message", absent, "exception.type", absent)
		switch {
		case t.code != 0:
			failure = doc("db.response.status_code", quoted(fmt.Sprint(t.code)), "exception.message", aText,
				"exception.type", aText)
		case t.lost:
			failure = doc("db.response.status_code", absent, "exception.message", aText, "exception.type", aText)
		}
		spans = append(spans, spanned(o.Command, merge(attributes, failure, t.more)))
	}
	return spans
}

var (
	aText     = doc("$$type", "string")
	anInteger = doc("$$type", list("int", "long"))
)

// spanned returns a span.
func spanned(name string, attributes value, nested ...value) value {
	v := doc("name", name, "attributes", block(attributes))
	if len(nested) > 0 {
		v = merge(v, doc("nested", block(list(nested...))))
	}
	return block(v)
}

func readSpans() *file {
	f := tracingFile("reads", "the spans of retried reads", servers("4.2", clusters|balanced|single),
		"Each attempt has a span of its own, nested in the span of the operation.")
	f.Clients = append(f.Clients, traced("noReads", doc("retryReads", false), false))
	f.Objects = []string{"collection", "database"}
	for _, title := range []string{"collection.find", "collection.aggregate", "collection.distinct",
		"collection.estimatedDocumentCount",
		"collection.listIndexes", "database.listCollections", "client.listDatabases"} {
		o := titled(readOperations(tracingDatabase), title)
		off := errorCode(shutdownInProgress)
		f.add(o,
			story{Says: "has a span for its only attempt (R6)", Tries: []try{fine}},
			story{Says: "has a span for the retry beside that of the failed attempt (R11)", Fails: off,
				Tries: []try{failedWith(shutdownInProgress), fine}},
			story{Says: "has a span for an attempt without a reply (R10)", Fails: closes, Tries: []try{noReply, fine}},
			story{Says: "has spans of two failed attempts (R35)", Mode: times(2), Fails: off, Raises: raisedCode(shutdownInProgress),
				Tries: []try{failedWith(shutdownInProgress), failedWith(shutdownInProgress)}},
			story{Says: "has one span if retryReads is false (R30)", By: "noReads", Fails: off,
				Raises: raisedCode(shutdownInProgress),
				Tries:  []try{failedWith(shutdownInProgress)}},
			story{Says: "has one span after an error that is not retryable (R34)", Fails: errorCode(badValue),
				Raises: raisedCode(badValue),
				Tries:  []try{failedWith(badValue)}})
	}
	return f
}

func writeSpans() *file {
	f := tracingFile("writes", "the spans of retried writes", labelling,
		"The spans of all attempts have the logical session id and the transaction number of the first one.")
	f.Clients, f.Sessions = append(f.Clients, traced("noWrites", doc("retryWrites", false), false)), true
	in := doc("db.mongodb.lsid", lsid("client"), "db.mongodb.txn_number", 1)
	numbered := func(t try) try { t.more = in; return t }
	for _, title := range []string{"collection.insertOne", "collection.updateOne", "collection.replaceOne",
		"collection.deleteOne",
		"collection.findOneAndUpdate", "collection.findOneAndReplace", "collection.findOneAndDelete",
		"client.clientBulkWrite ordered"} {
		o := titled(writeOperations(tracingDatabase), title)
		stepDown := errorWithLabels(primarySteppedDown, writable)
		for _, s := range []story{
			{Says: "has a span with the transaction number (R6)", With: inSession("client"), Tries: []try{numbered(fine)}},
			{Says: "has a span for the retry with the same transaction number (W10)", With: inSession("client"),
				Fails: stepDown,
				Tries: []try{numbered(failedWith(primarySteppedDown)), numbered(fine)}},
			{Says: "has a span for an attempt without a reply (R10)", With: inSession("client"), Fails: closes,
				Tries: []try{numbered(noReply), numbered(fine)}},
			{Says: "has spans of two failed attempts (W34)", Mode: times(2), Fails: stepDown,
				Raises: raisedCode(primarySteppedDown),
				Tries:  []try{failedWith(primarySteppedDown), failedWith(primarySteppedDown)}},
			{Says: "has one span without a transaction number if retryWrites is false (W30)", By: "noWrites",
				Fails:  stepDown,
				Raises: raisedCode(primarySteppedDown), Tries: []try{{code: primarySteppedDown.Number,
					more: doc("db.mongodb.txn_number", absent)}}},
		} {
			f.add(o, s.requiring(special(o)))
		}
	}
	many := titled(otherWrites(tracingDatabase), "collection.deleteMany")
	f.add(many, story{Says: "has one span after an error (W35)", Fails: errorWithLabels(primarySteppedDown, writable),
		Raises: raisedCode(primarySteppedDown), Tries: []try{failedWith(primarySteppedDown)}})
	return f
}

func overloadSpans() *file {
	f := tracingFile("overload", "the spans of retries after overload errors", labelling,
		"A backoff has no span: it is the time between those of two attempts.")
	f.Sessions = true
	for _, o := range []operation{titled(readOperations(tracingDatabase), "collection.find"),
		titled(writeOperations(tracingDatabase), "collection.insertOne"), titled(otherWrites(tracingDatabase),
			"collection.deleteMany")} {
		f.add(o,
			story{Says: "has three spans after two overload errors (B1)", Mode: times(2), Fails: overload,
				Tries: []try{failedWith(limited), failedWith(limited), fine}},
			story{Says: "has three failed spans if it is not retried again (B4)", Mode: times(3), Fails: overload,
				Raises: raisesOverload,
				Tries:  []try{failedWith(limited), failedWith(limited), failedWith(limited)}})
	}
	return f
}

// cursorSpans expects the getMores of an operation inside its span. The format's find returns all documents.
func cursorSpans() *file {
	f := tracingFile("cursors", "the spans of cursors", servers("4.4", monitored|balanced),
		"The span of a command with a cursor has its id.")
	find := titled(readOperations(tracingDatabase), "collection.find")
	find.Arguments, find.Result = twoBatches, nil
	opened := try{more: doc("db.mongodb.cursor_id", anInteger)}
	f.add(find, story{Says: "has the id of the cursor that it opens (R6)", Tries: []try{opened}},
		story{Says: "has no id of a cursor after an error (R11)", Fails: errorCode(shutdownInProgress),
			Tries: []try{{code: shutdownInProgress.Number, more: doc("db.mongodb.cursor_id", absent)}, opened}})
	for i := range f.Tests {
		f.Tests[i].ExtraSpans = true // where drivers put the spans of getMore is not specified
	}
	return f
}

func transactionSpans() *file {
	f := tracingFile("transactions", "the spans of transactions", labelling,
		"The operations of a transaction are nested in its span.")
	f.Sessions = true
	insert := titled(writeOperations(tracingDatabase), "collection.insertOne")
	find := titled(readOperations(tracingDatabase), "collection.find")
	start, in := onSession("startTransaction", "client"), inSession("client")
	ends := func(name string) operation {
		return operation{Object: "session", Name: name, Command: name, Database: "admin"}
	}
	commit, abort := ends("commitTransaction"), ends("abortTransaction")
	transaction := func(inside ...value) value {
		return spanned("transaction", doc("db.system.name", "mongodb",
			"db.operation.name", absent, "db.namespace", absent), inside...)
	}
	add := func(says string, fails value, spans []value, operations ...value) {
		t := test{Description: says, Client: "client", Spans: spans}
		if fails != nil {
			t.Operations = append(t.Operations, fails)
		}
		t.Operations = append(t.Operations, operations...)
		f.Tests = append(f.Tests, t)
	}
	again := errorWithLabels(primarySteppedDown, writable)
	for _, end := range []operation{commit, abort} {
		add(end.Name+" has a span for its retry (W10)", failPoint(times(1), again, end.Command),
			[]value{transaction(insert.span(fine), end.span(failedWith(primarySteppedDown), fine))},
			start, insert.call("client", in, nil), end.call("client", nil, nil))
		add(end.Name+" of a transaction without operations has no command (R6)", nil,
			[]value{transaction(end.span())}, start, end.call("client", nil, nil))
	}
	for _, r := range []struct {
		first, fails operation
		rule         string
	}{{insert, find, "R31"}, {find, insert, "W31"}} {
		add(r.fails.title()+" in a transaction has one span after an error ("+r.rule+")",
			failPoint(times(1), errorWithLabels(shutdownInProgress), r.fails.Command),
			[]value{transaction(r.first.span(fine), r.fails.span(failedWith(shutdownInProgress)), abort.span(fine))},
			start, r.first.call("client", in, nil), r.fails.call("client", in, raisedCode(shutdownInProgress)),
			abort.call("client", nil, nil))
	}
	find.Result, insert.Result = nil, nil // they differ between tests and attempts
	add("an operation after a transaction is not in its span (R6)", nil,
		[]value{transaction(insert.span(fine), commit.span(fine)), find.span(fine)},
		start, insert.call("client", in, nil), commit.call("client", nil, nil), find.call("client", in, nil))
	transient := errorWithLabels(writeConflict, transientTransaction)
	add("withTransaction has a span for each transaction (T10)", failPoint(times(1), transient, "insert"),
		[]value{transaction(insert.span(failedWith(writeConflict))), transaction(insert.span(fine), commit.span(fine))},
		doc("name", "withTransaction", "object", "session", "arguments",
			doc("callback", list(merge(insert.call("client", in, nil), doc("ignoreResultAndError", true))))))
	f.Tests[len(f.Tests)-1].ExtraSpans = true // of the abort
	return f
}

func payloadSpans() *file {
	f := tracingFile("payload", "the texts of commands in spans", servers("4.2", 0),
		"db.query.text is the command without the fields that drivers add for sessions and routing. Sensitive commands have no span.")
	f.Clients, f.Objects = []client{traced("client", nil, true), traced("brief", nil, false)}, []string{"collection",
		"database"}
	find := titled(readOperations(tracingDatabase), "collection.find")
	sent := doc("db.query.text", doc("$$matchAsDocument", doc("$$matchAsRoot",
		merge(find.Started, doc("lsid", absent, "$db", absent, "$clusterTime", absent)))))
	f.add(find,
		story{Says: "has the text of each attempt (R11)", Fails: errorCode(shutdownInProgress),
			Tries: []try{{code: shutdownInProgress.Number, more: sent}, {more: sent}}},
		story{Says: "has no text without enableCommandPayload (R11)", By: "brief", Fails: errorCode(shutdownInProgress),
			Tries: []try{{code: shutdownInProgress.Number, more: doc("db.query.text", absent)},
				{more: doc("db.query.text", absent)}}})
	secret := operation{Object: "database", Name: "runCommand", Command: "saslStart", Database: tracingDatabase,
		Arguments: flow(
			`{ commandName: saslStart, command: { saslStart: 1, mechanism: none, payload: { $binary: { base64: "", subType: "00" } } } }`)}
	f.Tests = append(f.Tests, test{Description: "a sensitive command has no span (R34)", Client: "client",
		Operations: []value{secret.call("client", nil, anyError)}, Spans: []value{secret.span()}})
	return f
}

// spans returns the expected spans of a client.
func (t test) spans() value {
	v := doc("client", t.Client)
	if t.ExtraSpans {
		v = merge(v, doc("ignoreExtraSpans", true))
	}
	return block(list(block(merge(v, doc("spans", block(list(t.Spans...)))))))
}
