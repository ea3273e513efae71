package backpressure

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/specs/internal/suites"
)

// Suites are the suites of client backpressure.
func Suites() suites.Specification {
	var files []*suites.File
	for _, o := range operations() {
		files = append(files, ofOperation(o))
	}
	files = append(files, getMore(), watching(), killCursors(), standalone(), mixed(), otherErrors(), transactions(), convenient(), retargeting(), otherMongos(),
		timeouts(), baseBackoff(), connections(), retries(), sameMongos(), sequences(), commitSequences(), establishment(), authentication())
	for _, f := range files {
		f.Database = databaseName
	}
	return suites.Specification{Name: "client-backpressure", Package: "backpressure", Files: files}
}

func objects(client string, kinds ...string) []string {
	return suites.Objects(databaseName, client, kinds...)
}

// The clients that most suites have.
func clients() []suites.Client {
	return []suites.Client{suites.SetupClient(), suites.PlainClient(),
		suites.Observed("noReads", "{ retryReads: false }"), suites.Observed("noWrites", "{ retryWrites: false }"),
		suites.Observed("none", "{ maxAdaptiveRetries: 0 }")}
}

// story is what can happen to an operation.
type story struct {
	says, rule string
	by         string
	mode       string // of the fail point
	data       string
	attempts   int
	raises     string // "" for a success
}

func stories(o operation) []story {
	always, once := suites.Always, suites.Times(1)
	list := []story{
		{"is retried twice after overload errors", "B1", "client", suites.Times(2), overload(), 3, ""},
		{"is retried no more than twice after overload errors", "B4", "client", always, overload(), 3, raised(overloaded, retryable)},
		{"is not retried with maxAdaptiveRetries 0", "B4", "none", once, overload(), 1, raised(overloaded, retryable)},
		{"is not retried after an error with " + overloaded + " alone", "R34", "client", once, suites.Labelled(limited, overloaded), 1, raised(overloaded)},
		{"is not retried after an error with " + retryable + " alone", "R34", "client", once, suites.Labelled(limited, retryable), 1, raised(retryable)},
		{"is not retried after an error without labels", "R34", "client", once, suites.Labelled(limited), 1, raised()},
	}
	off := func(by, option, other, otherBy string) {
		list = append(list,
			story{"is not retried after an overload error with " + option + " false", "B3", by, once, overload(), 1, raised(overloaded, retryable)})
		if other != "" {
			list = append(list,
				story{"is retried once after an overload error with " + other + " false", "B1", otherBy, once, overload(), 2, ""})
		}
	}
	switch o.class {
	case read:
		off("noReads", "retryReads", "retryWrites", "noWrites")
	case write:
		off("noWrites", "retryWrites", "retryReads", "noReads")
	default:
		off("noReads", "retryReads", "", "")
		off("noWrites", "retryWrites", "", "")
	}
	return list
}

// ofOperation tells all stories of one operation.
func ofOperation(o operation) *suites.File {
	f := &suites.File{
		Name:        o.File(),
		Description: "client backpressure: " + o.Title(),
		About: []string{"Overload errors make every command retryable, up to the limit and as far as retryReads and retryWrites allow, if they",
			"have both labels."},
		Least:   o.Least,
		Require: []string{o.requirement()},
		Clients: clients(),
		Bucket:  o.Object == "bucket",
	}
	if o.class != read {
		f.Empty = []string{written}
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, o.Object)...)
	}
	if o.Before != nil {
		f.Entities = append(f.Entities, objects("setup", "database")...)
	}
	for _, s := range stories(o) {
		failing := s.attempts
		if s.raises == "" {
			failing--
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s %s (%s)", o.Title(), s.says, s.rule),
			Operations:  append(slices.Clone(o.Before), suites.FailPoint(o.Command, s.mode, s.data), o.Call(s.by, "", s.raises)),
			Events:      []suites.Expected{{Client: s.by, Events: o.Attempts(s.attempts, failing, o.carries(s.by))}},
			Outcome:     o.outcome(s.raises == ""),
		})
	}
	return f
}

// cursors are commands that a cursor needs after the first.
var cursors = []struct{ title, name, arguments, started string }{
	{"collection.find", "find", "{ filter: {}, sort: { _id: 1 }, batchSize: 2 }", "{ find: " + suites.Collection + ", batchSize: 2 }"},
	{"collection.aggregate", "aggregate", "{ pipeline: [ { $sort: { _id: 1 } } ], batchSize: 2 }", "{ aggregate: " + suites.Collection + ", cursor: { batchSize: 2 } }"},
}

