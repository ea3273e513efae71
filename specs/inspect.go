package specs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/source"
)

// Check is a semantic check: a rule of the format that its schema does not
// express. Most are warnings, because the format requires the test to fail while
// it runs and not the file to be refused.
type Check struct {
	Name     string
	Severity Severity
	Doc      string // the rule, in a sentence
	// Fails reports that a test which breaks the rule fails before it begins:
	// its engine might never notice (see Test.Flaws).
	Fails bool
	run   func(*inspection)
}

// Checks lists the semantic checks, in the order in which they run.
func Checks() []Check {
	return []Check{
		{"extended-json", Error, "What starts like Extended JSON is well-formed Extended JSON.", false, checkExtendedJSON},
		{"duplicate-test", Warning, "No two tests of a file have the same description.", false, checkDuplicateTests},
		{"version-range", Warning, "minServerVersion is not above maxServerVersion, which no server meets.", false, checkVersionRanges},
		{"collection-data", Warning, "A list of collection data names each namespace once, and each document has its own _id.", false, checkCollectionData},
		{"duplicate-entity", Warning, "An entity's id is not used again.", false, checkDuplicateEntities},
		{"undefined-entity", Warning, "An entity is created before it is named, and is of the type that is required there.", true, checkReferences},
		{"unknown-operation", Warning, "An operation exists for the entity that it is performed on.", true, eachStep(checkOperationNames)},
		{"unknown-argument", Warning, "An operation takes each argument that it is given.", true, eachStep(checkUnknownArguments)},
		{"missing-argument", Warning, "An operation is given each argument that it requires.", true, eachStep(checkMissingArguments)},
		{"argument-value", Warning, "An argument that the test runner reads is of its type, returnDocument is Before or After, and the source of an upload is well-formed.", true, eachStep(checkArgumentValues)},
		{"nested", Warning, "Operations, entities, events, write models and common options within arguments, and options of entities, are well-formed.", true, checkNested},
		{"special-operation", Warning, "An operation of the test runner returns nothing and is expected to succeed.", false, eachStep(checkSpecialOperations)},
		{"fail-point", Warning, "A fail point is a configureFailPoint command with a mode.", true, eachStep(checkFailPoints)},
		{"operator", Warning, "A special operator exists, stands alone in its document, and has a value that it understands.", true, checkOperators},
		{"placeholder", Warning, "$$placeholder stands in uriOptions or kmsProviders only.", true, checkPlaceholders},
		{"unobserved-event", Warning, "A client observes the events and log messages that are expected of it.", false, checkObservedEvents},
		{"repeated-expectation", Warning, "A client has its events of a type, and its log messages, expected once.", false, eachTest(checkRepeatedExpectations)},
		{"uri-option", Warning, "A client's uriOptions are connection options that exist.", false, eachClient(checkURIOptions)},
		{"api-version", Warning, "serverApi has a version that exists.", false, eachClient(checkAPIVersions)},
		{"kms-credentials", Warning, "A KMS provider with credentials has all of them.", false, checkKMSCredentials},
		{"vacuous", Warning, "A test can fail.", false, eachTest(checkVacuous)},
	}
}

// eachStep, eachClient and eachTest make checks of a whole file.
func eachStep(check func(*inspection, step)) func(*inspection) {
	return func(i *inspection) {
		for _, s := range i.steps {
			check(i, s)
		}
	}
}

func eachClient(check func(i *inspection, client place)) func(*inspection) {
	return func(i *inspection) {
		for _, c := range i.clients {
			check(i, c)
		}
	}
}

func eachTest(check func(i *inspection, test place)) func(*inspection) {
	return func(i *inspection) { i.eachTest(func(t place) { check(i, t) }) }
}

// inspect runs the semantic checks over a file that its schema accepts.
// What makes tests fail becomes their flaws.
func inspect(s *Suite) []Problem {
	i := newInspection(s)
	var flaws []Problem
	for _, c := range Checks() {
		i.check = c
		before := len(i.problems)
		c.run(i)
		if c.Fails {
			flaws = append(flaws, i.problems[before:]...)
		}
	}
	slices.SortStableFunc(flaws, byPosition)
	s.flawed(flaws)
	return i.problems
}

// flawed gives each test the problems that stand within it, and those of the
// file's entities, which are made for each.
func (s *Suite) flawed(problems []Problem) {
	for k, t := range s.Tests {
		within := fmt.Sprintf("tests[%d].", k)
		for _, p := range problems {
			path, inside := strings.CutPrefix(p.Path, within)
			if p.Path = path; inside || strings.HasPrefix(path, "createEntities[") {
				t.Flaws = append(t.Flaws, p)
			}
		}
	}
}

type inspection struct {
	suite    *Suite
	check    Check // the one that is running
	problems []Problem

	steps       []step
	definitions []definition // those that repeat an id
	references  []reference
	clients     []place // the documents of clients
	// ends gives what clients observe at the end of a test.
	ends       map[*source.Value]map[string]map[string]bool
	encryption []place // documents with kmsProviders
}

type place struct {
	*source.Value
	path string
}

func (p place) get(key string) place        { return place{p.Value.Get(key), p.path + "." + key} }
func (p place) at(i int) place              { return place{p.Value.Items[i], fmt.Sprintf("%s[%d]", p.path, i)} }
func (p place) exists() bool                { return p.Value != nil }
func (i *inspection) root(key string) place { return place{i.suite.Root.Get(key), key} }

func (p place) each(visit func(place)) {
	for k := range p.Value.Elements() {
		visit(p.at(k))
	}
}

// step is a step with its place.
type step struct {
	place
	Step
	// observed gives the events that a client observes, nil for no client.
	observed map[string]map[string]bool
}

// definition is an entity created under an id that is in use.
type definition struct {
	place
	id string
}

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

func (i *inspection) eachTest(visit func(place)) { i.root("tests").each(visit) }
