package specs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/schema"
	"github.com/unified-test-runner/utr/format/source"
)

// Check is a semantic check: a rule of the format that its schema does not express. Most checks are
// warnings, because the format requires the test to fail and not the file to be rejected.
type Check struct {
	Name      string
	Severity  Severity
	Doc       string // the rule, in a sentence
	failsTest bool   // a violation is one of Test.Errors
}

// Checks returns all semantic checks.
func Checks() []Check {
	return []Check{
		{"extended-json", Error, "A value that looks like Extended JSON is well-formed Extended JSON.", false},
		{"duplicate-test", Warning, "No two tests of a file have the same description.", false},
		{"version-range", Warning, "minServerVersion must not exceed maxServerVersion.", false},
		{"collection-data", Warning, "A list of collection data names each namespace once, and each document has its own _id, as a server compares them.", false},
		{"namespace", Warning, "The name of a database or collection is not empty and has no zero byte.", false},
		{"duplicate-entity", Warning, "No two entities have the same id.", false},
		{"undefined-entity", Warning, "A referenced entity exists and has the required type.", true},
		{"unknown-operation", Warning, "The entity that an operation is performed on supports it.", true},
		{"unknown-argument", Warning, "An operation has no unknown arguments.", true},
		{"client-option", Error, "An option that only clients have is not an argument of an operation.", false},
		{"missing-argument", Warning, "An operation has all required arguments.", true},
		{"argument-value", Warning, "An argument that the test runner reads has the right type, returnDocument is Before or After, and the source of an upload is well-formed.", true},
		{"nested", Warning, "Operations, entities, events, write models and common options within arguments, and options of entities, are well-formed.", true},
		{"special-operation", Warning, "A test runner operation has no expected result or error.", false},
		{"fail-point", Error, "A fail point is a configureFailPoint command that servers accept: with a known name and mode.", false},
		{"fail-point-data", Warning, "A fail point has an effect, and servers read its keys, values and command names.",
			false},
		{"command-name", Warning, "Servers have the commands of expected and ignored events.", false},
		{"ambiguous-fail-point", Warning, "A fail point is not set through a client that can use several mongoses.", false},
		{"operator", Warning, "A special operator exists, is the only key of its document, and has a valid operand.", true},
		{"single-dollar", Warning, "An expected value does not have $exists or the like, where $$exists is meant.", false},
		{"placeholder", Warning, "$$placeholder only occurs in uriOptions and kmsProviders.", true},
		{"unobserved-event", Warning, "A client observes the events, log messages and spans expected of it.", false},
		{"repeated-expectation", Warning,
			"A test has one list of expected events for each client and event type, and one of log messages and one of spans for each client.", false},
		{"uri-option", Warning, "A client's uriOptions are known connection options.", false},
		{"api-version", Warning, "serverApi has a known version.", false},
		{"kms-credentials", Warning, "A KMS provider with credentials has all of them.", false},
		{"vacuous", Warning, "Every test must be able to fail.", false},
	}
}

// checkOf returns the check with a name. Any other rule is an error.
func checkOf(name string) Check {
	for _, c := range Checks() {
		if c.Name == name {
			return c
		}
	}
	return Check{Name: name}
}

