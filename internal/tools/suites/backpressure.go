package main

import (
	"fmt"
	"slices"
	"strings"
)

func overloadSuites() specification {
	var files []*file
	for _, o := range overloadOperations {
		f := operationFile(o, requirementOf(o), clients(), overloadStories(o),
			"Every command is retried after an error with both overload labels, up to the limit, unless retryReads or retryWrites",
			"forbids it.")
		if !o.Reads {
			f.Empty = []string{written}
		}
		if o.Before != nil {
			f.Entities = objectEntities(overloadDatabase, "setup", "database")
		}
		files = append(files, f)
	}
	files = append(files, getMore(), watching(), killCursors(), overloadStandalone(), otherErrors(),
		convenient(), retargeting(), overloadOtherMongos(), baseBackoff(), connections(), retries(),
		sameMongos(), commitSequences(), establishment(), authentication())
	return specification{Name: "client-backpressure", Files: slices.Concat(files, overloadTransactions(),
		overloadTimeouts().divide(operationOf), overloadSequences().divide(operationOf), mixed().divide(operationOf))}
}

// clients returns a client for each option that disables retries, and one with defaults.
func clients() []client {
	return []client{observed("client", nil), observed("noReads", doc("retryReads", false)),
		observed("noWrites", doc("retryWrites", false)),
		observed("none", doc("maxAdaptiveRetries", 0))}
}

// tell adds a test for each story of each operation with one of these titles.
func tell(f *file, titles []string, stories ...story) {
	for _, title := range titles {
		f.add(named(title), stories...)
	}
}

func overloadStories(o operation) []story {
	list := []story{
		{Says: "is retried twice after overload errors (B1)", Fails: overload, Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", Mode: always, Fails: overload, Attempts: 3,
			Raises: raisesOverload},
		{Says: "is not retried with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload, Attempts: 1,
			Raises: raisesOverload},
		{Says: "is not retried after an error with " + overloaded + " alone (R34)", Fails: overloadedOnly, Attempts: 1,
			Raises: raisesOverloadedOnly},
		{Says: "is not retried after an error with " + retryable + " alone (R34)", Fails: errorWithLabels(limited, retryable),
			Attempts: 1,
			Raises:   raisedLabels(limited, labels{retryable}, labels{overloaded})},
		{Says: "is not retried after an error without labels (R34)", Fails: errorWithLabels(limited), Attempts: 1,
			Raises: raisedLabels(limited, nil, both)},
	}
	off := func(by, option string) story {
		return story{Says: "is not retried after an overload error if " + option + " is false (B3)", By: by, Fails: overload,
			Attempts: 1,
			Raises:   raisesOverload}
	}
	other := func(by, option string) story {
		return story{Says: "is retried once after an overload error even if " + option + " is false (B1)", By: by,
			Fails: overload, Attempts: 2}
	}
	switch {
	case generic(o):
		return append(list, off("noReads", "retryReads"), off("noWrites", "retryWrites"))
	case o.Reads:
		return append(list, off("noReads", "retryReads"), other("noWrites", "retryWrites"))
	default:
		return append(list, off("noWrites", "retryWrites"), other("noReads", "retryReads"))
	}
}

// Arguments and result of a find with a getMore.
var (
	twoBatches     = flow("{ filter: {}, sort: { _id: 1 }, batchSize: 2 }")
	threeDocuments = list(initial()...)
)

func getMore() *file {
	f := newFile("getMore", "getMore", anywhere, "getMore is not a retryable read, but is retried after overload errors.")
	f.Clients = clients()
	for _, o := range []operation{
		getMoreOf("find", overloadDatabase, twoBatches),
		getMoreOf("aggregate", overloadDatabase, flow("{ pipeline: [ { $sort: { _id: 1 } } ], batchSize: 2 }")),
	} {
		o.Result = threeDocuments
		f.add(o, overloadStories(o)...)
	}
	return f
}

func watching() *file {
	f := newFile("change-streams", "getMore of a change stream", labelling,
		"A getMore is retried after an overload error. The change stream is not reopened for it.")
	f.Clients = clients()
	f.Entities = objectEntities(overloadDatabase, "setup", "collection")
	more := iterating(overloadDatabase)
	for _, s := range []story{
		{Says: "is retried twice after overload errors (B1)", By: "client", Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", By: "client", Mode: always, Attempts: 3,
			Raises: raisesOverload},
		{Says: "is not retried after an overload error if retryReads is false (B3)", By: "noReads", Attempts: 1,
			Raises: raisesOverload},
		{Says: "is not retried after an overload error with maxAdaptiveRetries 0 (B4)", By: "none", Attempts: 1,
			Raises: raisesOverload},
	} {
		s.Before = opening(s.By)
		s.Fails = overload
		s.Extra = s.Raises == nil // a getMore without documents may follow the failing ones
		f.add(more, s)
	}
	return f
}

// opening returns operations that open a change stream and cause an event, and iterating the one that returns it.
func opening(by string) []value {
	return []value{
		doc("name", "createChangeStream", "object", "collection"+suffix(by), "arguments", flow("{ pipeline: [] }"),
			"saveResultAsEntity", "stream"),
		flow("{ name: insertOne, object: collection-setup, arguments: { document: { _id: 4, x: 44 } } }")}
}

