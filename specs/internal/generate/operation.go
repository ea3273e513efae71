package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Operation is an operation that sends one command. Arguments, commands and results are flow YAML.
type Operation struct {
	Heading   string // in descriptions; "" for its object and name
	Object    string // client, database, admin, collection, bucket, session, cursor, stream or testRunner
	Name      string // in the format
	Variant   string // distinguishes rows of one operation
	Arguments string
	Command   string   // name of the command
	Started   string   // expected fields of the command
	Database  string   // of the command
	Carries   string   // further expected fields of each attempt
	Result    string   // "" if the results of drivers differ
	Then      string   // command of the same name that follows a success
	Opens     []string // events of the command before a getMore, which opens the cursor
	Watches   bool     // it opens a change stream, which a standalone does not support
	Reads     bool     // it writes nothing, so tests have no outcome
	Session   bool     // drivers commonly support its session argument
	Txn       bool     // the server allows it in a transaction
	Since     string   // first server version that supports it; "" for any
	Before    []string // preparatory operations of the client setup
	Wrote     []string // documents of Collection after a success; nil if unchanged
}

// Title returns the name of an operation in descriptions.
func (o Operation) Title() string {
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

// table reads a table of operations on a database, and sets defaults: the object is the collection, the
// command has the name of the operation and its arguments, and its database is that of the object.
func table(name, database string) []Operation {
	var tables map[string][]Operation
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(operationTables, "DATABASE", database)), &tables); err != nil {
		panic(err) // cannot fail: the file is embedded
	}
	list := tables[name]
	for i := range list {
		o := &list[i]
		o.Object, o.Command, o.Arguments = cmp.Or(o.Object, "collection"), cmp.Or(o.Command, o.Name), cmp.Or(o.Arguments, "{}")
		target := "1"
		switch o.Object {
		case "client", "admin":
			o.Database = "admin"
		case "collection":
			target = Collection
			fallthrough
		default:
			o.Database = database
		}
		if o.Started == "" {
			o.Started = Merge("{ "+o.Command+": "+target+" }", fieldsOf(o.Arguments))
		}
	}
	return list
}

// Named returns the operation with a title.
func Named(list []Operation, title string) Operation {
	return list[slices.IndexFunc(list, func(o Operation) bool { return o.Title() == title })]
}

// File returns the name of the operation's file.
func (o Operation) File() string {
	return strings.NewReplacer(".", "-", " ", "-", "$", "").Replace(o.Title())
}

// Call returns the operation with its assertion and extra arguments.
func (o Operation) Call(client, extra, raises string) string {
	arguments := Merge(o.Arguments, extra)
	object := o.Object + Suffix(client)
	switch o.Object {
	case "client":
		object = client
	case "cursor", "stream", "testRunner":
		object = o.Object
	}
	s := fmt.Sprintf("{ name: %s, object: %s", o.Name, object)
	if arguments != "" && arguments != "{}" {
		s += ", arguments: " + arguments
	}
	switch {
	case raises != "" && o.Object == "bucket":
		// Drivers may wrap errors in GridFS.
		s += ", expectError: { isError: true }"
	case raises != "":
		s += ", expectError: " + raises
	case o.Result != "":
		s += ", expectResult: " + o.Result
	}
	return s + " }"
}

// Attempts returns the events of an operation whose first attempts fail. Commands have extra fields.
func (o Operation) Attempts(total, failing int, extra string) []string {
	var out []string
	for n := 1; n <= total; n++ {
		out = append(out, StartedEvent(Merge(o.Started, extra), o.Command, o.Database))
		if n <= failing {
			out = append(out, FailedEvent(o.Command))
			continue
		}
		out = append(out, SucceededEvent(o.Command))
		if o.Then != "" {
			out = append(out, StartedEvent(o.Then, o.Command, o.Database), SucceededEvent(o.Command))
		}
	}
	return out
}

// Unnumbered expects a command that is not a retryable write.
const Unnumbered = "txnNumber: { $$exists: false }"

// carries returns the expected fields of each attempt of a client. With retryWrites false there is no
// transaction number.
func (o Operation) carries(client string) string {
	if o.Carries != "" && (client == "noRetry" || client == "noWrites") {
		return Unnumbered
	}
	return o.Carries
}

// outcome returns the expected outcome of a test, nil for a read.
func (o Operation) outcome(succeeded bool) []Outcome {
	if o.Reads {
		return nil
	}
	return o.Outcome(succeeded)
}

// Outcome returns the documents of Collection after the operation.
func (o Operation) Outcome(succeeded bool) []Outcome {
	if succeeded && o.Wrote != nil {
		return After(o.Wrote...)
	}
	return After(Initial()...)
}

// Merge adds fields to a document in flow YAML.
func Merge(document, fields string) string {
	if fields == "" {
		return document
	}
	if inner := fieldsOf(document); inner != "" {
		fields = inner + ", " + fields
	}
	return "{ " + fields + " }"
}

// fieldsOf returns the fields of a document in flow YAML.
func fieldsOf(document string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(document, "{"), "}"))
}

// StartedEvent expects a command started event.
func StartedEvent(command, name, database string) string {
	return fmt.Sprintf("{ commandStartedEvent: { commandName: %s, databaseName: %s, command: %s } }", name, database, command)
}

// SucceededEvent expects a command succeeded event.
func SucceededEvent(name string) string {
	return fmt.Sprintf("{ commandSucceededEvent: { commandName: %s } }", name)
}

// FailedEvent expects a command failed event.
func FailedEvent(name string) string {
	return fmt.Sprintf("{ commandFailedEvent: { commandName: %s } }", name)
}

// GetMore returns the getMore of a find or an aggregate on Collection.
func GetMore(name, database, arguments string) Operation {
	return Operation{Heading: "getMore of collection." + name, Object: "collection", Name: name, Arguments: arguments, Command: "getMore",
		Database: database, Started: "{ getMore: { $$type: [ int, long ] }, collection: " + Collection + " }",
		Opens: Cursor(name, database), Reads: true}
}

// Cursor returns the events of a find or an aggregate that opens a cursor.
func Cursor(name, database string) []string {
	size := "batchSize: 2"
	if name == "aggregate" {
		size = "cursor: { batchSize: 2 }"
	}
	return []string{StartedEvent("{ "+name+": "+Collection+", "+size+" }", name, database), SucceededEvent(name)}
}
