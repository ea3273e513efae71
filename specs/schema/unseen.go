package schema

import "github.com/unified-test-runner/utr/source"

// What a minor version brought and its JSON schema does not show: the names
// of operations, the operators of expected values, and what is inside of the
// arguments of operations. From the format's changelog. It is used by
// [Lowest] and [Nested], not by validation.

// newOperation is an operation that came later than 1.0. Operations of other
// specifications came without a new version (section "Incorporate referenced
// entity operations into the schema version").
type newOperation struct {
	object string // empty: any
	name   string
	from   int
}

var newOperations = []newOperation{
	{"testRunner", "loop", 2},
	{"testRunner", "assertNumberConnectionsCheckedOut", 3},
	{"", "createFindCursor", 3},
	{"testRunner", "createEntities", 9},
	{"testRunner", "assertEventCount", 10},
	{"testRunner", "assertTopologyType", 10},
	{"testRunner", "recordTopologyDescription", 10},
	{"testRunner", "runOnThread", 10},
	{"testRunner", "wait", 10},
	{"testRunner", "waitForEvent", 10},
	{"testRunner", "waitForPrimaryChange", 10},
	{"testRunner", "waitForThread", 10},
}

// newOperators are the operators of "Special Operators for Matching
// Assertions" that came later than 1.0.
var newOperators = map[string]int{"$$lte": 9, "$$matchAsDocument": 13, "$$matchAsRoot": 13}

// placeholdersInURIOptions is the version that has clients take $$placeholder
// in uriOptions.
const placeholdersInURIOptions = 19

// Nested gives what is wrong with what stands in the arguments of operations
// and is modelled elsewhere in the format: the operations of threads and of
// callbacks, entities, and events to wait for. The schemas do not look there,
// so a key that is misspelt, an assertion for example, would go unnoticed.
// The newest version applies, whatever the file declares.
func Nested(root *source.Value) []Problem {
	w := walk{declared: newest, granted: unlisted, problems: new([]Problem)}
	w.unseen(root)
	return *w.problems
}

// inArguments are the arguments of operations, by both names, that contain
// what is modelled elsewhere in the format.
var inArguments = map[[2]string]shape{
	{"createEntities", "entities"}:  someOf(reference("entity")),
	{"runOnThread", "operation"}:    reference("operation"),
	{"loop", "operations"}:          listOf(reference("operation")),
	{"withTransaction", "callback"}: listOf(reference("operation")),
	{"waitForEvent", "event"}:       anyEvent{},
	{"assertEventCount", "event"}:   anyEvent{},
}

// anyEvent is the shape of an event whose type is told by its key alone.
type anyEvent struct{ anything }

func (anyEvent) explain(w walk, v *source.Value) {
	for _, name := range [...]string{"expectedCommandEvent", "expectedCmapEvent", "expectedSdamEvent"} {
		o := format[name].(object)
		for _, f := range o.fields {
			if v.Get(f.name) != nil {
				o.explain(w, v)
				return
			}
		}
	}
}

// unseenOperation reports what an operation, at the walk's place, needs beyond what
// its schema shows.
func (w walk) unseenOperation(op *source.Value) {
	name, object := op.Get("name"), op.Get("object")
	if name == nil || name.Kind != source.String {
		return
	}
	for _, n := range newOperations {
		if n.name == name.String && (n.object == "" || object != nil && n.object == object.String) {
			w.granted = w.key("name").since(n.from, name.Position, "operation "+n.name).granted
		}
	}
	if arguments := op.Get("arguments"); arguments != nil {
		for _, f := range arguments.Fields {
			if s, ok := inArguments[[2]string{name.String, f.Key}]; ok {
				inside := w.key("arguments").key(f.Key)
				s.explain(inside, f.Value)
				inside.unseenIn(s, f.Value)
			}
		}
	}
}

// unseenIn does the same of operations and entities wherever a shape has
// them.
func (w walk) unseenIn(s shape, v *source.Value) {
	switch l, isList := s.(list); {
	case isList:
		for i, item := range v.Items {
			w.index(i).unseenIn(l.of, item)
		}
	case s == reference("operation"):
		w.unseenOperation(v)
	case s == reference("entity"):
		w.unseenEntity(v)
	}
}

// unseenEntity reports placeholders in the uriOptions of a client.
func (w walk) unseenEntity(entity *source.Value) {
	if options := entity.Get("client").Get("uriOptions"); options != nil {
		for _, f := range options.Fields {
			if p := f.Value.Field("$$placeholder"); p != nil {
				w.key("client").key("uriOptions").key(f.Key).since(placeholdersInURIOptions, p.KeyPosition, "$$placeholder in uriOptions")
			}
		}
	}
}

func (w walk) unseenOperators(v *source.Value) {
	for i, item := range v.Items {
		w.index(i).unseenOperators(item)
	}
	for _, f := range v.Fields {
		inside := w.key(f.Key)
		if from, ok := newOperators[f.Key]; ok {
			inside.since(from, f.KeyPosition, "operator "+f.Key)
		}
		inside.unseenOperators(f.Value)
	}
}

// unseen reports all of it in a file.
func (w walk) unseen(root *source.Value) {
	if entities := root.Get("createEntities"); entities != nil {
		w.key("createEntities").unseenIn(listOf(reference("entity")), entities)
	}
	tests := root.Get("tests")
	if tests == nil {
		return
	}
	for i, test := range tests.Items {
		for _, f := range test.Fields {
			inside := w.key("tests").index(i).key(f.Key)
			switch f.Key {
			case "operations":
				inside.unseenIn(listOf(reference("operation")), f.Value)
				inside.unseenOperators(f.Value)
			case "expectEvents", "expectLogMessages", "expectTracingMessages":
				inside.unseenOperators(f.Value)
			}
		}
	}
}
