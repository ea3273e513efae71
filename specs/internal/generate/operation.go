package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Operation is an operation with one command, and what is known of it.
// Arguments, commands and results are flow YAML.
type Operation struct {
	Heading   string // what descriptions call it, "" for its object and name
	Object    string // entity that it is called on: client, database, admin, collection, bucket, session, cursor, stream, testRunner
	Name      string // as the format calls it
	Variant   string // distinguishes rows of one operation, "" for a single row
	Arguments string
	Command   string // name of the command that carries it
	Started   string // what the command must have
	Database  string // where the command is sent
	Carries   string // what each attempt must have beside Started
	Result    string // "" if drivers may return what the format cannot compare
	Then      string // started event of a command that follows a success, of the same name
	Watches   bool   // it opens a change stream: not on a standalone
	Reads     bool   // it writes nothing, so that tests need not say what is left behind
	Session   bool   // the format's session argument is common for it
	Txn       bool   // the server allows it in a transaction
	Since     string // server version that brought it, "" for any
	// Before are operations of the client setup that make way for it.
	Before []string
	// Wrote are the documents of Collection after a success, nil if it does
	// not change them.
	Wrote []string
}

// Title names an operation in descriptions.
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

// table reads a table of operations on a database, and fills in what it leaves
// out: an operation is called on the collection, has the command of its name,
// sends it to the database of its object, and puts its arguments into it.
func table(name, database string) []Operation {
	var tables map[string][]Operation
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(operationTables, "DATABASE", database)), &tables); err != nil {
		panic(err) // the file is a part of the program
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

// Named is the operation of a list with that title.
func Named(list []Operation, title string) Operation {
	return list[slices.IndexFunc(list, func(o Operation) bool { return o.Title() == title })]
}

// File is the name of the operation's file.
func (o Operation) File() string {
	return strings.NewReplacer(".", "-", " ", "-", "$", "").Replace(o.Title())
}

// Call is the operation with its assertion; extra is joined to the arguments.
func (o Operation) Call(client, extra, raises string) string {
	arguments := Merge(o.Arguments, extra)
	object := o.Object + Suffix(client)
	switch o.Object {
	case "client":
		object = client
	case "cursor", "stream", "testRunner": // which are no client's
		object = o.Object
	}
	s := fmt.Sprintf("{ name: %s, object: %s", o.Name, object)
	if arguments != "" && arguments != "{}" {
		s += ", arguments: " + arguments
	}
	switch {
	case raises != "" && o.Object == "bucket":
		// Drivers may wrap what went wrong below GridFS.
		s += ", expectError: { isError: true }"
	case raises != "":
		s += ", expectError: " + raises
	case o.Result != "":
		s += ", expectResult: " + o.Result
	}
	return s + " }"
}

// Attempts are the events of an operation of which some attempts fail. Extra
// is joined to every command.
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

// Unnumbered is what a command must have that is not a retryable write.
const Unnumbered = "txnNumber: { $$exists: false }"

// carries is what the attempts of a client must have: those with retryWrites
// false number no write.
func (o Operation) carries(client string) string {
	if o.Carries != "" && (client == "noRetry" || client == "noWrites") {
		return Unnumbered
	}
	return o.Carries
}

// outcome is what a test says is left behind: nothing if it only reads.
func (o Operation) outcome(succeeded bool) []Outcome {
	if o.Reads {
		return nil
	}
	return o.Outcome(succeeded)
}

// Outcome is what Collection holds after the operation.
func (o Operation) Outcome(succeeded bool) []Outcome {
	documents := Initial()
	if succeeded && o.Wrote != nil {
		documents = o.Wrote
	}
	return []Outcome{{Collection, documents}}
}

// Merge joins fields to a document in flow YAML.
func Merge(document, fields string) string {
	if fields == "" {
		return document
	}
	if inner := fieldsOf(document); inner != "" {
		fields = inner + ", " + fields
	}
	return "{ " + fields + " }"
}

// fieldsOf are the fields of a document in flow YAML.
func fieldsOf(document string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(document, "{"), "}"))
}

// StartedEvent expects a command to be sent.
func StartedEvent(command, name, database string) string {
	return fmt.Sprintf("{ commandStartedEvent: { commandName: %s, databaseName: %s, command: %s } }", name, database, command)
}

// SucceededEvent expects a reply of ok 1.
func SucceededEvent(name string) string {
	return fmt.Sprintf("{ commandSucceededEvent: { commandName: %s } }", name)
}

// FailedEvent expects an error.
func FailedEvent(name string) string {
	return fmt.Sprintf("{ commandFailedEvent: { commandName: %s } }", name)
}

// GetMore is the second command of a cursor of Collection that find or
// aggregate opens; Cursor are the events of the first.
func GetMore(name, database, arguments string) Operation {
	return Operation{Heading: "getMore of collection." + name, Object: "collection", Name: name, Arguments: arguments, Command: "getMore",
		Database: database, Started: "{ getMore: { $$type: [ int, long ] }, collection: " + Collection + " }"}
}

// Cursor are the events of the command before GetMore, with batches of two.
func Cursor(name, database string) []string {
	size := "batchSize: 2"
	if name == "aggregate" {
		size = "cursor: { batchSize: 2 }"
	}
	return []string{StartedEvent("{ "+name+": "+Collection+", "+size+" }", name, database), SucceededEvent(name)}
}