// inspection decodes a file that its schema accepts, and collects its problems.
type inspection struct {
	suite    *Suite
	problems []Problem
	commands map[string]bool // that operations name; nil until needed
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

func (p place) each(visit func(place)) {
	for k := range p.Value.Elements() {
		visit(p.at(k))
	}
}

func (p place) fields() []source.Field {
	if p.exists() {
		return p.Fields
	}
	return nil
}

// walk visits a value and, if visit returns true, everything below it.
func walk(p place, visit func(place) bool) {
	if !p.exists() || !visit(p) {
		return
	}
	p.each(func(item place) { walk(item, visit) })
	for _, f := range p.Fields {
		walk(place{f.Value, p.path + "." + f.Key}, visit)
	}
}

func (i *inspection) report(rule string, p place, format string, args ...any) {
	i.reportAt(rule, p.Position, p.path, format, args...)
}

func (i *inspection) reportAt(rule string, at source.Position, path, format string, args ...any) {
	i.problems = append(i.problems, Problem{
		Position: at, Path: path, Rule: rule, Severity: checkOf(rule).Severity, Message: fmt.Sprintf(format, args...),
	})
}

// scope is the entity map at a point of a test, as far as it can be predicted.
type scope struct {
	kinds    map[string]entities.Kind   // by id
	observed map[string]map[string]bool // client to event types and logs
	many     map[string]bool            // clients with useMultipleMongoses
	test     *Test                      // nil for the entities of the file
}

// inspect checks a file in the order of execution, and sets the flaws of its tests.
func (i *inspection) inspect() {
	i.checkValues()
	i.checkCollectionData(i.root("initialData"))
	for _, p := range schema.Nested(i.suite.Root) {
		i.reportAt("nested", p.Position, p.Path, "%s", p.Message)
	}
	file := scope{map[string]entities.Kind{}, map[string]map[string]bool{}, map[string]bool{}, nil}
	i.create(i.root("createEntities"), file)
	lines := map[string]int{} // of descriptions
	for k, test := range i.suite.Tests {
		t := i.root("tests").at(k)
		if line, exists := lines[test.Description]; exists {
			i.report("duplicate-test", t.get("description"), "the test on line %d has the same description %q", line,
				test.Description)
		} else {
			lines[test.Description] = t.get("description").Position.Line
		}
		test.Entities = slices.Clone(i.suite.CreateEntities)
		i.test(t, scope{maps.Clone(file.kinds), maps.Clone(file.observed), maps.Clone(file.many), test})
	}
	slices.SortStableFunc(i.problems, func(a, b Problem) int { return a.Position.Compare(b.Position) })
	i.suite.addFlaws(i.problems)
}

// addFlaws adds to each test the problems that make it fail: its own, and the problems of the file's entities,
// which are created for each test.
func (s *Suite) addFlaws(problems []Problem) {
	for k, t := range s.Tests {
		within := fmt.Sprintf("tests[%d].", k)
		for _, p := range problems {
			path, inside := strings.CutPrefix(p.Path, within)
			if p.Path = path; checkOf(p.Rule).failsTest && (inside || strings.HasPrefix(path, "createEntities[")) {
				t.Errors = append(t.Errors, p)
			}
		}
		s.CannotPass += min(1, len(t.Errors))
	}
}

func (i *inspection) test(t place, s scope) {
	t.get("operations").each(func(o place) { i.operation(o, s) })
	i.checkCollectionData(t.get("outcome"))
	for _, list := range expectations {
		i.checkMatched(t.get(list.key))
		i.checkCommandNames(t.get(list.key))
		i.checkEntitiesOfOperators(t.get(list.key), s)
		t.get(list.key).each(func(e place) { i.refer(e.get("client"), s, entities.Client) })
	}
	i.checkObserved(t, s)
	i.checkRepeatedExpectations(t)
	i.checkVacuous(t)
}

func (i *inspection) create(list place, s scope) {
	if s.test != nil {
		s.test.Entities = append(s.test.Entities, DecodeEntities(list.Value)...)
	}
	list.each(func(element place) {
		for _, f := range element.Fields {
			entity := element.get(f.Key)
			if parent, path := entities.Kind(f.Key).Parent(); parent != "" {
				name := entity
				for _, key := range path {
					name = name.get(key)
				}
				i.refer(name, s, parent)
			}
			i.checkName(entity.get("databaseName"))
			i.checkName(entity.get("collectionName"))
			switch f.Key {
			case "client":
				s.observed[entity.Value.Get("id").Text()] = observed(entity)
				s.many[entity.Value.Get("id").Text()] = entity.Value.Get("useMultipleMongoses").IsTrue()
				i.checkClient(entity)
				entity.get("ignoreCommandMonitoringEvents").each(i.checkCommandName)
			case "clientEncryption":
				i.checkKMSCredentials(entity.get("clientEncryptionOpts"))
			case "session":
				// Unified Test Format, getSnapshotTime: snapshotTime names a saved value.
				i.refer(entity.get("sessionOptions").get("snapshotTime"), s, "")
			}
			i.define(entity.get("id"), s, entities.Kind(f.Key))
		}
	})
}

type step struct {
	place
	Step
}

// operation checks an operation and its nested operations, and defines the entities they create.
func (i *inspection) operation(o place, s scope) {
	st := step{o, Step{Operation: DecodeOperation(o.Value)}}
	arguments := o.get("arguments")
	if st.Object == string(entities.TestRunner) {
		st.Kind = entities.TestRunner
	} else {
		i.refer(o.get("object"), s, "", string(entities.TestRunner))
		st.Kind = s.kinds[st.Object]
	}
	st.Row, st.Known = operations.Lookup(st.Kind, st.Name)
	s.test.Steps = append(s.test.Steps, st.Step)
	i.checkOperationName(st)
	i.checkArguments(st, s)
	if st.Kind == entities.TestRunner {
		i.checkSpecialOperation(st, s)
	}
	i.checkFailPoints(st, s.test)
	i.checkCommandNames(arguments.get("event"))
	for _, key := range []string{"expectResult", "expectError"} {
		i.checkMatched(o.get(key))
		i.checkEntitiesOfOperators(o.get(key), s)
	}
	i.checkEntitiesOfOperators(arguments.get("event"), s)

	switch st.Name {
	case "createEntities":
		i.create(arguments.get("entities"), s)
	case "recordTopologyDescription":
		i.define(arguments.get("id"), s, entities.Topology)
	case "withTransaction":
		arguments.get("callback").each(func(inner place) { i.operation(inner, s) })
	case "runOnThread":
		if inner := arguments.get("operation"); inner.exists() {
			i.operation(inner, s)
		}
	}
	i.define(o.get("saveResultAsEntity"), s, st.Row.Result.Makes())
}
