package specs

import (
	"fmt"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// Check is a semantic check: a rule of the format that its schema does not
// express. Most are warnings, because the format wants the test to fail while
// it runs and not the file to be refused.
type Check struct {
	Name     string
	Severity Severity
	Doc      string // the rule, in a sentence
	run      func(*inspection)
}

// Checks lists the semantic checks, in the order in which they run.
func Checks() []Check {
	return []Check{
		{"extended-json", Error, "What starts like Extended JSON is well-formed Extended JSON.", checkExtendedJSON},
		{"duplicate-test", Warning, "No two tests of a file have the same description.", checkDuplicateTests},
		{"version-range", Warning, "minServerVersion is not above maxServerVersion, which no server meets.", checkVersionRanges},
		{"collection-data", Warning, "A list of collection data names each namespace once, and each document has its own _id.", checkCollectionData},
		{"duplicate-entity", Warning, "An entity's id is not used again.", checkDuplicateEntities},
		{"undefined-entity", Warning, "An entity is created before it is named, and is of the type that is wanted there.", checkReferences},
		{"unknown-operation", Warning, "An operation exists for the entity that it is performed on.", checkOperationNames},
		{"unknown-argument", Warning, "An operation takes each argument that it is given.", checkUnknownArguments},
		{"missing-argument", Warning, "An operation is given each argument that it requires.", checkMissingArguments},
		{"argument-value", Warning, "An argument with a closed set of values has one of them.", checkArgumentValues},
		{"special-operation", Warning, "An operation of the test runner returns nothing and is expected to succeed.", checkSpecialOperations},
		{"fail-point", Warning, "A fail point is a configureFailPoint command with a mode.", checkFailPoints},
		{"operator", Warning, "A special operator exists, stands alone in its document, and has a value that it understands.", checkOperators},
		{"placeholder", Warning, "$$placeholder stands in uriOptions or kmsProviders only.", checkPlaceholders},
		{"unobserved-event", Warning, "A client observes the events that are expected of it.", checkObservedEvents},
		{"repeated-expectation", Warning, "A client has its events of a type, and its log messages, expected once.", checkRepeatedExpectations},
		{"api-version", Warning, "serverApi has a version that exists.", checkAPIVersions},
		{"kms-credentials", Warning, "A KMS provider with credentials has all of them.", checkKMSCredentials},
		{"vacuous", Warning, "A test can fail.", checkVacuous},
	}
}

// inspect runs the semantic checks over a file that its schema accepts.
func inspect(s *Suite) []Problem {
	i := newInspection(s)
	for _, c := range Checks() {
		i.check = c
		c.run(i)
	}
	return i.problems
}

// inspection is one file as the checks see it.
type inspection struct {
	suite    *Suite
	check    Check // the one that is running
	problems []Problem

	steps       []step
	definitions []definition // those that repeat an id
	references  []reference
	clients     []place // the documents of client entities
	// ends gives what clients observe at the end of a test.
	ends       map[*source.Value]map[string]map[string]bool
	encryption []place // documents with kmsProviders
}

// place is a value with its path.
type place struct {
	*source.Value
	path string
}

func (p place) get(key string) place        { return place{p.Value.Get(key), p.path + "." + key} }
func (p place) at(i int) place              { return place{p.Value.Items[i], fmt.Sprintf("%s[%d]", p.path, i)} }
func (p place) exists() bool                { return p.Value != nil }
func (i *inspection) root(key string) place { return place{i.suite.Root.Get(key), key} }

// each visits the items of an array.
func (p place) each(visit func(place)) {
	for k := range items(p.Value) {
		visit(p.at(k))
	}
}

// step is an operation with what it is performed on.
type step struct {
	place
	Operation
	kind operations.Kind // "" if the object is not defined or has no operations
	row  operations.Operation
	// known tells that row is set.
	known bool
	// observed gives the events that a client observes, nil for no client.
	observed map[string]map[string]bool
}

// definition is an entity created under an id that is in use.
type definition struct {
	place
	id string
}

// reference is a mention of an entity.
type reference struct {
	place
	want string // kind, "" for any
	got  string // kind, "" if not defined
}

func (i *inspection) report(p place, format string, args ...any) {
	at := source.Position{File: i.suite.File}
	if p.Value != nil {
		at = p.Value.Position
	}
	i.reportAt(at, p.path, format, args...)
}

func (i *inspection) reportAt(at source.Position, path, format string, args ...any) {
	i.problems = append(i.problems, Problem{
		Position: at, Path: path, Rule: i.check.Name, Severity: i.check.Severity, Message: fmt.Sprintf(format, args...),
	})
}

// eachTest visits the tests.
func (i *inspection) eachTest(visit func(place)) { i.root("tests").each(visit) }