// getMore is retried for overload errors only.
func getMore() *suites.File {
	f := &suites.File{
		Name:        "getMore",
		Description: "client backpressure: getMore",
		About:       []string{"getMore is no retryable read, and is retried for overload errors all the same."},
		Require:     []string{`{ minServerVersion: "4.4" }`},
		Clients:     clients(),
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	o := operation{Operation: suites.Operation{Object: "collection", Command: "getMore", Database: databaseName,
		Started: "{ getMore: { $$type: [ int, long ] }, collection: " + suites.Collection + " }"}}
	for _, c := range cursors {
		o.Name, o.Arguments = c.name, c.arguments
		o.Result = "[ { _id: 1, x: 11 }, { _id: 2, x: 22 }, { _id: 3, x: 33 } ]"
		for _, s := range stories(o) {
			failing := s.attempts
			if s.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("getMore of %s %s (%s)", c.title, s.says, s.rule),
				Operations:  []string{suites.FailPoint("getMore", s.mode, s.data), o.Call(s.by, "", s.raises)},
				Events: []suites.Expected{{Client: s.by, Events: append([]string{suites.StartedEvent(c.started, c.name, databaseName), suites.SucceededEvent(c.name)},
					o.Attempts(s.attempts, failing, "")...)}},
			})
		}
	}
	return f
}

// watching has the getMore of a change stream, which is not resumed for an
// error that is retried.
func watching() *suites.File {
	f := &suites.File{
		Name:        "change-streams",
		Description: "client backpressure: getMore of a change stream",
		About:       []string{"An overload error of a getMore is retried; the change stream is not opened anew for it."},
		Require:     []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Clients:     clients(),
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	f.Entities = append(f.Entities, objects("setup", "collection")...)
	open := suites.StartedEvent("{ aggregate: "+suites.Collection+", pipeline: [ { $changeStream: {} } ] }", "aggregate", databaseName)
	more := suites.Operation{Command: "getMore", Database: databaseName, Started: "{ getMore: { $$type: [ int, long ] }, collection: " + suites.Collection + " }"}
	for _, s := range []story{
		{"is retried twice after overload errors", "B1", "client", suites.Times(2), overload(), 3, ""},
		{"is retried no more than twice after overload errors", "B4", "client", suites.Always, overload(), 3, raised(overloaded, retryable)},
		{"is not retried after an overload error with retryReads false", "B3", "noReads", suites.Times(1), overload(), 1, raised(overloaded, retryable)},
		{"is not retried after an overload error with maxAdaptiveRetries 0", "B4", "none", suites.Times(1), overload(), 1, raised(overloaded, retryable)},
	} {
		failing, next := s.attempts, "{ name: iterateUntilDocumentOrError, object: stream, expectResult: { operationType: insert, documentKey: { _id: 4 } } }"
		if s.raises == "" {
			failing--
		} else {
			next = "{ name: iterateUntilDocumentOrError, object: stream, expectError: " + s.raises + " }"
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("getMore of a change stream %s (%s)", s.says, s.rule),
			Operations: []string{"{ name: createChangeStream, object: collection" + suites.Suffix(s.by) + ", arguments: { pipeline: [] }, saveResultAsEntity: stream }",
				"{ name: insertOne, object: collection-setup, arguments: { document: { _id: 4, x: 44 } } }",
				suites.FailPoint("getMore", s.mode, s.data), next},
			// There may be a getMore without the document after those that failed.
			Events: []suites.Expected{{Client: s.by, Extra: s.raises == "", Events: join([]string{open, suites.SucceededEvent("aggregate")}, more.Attempts(s.attempts, failing, ""))}},
		})
	}
	return f
}

// killCursors has no result that anybody sees but in events.
func killCursors() *suites.File {
	client := suites.PlainClient()
	client.Ignore = []string{"abortTransaction"}
	f := &suites.File{
		Name:        "killCursors",
		Description: "client backpressure: killCursors",
		About:       []string{"The command that closes a cursor is retried for overload errors, and its errors are not raised."},
		Require:     []string{`{ minServerVersion: "4.4" }`},
		Clients:     []suites.Client{suites.SetupClient(), client},
		Entities:    objects("client", "collection"),
	}
	find := cursors[0]
	kill := suites.Operation{Command: "killCursors", Database: databaseName, Started: "{ killCursors: " + suites.Collection + " }"}
	for _, s := range []story{
		{"is retried twice after overload errors", "B1", "client", suites.Times(2), overload(), 3, ""},
		{"is retried no more than twice after overload errors", "B4", "client", suites.Always, overload(), 3, "ignored"},
		{"is not retried after an error with " + overloaded + " alone", "R34", "client", suites.Times(1), suites.Labelled(limited, overloaded), 1, "ignored"},
	} {
		failing := s.attempts
		if s.raises == "" {
			failing--
		}
		f.Add(suites.Test{
			Description: fmt.Sprintf("killCursors %s (%s)", s.says, s.rule),
			Operations: []string{suites.FailPoint("killCursors", s.mode, s.data),
				"{ name: createFindCursor, object: collection, arguments: " + find.arguments + ", saveResultAsEntity: cursor }",
				"{ name: close, object: cursor }"},
			Events: []suites.Expected{{Client: "client", Events: append([]string{suites.StartedEvent(find.started, find.name, databaseName),
				suites.SucceededEvent(find.name)}, kill.Attempts(s.attempts, failing, "")...)}},
		})
	}
	return f
}

