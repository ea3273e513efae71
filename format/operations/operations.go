// Package operations is the vocabulary of the format: the operations of each kind of entity, with their
// arguments and the shape of their results. The semantic checks, the runner and all engines use it.
package operations

import "github.com/unified-test-runner/utr/entities"

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestDocsAreFresh$ .

// Shape is how a result is matched.
type Shape uint8

// The shapes of a result.
const (
	nothing       Shape = iota // returns nothing
	Value                      // a plain value: nested documents match exactly
	RootDocument               // a document that may have extra fields
	RootDocuments              // an array of such documents
	NewCursor                  // creates a cursor or change stream entity
	newCollection              // creates a collection entity, if its result is saved
)

var shapes = [...]string{"nothing", "a value", "a root-level document", "root-level documents", "a cursor",
	"a collection"}

// Makes returns the kind of entity that a saved result becomes.
func (s Shape) Makes() entities.Kind {
	switch s {
	case NewCursor:
		return entities.Cursor
	case newCollection:
		return entities.Collection
	default:
		return entities.SavedValue
	}
}

// Effect is what an operation can change in a deployment, whatever its arguments.
type Effect uint8

// The effects. An operation without a row can change anything.
const (
	Anything Effect = iota
	Reads           // nothing
	Writes          // documents, or a plain collection that it creates implicitly
)

var effects = [...]string{"anything", "nothing", "documents"}

// String returns what the operation can change.
func (e Effect) String() string { return effects[e] }

// And returns the combined effect of two operations.
func (e Effect) And(other Effect) Effect {
	if e == Anything || other == Anything {
		return Anything
	}
	return max(e, other)
}

// Operation is a row of the table.
type Operation struct {
	Kind      entities.Kind
	Name      string
	Arguments []Argument // sorted by name
	Effect    Effect
	Result    Shape
	Section   string // of the format or another specification that describes it

	command, core string // "" for the name, and for the command
	ownSpan       bool
}

// Command is a command that operations send, with a suffix if only some uses of it are retried.
type Command struct {
	Name    string
	Class   Class
	Retried retrying
	Why     string // it is never retried
}

// Class determines which client option enables a retry after an overload error.
type Class uint8

// The classes. A Generic command is neither a read nor a write.
const (
	Generic Class = iota
	Read
	Write
)

var classes = [...]string{"command", "read", "write"}

// retrying is when a command is retried after an error other than an overload error.
type retrying uint8

// A command is never retried, or if the option of its class is enabled ("Supported Read Operations", "Supported Write
// Operations"), or regardless of options.
const (
	Never retrying = iota
	ifEnabled
	Always
)

var retried = [...]string{"never", "if enabled", "always"}

// Argument is a parameter of an operation.
type Argument struct {
	Name     string
	Required bool
	// Type and Entity are set for arguments that the test runner reads itself: sessions, and all
	// arguments of special test operations. Type is a name of JSON Schema; an "integer" is not negative.
	Type   string
	Entity entities.Kind // of the entity that the argument names; "" for other arguments
}
