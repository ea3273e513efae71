package main

import (
	"fmt"
	"slices"
	"strings"
)

func overloadSuites() Specification {
	var files []*File
	for _, o := range operations(overloadDatabase) {
		f := Of(o, requirement(o), clients(), overloadStories(o),
			"Every command is retried after an error with both overload labels, up to the limit, unless retryReads or retryWrites",
			"forbids it.")
		if !o.Reads {
			f.Empty = []string{written}
		}
		if o.Before != nil {
			f.Entities = Objects(overloadDatabase, "setup", "database")
		}
		files = append(files, f)
	}
	return Specification{Name: "client-backpressure", Files: append(files, getMore(), watching(), killCursors(), overloadStandalone(), mixed(), otherErrors(), overloadTransactions(), convenient(), retargeting(),
		overloadOtherMongos(), overloadTimeouts(), baseBackoff(), connections(), retries(), sameMongos(), overloadSequences(), commitSequences(),
		establishment(), authentication())}
}

// clients returns a client for each option that disables retries, and one with defaults.
func clients() []Client {
	return []Client{Observed("client", ""), Observed("noReads", "retryReads: false"),
		Observed("noWrites", "retryWrites: false"),
		Observed("none", "maxAdaptiveRetries: 0")}
}

// tell adds a test for each story of each operation with one of these titles.
func tell(f *File, titles []string, stories ...Story) {
	for _, title := range titles {
		f.Tell(named(title), stories...)
	}
}