// standalone has no retryable writes, and overload retries of writes.
func standalone() *suites.File {
	f := &suites.File{
		Name:        "standalone",
		Description: "client backpressure: writes on a standalone",
		About:       []string{"A standalone has no retryable writes, but its overload errors are retried: every command is subject to that."},
		Require:     []string{`{ minServerVersion: "4.4", topologies: [ single ] }`},
		Clients:     clients(),
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	for _, o := range operations() {
		if !o.numbered || o.Least != "" {
			continue
		}
		for _, s := range stories(o) {
			if s.rule == "B4" && s.attempts > 1 {
				continue // the limit is the same as elsewhere
			}
			failing := s.attempts
			if s.raises == "" {
				failing--
			}
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s on a standalone %s (%s)", o.Title(), s.says, s.rule),
				Operations:  []string{suites.FailPoint(o.Command, s.mode, s.data), o.Call(s.by, "", s.raises)},
				Events:      []suites.Expected{{Client: s.by, Events: o.Attempts(s.attempts, failing, "txnNumber: { $$exists: false }")}},
				Outcome:     o.outcome(s.raises == ""),
			})
		}
		unreachable := suites.Code{Number: 6, Name: "HostUnreachable"}
		f.Add(suites.Test{
			Description: fmt.Sprintf("%s on a standalone is not retried after HostUnreachable with %s and %s (W32)", o.Title(), overloaded, writable),
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(1), suites.Labelled(unreachable, overloaded, writable)), o.Call("client", "", suites.RaisedCode(unreachable))},
			Events:      []suites.Expected{{Client: "client", Events: o.Attempts(1, 1, "txnNumber: { $$exists: false }")}},
			Outcome:     o.outcome(false),
		})
	}
	return f
}

// retries are other values of maxAdaptiveRetries.
func retries() *suites.File {
	f := &suites.File{
		Name:        "maxAdaptiveRetries",
		Description: "client backpressure: maxAdaptiveRetries",
		About:       []string{"The option replaces the limit of two retries, for reads, writes and generic commands alike."},
		Require:     []string{`{ minServerVersion: "4.4", topologies: [ ` + every + ` ] }`},
		Clients: []suites.Client{suites.SetupClient(), suites.Observed("one", "{ maxAdaptiveRetries: 1 }"),
			suites.Observed("two", "{ maxAdaptiveRetries: 2 }"), suites.Observed("three", "{ maxAdaptiveRetries: 3 }")},
	}
	for _, c := range f.Clients[1:] {
		f.Entities = append(f.Entities, objects(c.ID, "collection")...)
	}
	for _, title := range []string{"collection.find", "collection.insertOne", "collection.updateMany", "database.runCommand with ping"} {
		o := named(title)
		for n, by := range []string{"one", "two", "three"} {
			f.Add(suites.Test{
				Description: fmt.Sprintf("%s is retried no more often than maxAdaptiveRetries %d says (B4)", o.Title(), n+1),
				Operations:  []string{suites.FailPoint(o.Command, suites.Always, overload()), o.Call(by, "", raised(overloaded, retryable))},
				Events:      []suites.Expected{{Client: by, Events: o.Attempts(n+2, n+2, o.carries(by))}},
				Outcome:     o.outcome(false),
			})
		}
		f.Add(suites.Test{
			Description: o.Title() + " is retried three times with maxAdaptiveRetries 3 (B4)",
			Operations:  []string{suites.FailPoint(o.Command, suites.Times(3), overload()), o.Call("three", "", "")},
			Events:      []suites.Expected{{Client: "three", Events: o.Attempts(4, 3, o.carries("three"))}},
			Outcome:     o.outcome(true),
		})
	}
	return f
}
