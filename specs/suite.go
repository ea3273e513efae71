// Package specs loads Unified Test Format suites from YAML and JSON. It keeps file, line and column of
// every node, validates a file against the schema version that it declares, and makes the semantic
// checks that a schema cannot express.
package specs

import (
	"bytes"
	"crypto/sha256"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
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
	CannotPass     int               // how many tests have Errors
	Digest         [sha256.Size]byte // SHA-256 of the file
	text           []byte            // of the file
	MustFail       bool              // all tests must fail: the file is in valid-fail of the format's own tests
}

// Lines returns lines of the file, from 1, as far as they exist. For a suite that was not read from a file, it returns
// nil.
func (s *Suite) Lines(from, to int) (lines []string) {
	n := 0
	for line := range bytes.Lines(s.text) {
		if n++; n >= from && n <= to {
			lines = append(lines, strings.TrimRight(string(line), "\r\n"))
		}
	}
	return lines
}

// Requirement is one runOnRequirement. A field that is nil does not restrict anything.
type Requirement struct {
	MinServerVersion *Version
	MaxServerVersion *Version
	Topologies       []string
	Serverless       string // "", require, forbid, allow
	ServerParameters *source.Value
	Auth             *bool
	AuthMechanism    string
	CSFLE            *bool  // true for the object form, too
	MinLibmongocrypt string // only in the object form
}

// Entity is one element of createEntities.
type Entity struct {
	Position source.Position
	Kind     entities.Kind
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
	// Steps are the operations in order. The steps of a thread or callback follow the one that contains them.
	Steps             []Step
	Entities          []Entity // of the file, then those that operations create
	ExpectEvents      []*source.Value
	ExpectLogMessages []*source.Value
	ExpectTracing     []*source.Value
	Outcome           []CollectionData
	// Errors make the test fail before it begins: the format requires the test runner to raise an error, and a driver
	// may never detect them. Their paths are relative to the test, or begin at the file's createEntities. The suite's
	// Warnings contain them, too.
	Errors []Problem
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
	Kind  entities.Kind // of the object; "" if it is not defined
	Row   operations.Operation
	Known bool // whether Row is set
}