func iterating(database string) operation {
	open := startedEvent(doc("aggregate", collection, "pipeline", flow("[ { $changeStream: {} } ]")),
		"aggregate", database)
	o := getMoreOf("find", database, nil)
	o.Heading, o.Object, o.Name = "getMore of a change stream", "stream", "iterateUntilDocumentOrError"
	o.Opens = []value{open, succeededEvent("aggregate")}
	o.Result = flow("{ operationType: insert, documentKey: { _id: 4 } }")
	return o
}

// killCursors checks events, because the command has no visible result.
func killCursors() *file {
	c := observed("client", nil)
	c.Ignore = []string{"abortTransaction"}
	f := newFile("killCursors", "killCursors", anywhere,
		"The command that closes a cursor is retried after overload errors, and its errors are not raised.")
	f.Clients = []client{c}
	kill := closing(overloadDatabase)
	for _, s := range []struct {
		says              string
		mode, data        value
		attempts, failing int
	}{
		{"is retried twice after overload errors (B1)", times(2), overload, 3, 2},
		{"is retried no more than twice after overload errors (B4)", always, overload, 3, 3},
		{"is not retried after an error with " + overloaded + " alone (R34)", times(1), overloadedOnly, 1, 1},
	} {
		f.add(kill, story{Says: s.says, Points: []value{failPoint(s.mode, s.data, "killCursors"), openCursor("client")},
			Seen: cursorEvents("find", overloadDatabase), Then: kill.attempts(s.attempts, s.failing, nil)})
	}
	return f
}

// openCursor returns an operation that opens a find cursor, and closing the one that closes it.
func openCursor(client string) value {
	return doc("name", "createFindCursor", "object", "collection"+suffix(client), "arguments", twoBatches,
		"saveResultAsEntity", "cursor")
}

func closing(database string) operation {
	return operation{Heading: "killCursors", Object: "cursor", Name: "close", Command: "killCursors", Database: database,
		Started: doc("killCursors", collection), Reads: true}
}

func overloadStandalone() *file {
	f := newFile("standalone", "writes on a standalone", servers("4.4", single),
		"A standalone does not support retryable writes, but every command is retried after overload errors.")
	f.Clients = clients()
	for _, o := range overloadOperations {
		if o.Carries != numberedOne || o.Since != "" {
			continue
		}
		o.Heading, o.Carries = o.title()+" on a standalone", unnumbered
		for _, s := range overloadStories(o) {
			if !strings.HasSuffix(s.Says, "(B4)") || s.Attempts == 1 { // omits the limit, which is the same
				f.add(o, s)
			}
		}
		f.add(o, story{Says: fmt.Sprintf("is not retried after HostUnreachable with %s and %s (W32)", overloaded, writable),
			Attempts: 1,
			Fails:    errorWithLabels(hostUnreachable, overloaded, writable), Raises: raisedCode(hostUnreachable)})
	}
	return f
}

func retries() *file {
	f := newFile("maxAdaptiveRetries", "maxAdaptiveRetries", labelling,
		"The option replaces the limit of two retries for reads, writes and generic commands.")
	names, often := []string{"one", "two", "three"}, []string{"once", "twice", "three times"}
	f.Clients = nil
	for n, by := range names {
		f.Clients = append(f.Clients, observed(by, doc("maxAdaptiveRetries", n+1)))
	}
	for _, title := range []string{"collection.find", "collection.insertOne", "collection.updateMany",
		"database.runCommand with ping"} {
		for n, by := range names {
			f.add(named(title), story{Says: fmt.Sprintf("is retried at most %s with maxAdaptiveRetries %d (B4)", often[n], n+1),
				By:   by,
				Mode: always, Fails: overload, Raises: raisesOverload, Attempts: n + 2})
		}
		f.add(named(title), story{Says: "is retried three times with maxAdaptiveRetries 3 (B4)", By: "three",
			Fails: overload, Attempts: 4})
	}
	return f
}

const overloadDatabase = "utr-client-backpressure"

const written = collection + "-written" // the collection of aggregations that write

// both are the labels of a retryable overload error.
var both = labels{overloaded, retryable}

// Data of failCommand, and expected errors, for overload errors with both labels and with one.
var (
	overload             = errorWithLabels(limited, overloaded, retryable)
	overloadedOnly       = errorWithLabels(limited, overloaded)
	raisesOverload       = raisedLabels(limited, both, nil)
	raisesOverloadedOnly = raisedLabels(limited, labels{overloaded}, labels{retryable})
)

// numberedOne expects a retryable write.
var numberedOne = doc("txnNumber", long(1))

// generic reports whether both retryReads and retryWrites apply to an operation.
func generic(o operation) bool { return o.Name == "runCommand" }

func operations(database string) []operation {
	list := slices.Concat(carrying(unnumbered, append(readOperations(database), table("map reduce", database)...)),
		carrying(numberedOne, writeOperations(database)), otherWrites(database), table("commands", database))
	for i, o := range list {
		if generic(o) || o.Object == "bucket" {
			list[i].Carries = nil
		}
	}
	return list
}

// overloadOperations returns the operations of the suites. They are never modified.
var overloadOperations = operations(overloadDatabase)

func named(title string) operation { return titled(overloadOperations, title) }

// anywhere requires a server that supports errorLabels in fail points.
var anywhere = servers("4.4", 0)

func requirementOf(o operation) requirement {
	if o.Carries == numberedOne || o.Watches {
		return labelling
	}
	return anywhere
}

// beyond returns the requirement of an operation, or no requirement if it is anywhere.
func beyond(o operation) requirement {
	if r := requirementOf(o); r != anywhere || o.Since != "" {
		return r
	}
	return requirement{}
}
