// Package operations is the vocabulary of the format: which operations there
// are for which kind of entity, which arguments each takes, and what shape
// its result has. It serves the semantic checks, the runner and every engine.
package operations

//go:generate env UTR_UPDATE=1 go test -count 1 -run ^TestDocsAreFresh$ .

// Kind is a kind of entity that operations are performed on.
type Kind string

// The kinds. Cursor stands for find cursors, command cursors and change
// streams. TestRunner is the object of special test operations.
const (
	Client           Kind = "client"
	ClientEncryption Kind = "clientEncryption"
	Database         Kind = "database"
	Collection       Kind = "collection"
	Session          Kind = "session"
	Bucket           Kind = "bucket"
	Cursor           Kind = "cursor"
	TestRunner       Kind = "testRunner"
)

// Kinds of entities on which no operation can be performed.
const (
	Thread     Kind = "thread"
	Topology   Kind = "topologyDescription"
	SavedValue Kind = "BSON value"
)

// Parent is what an entity is made from.
type Parent struct {
	Kind Kind
	Keys []string // of the entity's document that lead to the name of the parent
}

// Parents has the parents of the kinds that have one. Cursors descend from whatever
// created them.
var Parents = map[Kind]Parent{
	ClientEncryption: {Client, []string{"clientEncryptionOpts", "keyVaultClient"}},
	Database:         {Client, []string{"client"}},
	Collection:       {Database, []string{"database"}},
	Session:          {Client, []string{"client"}},
	Bucket:           {Database, []string{"database"}},
}

// Shape is how a result is matched.
type Shape uint8

// The shapes of a result.
const (
	Nothing       Shape = iota // returns nothing
	Value                      // a plain value: nested documents match exactly
	RootDocument               // a document that may have extra fields
	RootDocuments              // an array of such documents
	NewCursor                  // creates a cursor or change stream entity
	NewCollection              // creates a collection entity, if its result is saved
)

// Makes is the kind of entity that a result becomes when it is saved.
func (s Shape) Makes() Kind {
	switch s {
	case NewCursor:
		return Cursor
	case NewCollection:
		return Collection
	default:
		return SavedValue
	}
}

// Effect is what an operation can leave behind in a deployment, whatever its
// arguments are.
type Effect uint8

// The effects. A row without one, and an operation without a row, can do
// anything.
const (
	Anything Effect = iota
	Reads           // nothing; what it opens ends with the test
	Writes          // other documents, or a plain collection that was not there
)

// String names an effect in a person's words.
func (e Effect) String() string { return [...]string{"anything", "nothing", "documents"}[e] }

// And is the effect of two operations.
func (e Effect) And(other Effect) Effect {
	if e == Anything || other == Anything {
		return Anything
	}
	return max(e, other)
}

// Operation is a row of the table.
type Operation struct {
	Kind      Kind
	Name      string
	Arguments []Argument // sorted by name
	Effect    Effect
	Result    Shape
	// Section is where the format or another specification describes it.
	Section string
}

// Argument is a parameter of an operation.
type Argument struct {
	Name     string
	Required bool
	// Type and Entity are set for arguments that the test runner reads itself:
	// sessions, and all arguments of special test operations.
	Type   Type
	Entity Kind // of the entity that the argument names, "" if it names none
}

// Type is the type of an argument: the JSON type that JSON Schema knows by the
// same name. A Count is an integer that is not negative.
type Type string

// The types of arguments.
const (
	Text     Type = "string"
	Count    Type = "integer"
	Document Type = "object"
	List     Type = "array"
)
