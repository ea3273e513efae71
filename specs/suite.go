// Package specs loads Unified Test Format suites: YAML or JSON, with file,
// line and column kept for every node, validated against the schema of the
// version that the file declares and by the semantic checks that a schema
// cannot express.
package specs

import (
	"crypto/sha256"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Suite is one loaded and valid file. It is immutable and may be shared.
type Suite struct {
	File           string // as named by the user
	Root           *source.Value
	Description    string
	SchemaVersion  Version
	Requirements   []Requirement // nil: none
	CreateEntities []Entity
	InitialData    []CollectionData
	Tests          []*Test
	Warnings       []Problem         // of severity Warning, in the order of the file
	Digest         [sha256.Size]byte // SHA-256 of the bytes that it was read from
	// MustFail reports that all its tests must fail: it is in valid-fail of the
	// format's own tests.
	MustFail bool
}

// Requirement is one runOnRequirement; a nil field makes no demand.
type Requirement struct {
	Position         source.Position
	MinServerVersion *Version
	MaxServerVersion *Version
	Topologies       []string
	Serverless       string // "", require, forbid, allow
	ServerParameters *source.Value
	Auth             *bool
	AuthMechanism    string
	CSFLE            *bool  // true also for the object form
	MinLibmongocrypt string // of the object form
}

// Entity is one element of createEntities: exactly one kind.
type Entity struct {
	Position source.Position
	Kind     string // client, clientEncryption, database, collection, session, bucket, thread
	ID       string
	Value    *source.Value // the document below the kind
}

// CollectionData is an element of initialData or outcome.
type CollectionData struct {
	Position       source.Position
	DatabaseName   string
	CollectionName string
	CreateOptions  *source.Value // nil if absent
	Documents      []*source.Value
}

// Test is one test case.
type Test struct {
	Position     source.Position
	Description  string
	Requirements []Requirement
	SkipReason   *string
	Operations   []Operation
	// Steps are the operations in order, those of threads and callbacks after
	// the one that holds them.
	Steps []Step
	// Entities are those of the file, and those that operations create.
	Entities          []Entity
	ExpectEvents      []*source.Value
	ExpectLogMessages []*source.Value
	ExpectTracing     []*source.Value
	Outcome           []CollectionData
	// Flaws make the test fail before it begins: what the format has the test
	// runner raise an error for and a driver may never notice. Their paths
	// begin within the test, or at the file's createEntities. They are among
	// the suite's warnings, too.
	Flaws []Problem
}

// Operation is one operation with its assertions.
type Operation struct {
	Position             source.Position
	Name                 string
	Object               string
	Arguments            *source.Value // document, nil if absent
	IgnoreResultAndError bool
	ExpectError          *source.Value // nil if absent
	ExpectResult         *source.Value // nil if absent
	SaveResultAsEntity   string
}

// Step is an operation with its row in the table of operations.
type Step struct {
	Operation
	Kind operations.Kind // of the object, "" if it is not defined
	Row  operations.Operation
	// Known reports whether Row is set.
	Known bool
}