func overloadStories(o Operation) []Story {
	list := []Story{
		{Says: "is retried twice after overload errors (B1)", Fails: overload, Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", Mode: Always, Fails: overload, Attempts: 3, Raises: raisesOverload},
		{Says: "is not retried with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload, Attempts: 1, Raises: raisesOverload},
		{Says: "is not retried after an error with " + overloaded + " alone (R34)", Fails: overloadedOnly, Attempts: 1, Raises: raisesOverloadedOnly},
		{Says: "is not retried after an error with " + retryable + " alone (R34)", Fails: Labelled(limited, retryable), Attempts: 1,
			Raises: RaisedLabels(limited, retryable, overloaded)},
		{Says: "is not retried after an error without labels (R34)", Fails: Labelled(limited), Attempts: 1,
			Raises: RaisedLabels(limited, "", both)},
	}
	off := func(by, option string) Story {
		return Story{Says: "is not retried after an overload error if " + option + " is false (B3)", By: by, Fails: overload, Attempts: 1,
			Raises: raisesOverload}
	}
	other := func(by, option string) Story {
		return Story{Says: "is retried once after an overload error even if " + option + " is false (B1)", By: by, Fails: overload, Attempts: 2}
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
const (
	twoBatches     = "{ filter: {}, sort: { _id: 1 }, batchSize: 2 }"
	threeDocuments = "[ { _id: 1, x: 11 }, { _id: 2, x: 22 }, { _id: 3, x: 33 } ]"
)

func getMore() *File {
	f := NewFile("getMore", "getMore", anywhere,
		"getMore is not a retryable read, but is retried after overload errors.")
	f.Clients = clients()
	for _, o := range []Operation{
		GetMore("find", overloadDatabase, twoBatches),
		GetMore("aggregate", overloadDatabase, "{ pipeline: [ { $sort: { _id: 1 } } ], batchSize: 2 }"),
	} {
		o.Result = threeDocuments
		f.Tell(o, overloadStories(o)...)
	}
	return f
}

func watching() *File {
	f := NewFile("change-streams", "getMore of a change stream", labelling,
		"A getMore is retried after an overload error. The change stream is not reopened for it.")
	f.Clients = clients()
	f.Entities = Objects(overloadDatabase, "setup", "collection")
	more := iterating(overloadDatabase)
	for _, s := range []Story{
		{Says: "is retried twice after overload errors (B1)", By: "client", Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", By: "client", Mode: Always, Attempts: 3, Raises: raisesOverload},
		{Says: "is not retried after an overload error if retryReads is false (B3)", By: "noReads", Attempts: 1, Raises: raisesOverload},
		{Says: "is not retried after an overload error with maxAdaptiveRetries 0 (B4)", By: "none", Attempts: 1, Raises: raisesOverload},
	} {
		s.Before = opening(s.By)
		s.Fails = overload
		s.Extra = s.Raises == "" // a getMore without documents may follow those that fail
		f.Tell(more, s)
	}
	return f
}

// opening returns operations that open a change stream and cause an event, and iterating the one that returns it.
func opening(by string) []string {
	return []string{
		"{ name: createChangeStream, object: collection" + Suffix(by) + ", arguments: { pipeline: [] }, saveResultAsEntity: stream }",
		"{ name: insertOne, object: collection-setup, arguments: { document: { _id: 4, x: 44 } } }"}
}

func iterating(database string) Operation {
	open := StartedEvent("{ aggregate: "+Collection+", pipeline: [ { $changeStream: {} } ] }", "aggregate", database)
	o := GetMore("find", database, "")
	o.Heading, o.Object, o.Name = "getMore of a change stream", "stream", "iterateUntilDocumentOrError"
	o.Opens = []string{open, SucceededEvent("aggregate")}
	o.Result = "{ operationType: insert, documentKey: { _id: 4 } }"
	return o
}

// killCursors checks events, because the command has no visible result.
func killCursors() *File {
	client := Observed("client", "")
	client.Ignore = []string{"abortTransaction"}
	f := NewFile("killCursors", "killCursors", anywhere,
		"The command that closes a cursor is retried after overload errors, and its errors are not raised.")
	f.Clients = []Client{client}
	kill := closing(overloadDatabase)
	for _, s := range []struct {
		says, mode, data  string
		attempts, failing int
	}{
		{"is retried twice after overload errors (B1)", Times(2), overload, 3, 2},
		{"is retried no more than twice after overload errors (B4)", Always, overload, 3, 3},
		{"is not retried after an error with " + overloaded + " alone (R34)", Times(1), overloadedOnly, 1, 1},
	} {
		f.Tell(kill, Story{Says: s.says, Points: []string{FailPoint("killCursors", s.mode, s.data), openCursor("client")},
			Seen: Cursor("find", overloadDatabase), Then: kill.Attempts(s.attempts, s.failing, "")})
	}
	return f
}

// openCursor returns an operation that opens a find cursor, and closing the one that closes it.
func openCursor(client string) string {
	return "{ name: createFindCursor, object: collection" + Suffix(client) + ", arguments: " + twoBatches + ", saveResultAsEntity: cursor }"
}

func closing(database string) Operation {
	return Operation{Heading: "killCursors", Object: "cursor", Name: "close", Command: "killCursors", Database: database,
		Started: "{ killCursors: " + Collection + " }", Reads: true}
}

func overloadStandalone() *File {
	f := NewFile("standalone", "writes on a standalone", Servers("4.4", Single),
		"A standalone does not support retryable writes, but every command is retried after overload errors.")
	f.Clients = clients()
	for _, o := range operations(overloadDatabase) {
		if o.Carries != numberedOne || o.Since != "" {
			continue
		}
		o.Heading, o.Carries = o.Title()+" on a standalone", Unnumbered
		for _, s := range overloadStories(o) {
			if !strings.HasSuffix(s.Says, "(B4)") || s.Attempts == 1 { // omits the limit, which is the same
				f.Tell(o, s)
			}
		}
		f.Tell(o, Story{Says: fmt.Sprintf("is not retried after HostUnreachable with %s and %s (W32)", overloaded, writable), Attempts: 1,
			Fails: Labelled(HostUnreachable, overloaded, writable), Raises: RaisedCode(HostUnreachable)})
	}
	return f
}

func retries() *File {
	f := NewFile("maxAdaptiveRetries", "maxAdaptiveRetries", labelling,
		"The option replaces the limit of two retries for reads, writes and generic commands.")
	names, often := []string{"one", "two", "three"}, []string{"once", "twice", "three times"}
	f.Clients = nil
	for n, by := range names {
		f.Clients = append(f.Clients, Observed(by, fmt.Sprintf("maxAdaptiveRetries: %d", n+1)))
	}
	for _, title := range []string{"collection.find", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		for n, by := range names {
			f.Tell(named(title), Story{Says: fmt.Sprintf("is retried at most %s with maxAdaptiveRetries %d (B4)", often[n], n+1), By: by,
				Mode: Always, Fails: overload, Raises: raisesOverload, Attempts: n + 2})
		}
		f.Tell(named(title), Story{Says: "is retried three times with maxAdaptiveRetries 3 (B4)", By: "three",
			Fails: overload, Attempts: 4})
	}
	return f
}

const overloadDatabase = "utr-client-backpressure"

const (
	both    = overloaded + ", " + retryable // labels
	written = "written"                     // the collection of aggregations that write
)

// Data of failCommand and expected errors of overload errors with both labels and with one.
var (
	overload             = Labelled(limited, overloaded, retryable)
	overloadedOnly       = Labelled(limited, overloaded)
	raisesOverload       = RaisedLabels(limited, both, "")
	raisesOverloadedOnly = RaisedLabels(limited, overloaded, retryable)
)

// numberedOne expects a retryable write.
const numberedOne = `txnNumber: { $numberLong: "1" }`

// generic reports whether an operation obeys both retryReads and retryWrites.
func generic(o Operation) bool { return o.Name == "runCommand" }

func operations(database string) []Operation {
	list := slices.Concat(carrying(Unnumbered, append(readOperations(database), table("map reduce", database)...)),
		carrying(numberedOne, writeOperations(database)), otherWrites(database), table("commands", database))
	for i, o := range list {
		if generic(o) || o.Object == "bucket" {
			list[i].Carries = ""
		}
	}
	return list
}

func named(title string) Operation { return Named(operations(overloadDatabase), title) }

// anywhere requires a server that supports errorLabels in fail points.
var anywhere = Servers("4.4", "")

func requirement(o Operation) string {
	if o.Carries == numberedOne || o.Watches {
		return labelling
	}
	return anywhere
}

// beyond returns the requirement of an operation, or "" if it is anywhere.
func beyond(o Operation) string {
	if r := requirement(o); r != anywhere || o.Since != "" {
		return r
	}
	return ""
}
