package schema

import "github.com/unified-test-runner/utr/source"

// What a minor version brought and its JSON schema does not show: the names
// of operations, the operators of expected values, and what is inside of the
// arguments of operations. From the format's changelog. It bears on
// [Set.LowestFor] and [Set.Nested], not on validation.

// newOperation is an operation that came later than 1.0. Operations of other
// specifications came without a new version (section "Incorporate referenced
// entity operations into the schema version").
type newOperation struct {
	object string // empty: any
	name   string
	from   int
}

func newOperations() []newOperation {
	return []newOperation{
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
}

// newOperators gives the operators of "Special Operators for Matching
// Assertions" that came later than 1.0.
func newOperators() map[string]int {
	return map[string]int{
		"$$lte":             9,
		"$$matchAsDocument": 13,
		"$$matchAsRoot":     13,
	}
}

// placeholdersInURIOptions is the version that has clients take $$placeholder
// in uriOptions.
const placeholdersInURIOptions = 19

// Nested gives what is wrong with what stands in the arguments of operations
// and is modelled elsewhere in the format: the operations of threads and of
// callbacks, entities, and events to wait for. The schemas do not look there,
// so a key that is misspelt, an assertion for example, would go unnoticed.
// It is held against the newest version, whatever the file declares.
func (s *Set) Nested(root *source.Value) []Problem {
	if root == nil {
		return nil
	}
	w := &walk{format: s.format, homes: s.homes, declared: newest, granted: unlisted}
	w.unseen(root)
	return w.problems
}

// inArguments gives what an argument of an operation contains that is
// modelled elsewhere in the format.
func inArguments(operation, argument string) (shape, bool) {
	s, ok := map[[2]string]shape{
		{"createEntities", "entities"}:  someOf(reference("entity")),
		{"runOnThread", "operation"}:    reference("operation"),
		{"loop", "operations"}:          listOf(reference("operation")),
		{"withTransaction", "callback"}: listOf(reference("operation")),
		{"waitForEvent", "event"}:       anyEvent{},
		{"assertEventCount", "event"}:   anyEvent{},
	}[[2]string{operation, argument}]
	return s, ok
}

// anyEvent is the shape of an event whose type is told by its key alone.
type anyEvent struct{ anything }

func (anyEvent) explain(w *walk, v *source.Value) {
	for _, name := range [...]string{"expectedCommandEvent", "expectedCmapEvent", "expectedSdamEvent"} {
		o := w.format[name].(object)
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
func (w *walk) unseenOperation(op *source.Value) {
	name, arguments := op.Get("name"), op.Get("arguments")
	if name == nil || name.Kind != source.String {
		return
	}
	for _, n := range newOperations() {
		object := op.Get("object")
		if n.name == name.String && (n.object == "" || object != nil && n.object == object.String) {
			leave := w.down(".name")
			defer w.since(n.from, name.Position, "operation "+n.name)()
			leave()
		}
	}
	if arguments == nil {
		return
	}
	defer w.down(".arguments")()
	for _, f := range arguments.Fields {
		leave := w.down(step(f.Key))
		if s, ok := inArguments(name.String, f.Key); ok {
			s.explain(w, f.Value)
			w.unseenIn(s, f.Value)
		}
		leave()
	}
}

// unseenIn does the same of operations and entities wherever a shape has
// them, and of the operators in all the rest.
func (w *walk) unseenIn(s shape, v *source.Value) {
	switch l, isList := s.(list); {
	case isList:
		for i, item := range v.Items {
			leave := w.down(index(i))
			w.unseenIn(l.of, item)
			leave()
		}
	case s == reference("operation"):
		w.unseenOperation(v)
	case s == reference("entity"):
		w.unseenEntity(v)
	}
}

// unseenEntity reports placeholders in the uriOptions of a client.
func (w *walk) unseenEntity(entity *source.Value) {
	options := entity.Get("client").Get("uriOptions")
	if options == nil {
		return
	}
	defer w.down(".client.uriOptions")()
	for _, f := range options.Fields {
		if p := f.Value.Field("$$placeholder"); p != nil {
			leave := w.down(step(f.Key))
			w.since(placeholdersInURIOptions, p.KeyPosition, "$$placeholder in uriOptions")()
			leave()
		}
	}
}

// unseenOperators reports the operators in a value.
func (w *walk) unseenOperators(operators map[string]int, v *source.Value) {
	for i, item := range v.Items {
		leave := w.down(index(i))
		w.unseenOperators(operators, item)
		leave()
	}
	for _, f := range v.Fields {
		leave := w.down(step(f.Key))
		if from, ok := operators[f.Key]; ok {
			w.since(from, f.KeyPosition, "operator "+f.Key)()
		}
		w.unseenOperators(operators, f.Value)
		leave()
	}
}

// unseen reports all of it in a file.
func (w *walk) unseen(root *source.Value) {
	if entities := root.Get("createEntities"); entities != nil {
		leave := w.down(".createEntities")
		w.unseenIn(listOf(reference("entity")), entities)
		leave()
	}
	tests := root.Get("tests")
	if tests == nil {
		return
	}
	operators := newOperators()
	defer w.down(".tests")()
	for i, test := range tests.Items {
		leaveTest := w.down(index(i))
		for _, f := range test.Fields {
			leave := w.down(step(f.Key))
			switch f.Key {
			case "operations":
				w.unseenIn(listOf(reference("operation")), f.Value)
				w.unseenOperators(operators, f.Value)
			case "expectEvents", "expectLogMessages", "expectTracingMessages":
				w.unseenOperators(operators, f.Value)
			}
			leave()
		}
		leaveTest()
	}
}
