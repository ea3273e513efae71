package specs

import (
	"maps"
	"slices"

	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
)

// logOf begins what stands for the log messages of a component, beside types
// of events.
const logOf = "log "

// testRunner is the object of special test operations.
const testRunner = "testRunner"

// scope is the entity map as far as it can be foreseen: what is defined at a
// point of a test.
type scope struct {
	kinds    map[string]string          // id to kind
	observed map[string]map[string]bool // client to event types and logs
	test     *Test                      // nil for the entities of the file
}

// newInspection goes through a file in the order of execution and notes each
// operation, each mention of an entity, and each id that is used again.
func newInspection(suite *Suite) *inspection {
	i := &inspection{suite: suite, ends: map[*source.Value]map[string]map[string]bool{}}
	file := scope{map[string]string{}, map[string]map[string]bool{}, nil}
	i.create(i.root("createEntities"), file)
	for k, test := range suite.Tests {
		t := i.root("tests").at(k)
		here := scope{maps.Clone(file.kinds), maps.Clone(file.observed), test}
		test.Entities = slices.Clone(suite.CreateEntities)
		t.get("operations").each(func(o place) { i.operation(o, here) })
		i.ends[t.Value] = here.observed
		i.entitiesOfOperators(t, here, "expectEvents", "expectLogMessages")
		for _, list := range []string{"expectEvents", "expectLogMessages", "expectTracingMessages"} {
			t.get(list).each(func(e place) { i.refer(e.get("client"), here, "client") })
		}
	}
	return i
}

func (i *inspection) refer(p place, s scope, want string) {
	if p.exists() && p.Kind == source.String {
		i.references = append(i.references, reference{p, want, s.kinds[p.String]})
	}
}

func (i *inspection) define(p place, s scope, kind string) {
	if !p.exists() || p.Kind != source.String {
		return
	}
	if _, again := s.kinds[p.String]; again {
		i.definitions = append(i.definitions, definition{p, p.String})
		return
	}
	s.kinds[p.String] = kind
}

func (i *inspection) create(list place, s scope) {
	if s.test != nil {
		s.test.Entities = append(s.test.Entities, DecodeEntities(list.Value)...)
	}
	list.each(func(element place) {
		for _, f := range element.Fields {
			entity := element.get(f.Key)
			if parent, has := operations.Parents[operations.Kind(f.Key)]; has {
				name := entity
				for _, key := range parent.Keys {
					name = name.get(key)
				}
				i.refer(name, s, string(parent.Kind))
			}
			switch f.Key {
			case "client":
				i.clients = append(i.clients, entity)
				types := map[string]bool{}
				for _, e := range entity.Value.Get("observeEvents").Elements() {
					types[e.Text()] = true
				}
				if logs := entity.get("observeLogMessages"); logs.exists() {
					for _, component := range logs.Fields {
						types[logOf+component.Key] = true
					}
				}
				s.observed[entity.Value.Get("id").Text()] = types
				i.encryption = append(i.encryption, entity.get("autoEncryptOpts"))
			case "clientEncryption":
				i.encryption = append(i.encryption, entity.get("clientEncryptionOpts"))
			case "session":
				// Unified Test Format, getSnapshotTime: names a saved value.
				i.refer(entity.get("sessionOptions").get("snapshotTime"), s, "")
			}
			i.define(entity.get("id"), s, f.Key)
		}
	})
}

func (i *inspection) operation(o place, s scope) {
	st := step{place: o, Step: Step{Operation: DecodeOperation(o.Value)}, observed: s.observed}
	arguments := o.get("arguments")
	if st.Object == testRunner {
		st.Kind = operations.TestRunner
	} else {
		i.refer(o.get("object"), s, "")
		st.Kind = operations.Kind(s.kinds[st.Object])
	}
	st.Row, st.Known = operations.Lookup(st.Kind, st.Name)
	s.test.Steps = append(s.test.Steps, st.Step)
	for _, a := range st.Row.Arguments {
		if a.Entity != "" {
			i.refer(arguments.get(a.Name), s, string(a.Entity))
		}
	}
	i.steps = append(i.steps, st)
	i.entitiesOfOperators(o, s, "expectResult", "expectError")
	i.entitiesOfOperators(arguments, s, "event")

	switch st.Name {
	case "createEntities":
		i.create(arguments.get("entities"), s)
	case "recordTopologyDescription":
		i.define(arguments.get("id"), s, string(operations.Topology))
	case "withTransaction":
		arguments.get("callback").each(func(inner place) { i.operation(inner, s) })
	case "runOnThread":
		if inner := arguments.get("operation"); inner.exists() {
			i.operation(inner, s)
		}
	}
	kind := operations.SavedValue
	switch {
	case st.Row.Result == operations.NewCursor:
		kind = operations.Cursor
	case st.Row.Result == operations.NewCollection:
		kind = operations.Collection
	}
	i.define(o.get("saveResultAsEntity"), s, string(kind))
}

// entitiesOfOperators notes the entities that $$matchesEntity and $$sessionLsid
// name in expectations.
func (i *inspection) entitiesOfOperators(of place, s scope, keys ...string) {
	for _, key := range keys {
		walk(of.get(key), func(p place) bool {
			if len(p.Fields) == 1 {
				i.refer(p.get("$$matchesEntity"), s, string(operations.SavedValue))
				i.refer(p.get("$$sessionLsid"), s, string(operations.Session))
			}
			return true
		})
	}
}

// everywhere walks a file, but for what test runners are not to use.
func (i *inspection) everywhere(visit func(place) bool) {
	for _, f := range i.suite.Root.Fields {
		if f.Key != "_yamlAnchors" {
			walk(place{f.Value, f.Key}, visit)
		}
	}
}

// walk visits a value and, where it says so, all that is below it.
func walk(p place, visit func(place) bool) {
	if !p.exists() || !visit(p) {
		return
	}
	p.each(func(item place) { walk(item, visit) })
	for _, f := range p.Fields {
		walk(place{f.Value, p.path + "." + f.Key}, visit)
	}
}
