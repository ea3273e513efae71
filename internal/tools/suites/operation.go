package main

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	format "github.com/unified-test-runner/utr/format/operations"
)

// operation is an operation that sends one command.
type operation struct {
	Heading   string // in descriptions; "" for its object and name
	Object    string // client, database, admin, collection, bucket, session, cursor, stream or testRunner
	Name      string // in the format
	Variant   string // distinguishes rows of one operation
	Arguments value
	Command   string  // name of the command
	Started   value   // expected fields of the command
	Database  string  // of the command
	Carries   value   // further expected fields of each attempt
	Result    value   // nil if the results of drivers differ
	Then      value   // command of the same name that follows a success
	Opens     []value // events of the command that opens the cursor of a getMore
	Watches   bool    // it opens a change stream; a standalone does not support that
	Reads     bool    // it writes nothing, so tests have no outcome
	Session   bool    // drivers commonly support its session argument
	Txn       bool    // the server allows it in a transaction
	Since     string  // first server version that supports it; "" for any
	Before    []value // preparatory operations of the client setup
	Wrote     []value // documents of Collection after a success; nil if unchanged
}

// title returns the name of an operation in descriptions.
func (o operation) title() string {
	title := o.Object + "." + o.Name
	switch {
	case o.Heading != "":
		return o.Heading
	case o.Object == "session":
		return o.Name
	case o.Object == "admin":
		title = "database." + o.Name
	}
	if o.Variant != "" {
		title += " " + o.Variant
	}
	return title
}

//go:embed operations.yml
var operationTables string

// row is an operation in operations.yml.
type row struct {
	Object, Name, Variant, Command, Since string
	Arguments, Started, Result, Then      yaml.Node
	Before, Wrote                         []yaml.Node
	Watches, Reads, Session, Txn          bool
}

// table reads a table of operations on a database, and sets defaults: the object is the collection, the
// command has the name of the operation and its arguments, and its database is the database of the object.
func table(name, database string) (list []operation) {
	var tables map[string][]row
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(operationTables, "DATABASE", database)), &tables); err != nil {
		panic(err) // cannot fail: the file is embedded
	}
	for _, r := range tables[name] {
		o := operation{Object: cmp.Or(r.Object, "collection"), Name: r.Name, Variant: r.Variant,
			Command: cmp.Or(r.Command, format.Sent()[r.Name], r.Name), Since: r.Since,
			Arguments: given(r.Arguments), Started: given(r.Started), Result: given(r.Result), Then: given(r.Then),
			Before: pointers(r.Before),
			Wrote:  pointers(r.Wrote), Watches: r.Watches, Reads: r.Reads, Session: r.Session, Txn: r.Txn}
		target := node(1)
		switch o.Object {
		case "client", "admin":
			o.Database = "admin"
		case "collection":
			target = node(collection)
			fallthrough
		default:
			o.Database = database
		}
		if o.Started == nil {
			o.Started = merge(doc(o.Command, target), o.Arguments)
		}
		list = append(list, o)
	}
	return list
}

func given(n yaml.Node) value {
	if n.IsZero() {
		return nil
	}
	return &n
}

func pointers(nodes []yaml.Node) (out []value) {
	for i := range nodes {
		out = append(out, &nodes[i])
	}
	return out
}

// titled returns the operation with a title.
func titled(list []operation, title string) operation {
	return list[slices.IndexFunc(list, func(o operation) bool { return o.title() == title })]
}

// fileName returns the name of the operation's file.
func (o operation) fileName() string { return fileName(o.title()) }

func fileName(title string) string {
	return strings.NewReplacer(".", "-", " ", "-", "$", "").Replace(title)
}

// call returns the operation with its assertion and extra arguments.
func (o operation) call(client string, extra, raises value) value {
	object := o.Object + suffix(client)
	switch o.Object {
	case "client":
		object = client
	case "cursor", "stream", "testRunner":
		object = o.Object
	}
	v := doc("name", o.Name, "object", object)
	if arguments := merge(o.Arguments, extra); len(arguments.Content) > 0 {
		v = merge(v, doc("arguments", arguments))
	}
	switch {
	case raises != nil && o.Object == "bucket":
		return merge(v, doc("expectError", anyError)) // drivers may wrap errors in GridFS
	case raises != nil:
		return merge(v, doc("expectError", raises))
	case o.Result != nil:
		return merge(v, doc("expectResult", o.Result))
	}
	return v
}

// attempts returns the events of an operation whose first attempts fail. Commands have extra fields.
func (o operation) attempts(total, failing int, extra value) (out []value) {
	for n := 1; n <= total; n++ {
		out = append(out, startedEvent(merge(o.Started, extra), o.Command, o.Database))
		if n <= failing {
			out = append(out, failedEvent(o.Command))
			continue
		}
		out = append(out, succeededEvent(o.Command))
		if o.Then != nil {
			out = append(out, startedEvent(o.Then, o.Command, o.Database), succeededEvent(o.Command))
		}
	}
	return out
}

// unnumbered expects a command that is not a retryable write.
var unnumbered = doc("txnNumber", absent)

// absent expects no field.
var absent = doc("$$exists", false)

// present expects any value.
var present = doc("$$exists", true)

// carries returns the expected fields of each attempt of a client. With retryWrites false, the transaction number is
// absent.
func (o operation) carries(client string) value {
	if o.Carries != nil && (client == "noRetry" || client == "noWrites") {
		return unnumbered
	}
	return o.Carries
}

// outcome returns the expected outcome of a test, nil for a read.
func (o operation) outcome(succeeded bool) []outcome {
	if o.Reads {
		return nil
	}
	return o.documentsLeft(succeeded)
}

// documentsLeft returns the documents of the collection after the operation.
func (o operation) documentsLeft(succeeded bool) []outcome {
	if succeeded && o.Wrote != nil {
		return left(o.Wrote...)
	}
	return left(initial()...)
}

// startedEvent expects a command started event.
func startedEvent(command value, name, database string) value {
	return doc("commandStartedEvent", doc("commandName", name, "databaseName", database, "command", command))
}

// succeededEvent expects a command succeeded event.
func succeededEvent(name string) value {
	return doc("commandSucceededEvent", doc("commandName", name))
}

// failedEvent expects a command failed event.
func failedEvent(name string) value {
	return doc("commandFailedEvent", doc("commandName", name))
}

// getMoreOf returns the getMore of a find or an aggregate on the collection.
func getMoreOf(name, database string, arguments value) operation {
	return operation{Heading: "getMore of collection." + name, Object: "collection", Name: name, Arguments: arguments,
		Command:  "getMore",
		Database: database, Started: doc("getMore", flow("{ $$type: [ int, long ] }"), "collection", collection),
		Opens: cursorEvents(name, database), Reads: true}
}

// cursorEvents returns the events of a find or an aggregate that opens a cursor.
func cursorEvents(name, database string) []value {
	size := doc("batchSize", 2)
	if name == "aggregate" {
		size = doc("cursor", size)
	}
	return []value{startedEvent(merge(doc(name, collection), size), name, database), succeededEvent(name)}
}
