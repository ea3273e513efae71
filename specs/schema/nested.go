package schema

import "github.com/unified-test-runner/utr/source"

// Nested gives what is wrong with what stands in the arguments of operations
// and is modelled elsewhere in the format: the operations of threads and of
// callbacks, entities, and events to wait for. The schemas do not look there,
// so a key that is misspelt, an assertion for example, would go unnoticed.
// The newest version applies, whatever the file declares.
func Nested(root *source.Value) []Problem {
	w := walk{declared: newest, granted: unlisted, problems: new([]Problem)}
	for i, test := range root.Get("tests").Elements() {
		if operations := test.Get("operations"); operations != nil {
			w.key("tests").index(i).key("operations").nestedIn(listOf(reference("operation")), operations)
		}
	}
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

// anyEvent is the shape of an event whose type is known by its key alone.
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

// nestedIn reports what is wrong in the arguments of an operation, or of each of a
// list, at the walk's place.
func (w walk) nestedIn(s shape, v *source.Value) {
	if l, isList := s.(list); isList {
		for i, item := range v.Items {
			w.index(i).nestedIn(l.of, item)
		}
		return
	}
	if s != reference("operation") {
		return
	}
	if arguments := v.Get("arguments"); arguments != nil {
		for _, f := range arguments.Fields {
			if s, ok := inArguments[[2]string{v.Get("name").Text(), f.Key}]; ok {
				inside := w.key("arguments").key(f.Key)
				s.explain(inside, f.Value)
				inside.nestedIn(s, f.Value)
			}
		}
	}
}
