package backpressure

import (
	"fmt"
	"strings"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// Suites are the suites of client backpressure.
func Suites() suites.Specification {
	var files []*suites.File
	for _, o := range operations() {
		f := suites.Of(o, requirement(o), clients(), stories(o),
			"Overload errors make every command retryable, up to the limit and as far as retryReads and retryWrites allow, if they",
			"have both labels.")
		if !o.Reads {
			f.Empty = []string{written}
		}
		if o.Before != nil {
			f.Entities = suites.Objects(databaseName, "setup", "database")
		}
		files = append(files, f)
	}
	return suites.Specification{Name: "client-backpressure", Title: "client backpressure", Package: "backpressure", Database: databaseName,
		Files: append(files, getMore(), watching(), killCursors(), standalone(), mixed(), otherErrors(), transactions(), convenient(), retargeting(),
			otherMongos(), timeouts(), baseBackoff(), connections(), retries(), sameMongos(), sequences(), commitSequences(),
			establishment(), authentication())}
}

// clients are one for each value of the options, which most suites have.
func clients() []suites.Client {
	return []suites.Client{suites.Observed("client", ""), suites.Observed("noReads", "retryReads: false"),
		suites.Observed("noWrites", "retryWrites: false"),
		suites.Observed("none", "maxAdaptiveRetries: 0")}
}

// tell adds a test for each story of each operation with one of these titles.
func tell(f *suites.File, titles []string, stories ...story) {
	for _, title := range titles {
		f.Tell(named(title), stories...)
	}
}

// stories are made for every operation.
func stories(o operation) []story {
	list := []story{
		{Says: "is retried twice after overload errors (B1)", Mode: suites.Times(2), Fails: overload, Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", Mode: suites.Always, Fails: overload, Attempts: 3, Raises: raised},
		{Says: "is not retried with maxAdaptiveRetries 0 (B4)", By: "none", Fails: overload, Attempts: 1, Raises: raised},
		{Says: "is not retried after an error with " + overloaded + " alone (R34)", Fails: overloadedOnly, Attempts: 1, Raises: raisedOnly},
		{Says: "is not retried after an error with " + retryable + " alone (R34)", Fails: suites.Labelled(limited, retryable), Attempts: 1,
			Raises: suites.RaisedLabels(limited, retryable, overloaded)},
		{Says: "is not retried after an error without labels (R34)", Fails: suites.Labelled(limited), Attempts: 1,
			Raises: suites.RaisedLabels(limited, "", both)},
	}
	off := func(by, option string) story {
		return story{Says: "is not retried after an overload error with " + option + " false (B3)", By: by, Fails: overload, Attempts: 1,
			Raises: raised}
	}
	other := func(by, option string) story {
		return story{Says: "is retried once after an overload error with " + option + " false (B1)", By: by, Fails: overload, Attempts: 2}
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

// twoBatches are the arguments of a find with a getMore.
const twoBatches = "{ filter: {}, sort: { _id: 1 }, batchSize: 2 }"

// threeDocuments are the result of a cursor with a getMore.
const threeDocuments = "[ { _id: 1, x: 11 }, { _id: 2, x: 22 }, { _id: 3, x: 33 } ]"

// getMore is retried for overload errors only.
func getMore() *suites.File {
	f := suites.NewFile("getMore", "getMore", anywhere,
		"getMore is no retryable read, and is retried for overload errors all the same.")
	f.Clients = clients()
	for _, o := range []operation{
		suites.GetMore("find", databaseName, twoBatches),
		suites.GetMore("aggregate", databaseName, "{ pipeline: [ { $sort: { _id: 1 } } ], batchSize: 2 }"),
	} {
		o.Reads, o.Result = true, threeDocuments
		for _, s := range stories(o) {
			s.Seen = suites.Cursor(o.Name, databaseName)
			f.Tell(o, s)
		}
	}
	return f
}

// watching has the getMore of a change stream, which is not resumed for an
// error that is retried.
func watching() *suites.File {
	f := suites.NewFile("change-streams", "getMore of a change stream", retrying,
		"An overload error of a getMore is retried; the change stream is not opened anew for it.")
	f.Clients = clients()
	f.Entities = suites.Objects(databaseName, "setup", "collection")
	open := suites.StartedEvent("{ aggregate: "+suites.Collection+", pipeline: [ { $changeStream: {} } ] }", "aggregate", databaseName)
	more := suites.GetMore("find", databaseName, "")
	more.Heading, more.Object, more.Name, more.Reads = "getMore of a change stream", "stream", "iterateUntilDocumentOrError", true
	more.Result = "{ operationType: insert, documentKey: { _id: 4 } }"
	for _, s := range []story{
		{Says: "is retried twice after overload errors (B1)", By: "client", Mode: suites.Times(2), Attempts: 3},
		{Says: "is retried no more than twice after overload errors (B4)", By: "client", Mode: suites.Always, Attempts: 3, Raises: raised},
		{Says: "is not retried after an overload error with retryReads false (B3)", By: "noReads", Attempts: 1, Raises: raised},
		{Says: "is not retried after an overload error with maxAdaptiveRetries 0 (B4)", By: "none", Attempts: 1, Raises: raised},
	} {
		s.Before = []string{
			"{ name: createChangeStream, object: collection" + suites.Suffix(s.By) + ", arguments: { pipeline: [] }, saveResultAsEntity: stream }",
			"{ name: insertOne, object: collection-setup, arguments: { document: { _id: 4, x: 44 } } }"}
		s.Fails, s.Seen = overload, []string{open, suites.SucceededEvent("aggregate")}
		s.Extra = s.Raises == "" // there may be a getMore without the document after those that failed
		f.Tell(more, s)
	}
	return f
}

// killCursors has no result that anybody sees but in events.
func killCursors() *suites.File {
	client := suites.Observed("client", "")
	client.Ignore = []string{"abortTransaction"}
	f := suites.NewFile("killCursors", "killCursors", anywhere,
		"The command that closes a cursor is retried for overload errors, and its errors are not raised.")
	f.Clients = []suites.Client{client}
	kill := operation{Heading: "killCursors", Object: "cursor", Name: "close", Command: "killCursors", Database: databaseName,
		Started: "{ killCursors: " + suites.Collection + " }", Reads: true}
	for _, s := range []struct {
		says, mode, data  string
		attempts, failing int
	}{
		{"is retried twice after overload errors (B1)", suites.Times(2), overload, 3, 2},
		{"is retried no more than twice after overload errors (B4)", suites.Always, overload, 3, 3},
		{"is not retried after an error with " + overloaded + " alone (R34)", suites.Times(1), overloadedOnly, 1, 1},
	} {
		f.Tell(kill, story{Says: s.says, Points: []string{suites.FailPoint("killCursors", s.mode, s.data),
			"{ name: createFindCursor, object: collection, arguments: " + twoBatches + ", saveResultAsEntity: cursor }"},
			Seen: suites.Cursor("find", databaseName), Then: kill.Attempts(s.attempts, s.failing, "")})
	}
	return f
}

// standalone has no retryable writes, and overload retries of writes.
func standalone() *suites.File {
	f := suites.NewFile("standalone", "writes on a standalone", suites.Servers("4.4", suites.Single),
		"A standalone has no retryable writes, but its overload errors are retried: every command is subject to that.")
	f.Clients = clients()
	for _, o := range operations() {
		if o.Carries != numbered || o.Since != "" {
			continue
		}
		o.Heading, o.Carries = o.Title()+" on a standalone", suites.Unnumbered
		for _, s := range stories(o) {
			if !strings.HasSuffix(s.Says, "(B4)") || s.Attempts == 1 { // the limit is the same as elsewhere
				f.Tell(o, s)
			}
		}
		f.Tell(o, story{Says: fmt.Sprintf("is not retried after HostUnreachable with %s and %s (W32)", overloaded, writable), Attempts: 1,
			Fails: suites.Labelled(unreachable, overloaded, writable), Raises: suites.RaisedCode(unreachable)})
	}
	return f
}

// retries are other values of maxAdaptiveRetries.
func retries() *suites.File {
	f := suites.NewFile("maxAdaptiveRetries", "maxAdaptiveRetries", retrying,
		"The option replaces the limit of two retries, for reads, writes and generic commands alike.")
	names := []string{"one", "two", "three"}
	f.Clients = nil
	for n, by := range names {
		f.Clients = append(f.Clients, suites.Observed(by, fmt.Sprintf("maxAdaptiveRetries: %d", n+1)))
	}
	for _, title := range []string{"collection.find", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		for n, by := range names {
			f.Tell(named(title), story{Says: fmt.Sprintf("is retried no more often than maxAdaptiveRetries %d says (B4)", n+1), By: by,
				Mode: suites.Always, Fails: overload, Raises: raised, Attempts: n + 2})
		}
		f.Tell(named(title), story{Says: "is retried three times with maxAdaptiveRetries 3 (B4)", By: "three",
			Mode: suites.Times(3), Fails: overload, Attempts: 4})
	}
	return f
}
