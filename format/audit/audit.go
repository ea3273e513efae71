// Package audit is for utr only. It creates mutants: suites with a wrong expectation. Tests and utr audit expect every
// mutant to fail, because a runner that passes one does not check that expectation.
package audit

import (
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/format/source"
)

// Mutant is a suite of one test with one changed expectation.
type Mutant struct {
	TestPosition source.Position // of the test
	Path         string          // of the change, such as expectEvents[0].events[1]
	Position     source.Position // of the change
	Change       string          // such as "7 became 8"
	Whole        bool            // a list or document changed, so a message can also name a line inside it
	Root         *source.Value   // a copy of the file with only this test
}

// Place is a place of a suite without a mutant, because by a rule of the format the test may still pass.
type Place struct {
	TestPosition source.Position
	Rule         string
}

// Mutants returns all mutants of a suite in file order, and the places without one. A test that passes unchanged must
// fail in each mutant.
func Mutants(root *source.Value) ([]Mutant, []Place) {
	var out []Mutant
	var unchanged []Place
	tests := root.Get("tests")
	for _, test := range tests.Elements() {
		test = clone(test) // a YAML alias is one value in several places
		emit := func(path string, at *source.Value, change string, changed *source.Value) {
			if changed == nil {
				unchanged = append(unchanged, Place{test.Position, change})
				return
			}
			kept := *at
			*at = *changed
			items := []*source.Value{clone(test)}
			*at = kept
			out = append(out, Mutant{
				TestPosition: test.Position,
				Path:         path,
				Position:     at.Position,
				Change:       change,
				Whole:        at.Kind == source.Array || at.Kind == source.Document,
				Root:         root.With("tests", &source.Value{Position: tests.Position, Kind: source.Array, Items: items}),
			})
		}
		ofTest(test, emit)
	}
	return out, unchanged
}

// emitter receives one change: at, the node at path, is replaced with changed. If changed is nil there is no mutant, by
// the rule in change.
type emitter func(path string, at *source.Value, change string, changed *source.Value)

func ofTest(test *source.Value, emit emitter) {
	for i, e := range test.Get("expectEvents").Elements() {
		path := fmt.Sprintf("expectEvents[%d]", i)
		ofEventList(path+".events", e.Get("events"), e.Get("ignoreExtraEvents").IsTrue(), emit)
	}
	for i, e := range test.Get("expectLogMessages").Elements() {
		path, messages := fmt.Sprintf("expectLogMessages[%d].messages", i), e.Get("messages")
		if e.Get("ignoreExtraMessages").IsTrue() {
			emit(path, messages, "ignoreExtraMessages: more messages are allowed", nil)
		} else {
			ofList(path, messages, emit)
		}
		for j, m := range messages.Elements() {
			ofLeaves(fmt.Sprintf("%s[%d]", path, j), m, emit)
		}
	}
	for i, e := range test.Get("expectTracingMessages").Elements() {
		ofSpans(fmt.Sprintf("expectTracingMessages[%d].spans", i), e.Get("spans"), e.Get("ignoreExtraSpans").IsTrue(), emit)
	}
	for i, o := range test.Get("operations").Elements() {
		ofOperation(fmt.Sprintf("operations[%d]", i), o, emit)
	}
	for i, c := range test.Get("outcome").Elements() {
		ofLeaves(fmt.Sprintf("outcome[%d].documents", i), c.Get("documents"), emit)
	}
}

func ofOperation(path string, o *source.Value, emit emitter) {
	switch {
	case o.Get("ignoreResultAndError").IsTrue():
		emit(path, o, "ignoreResultAndError: result and error are not checked", nil)
		return
	case o.Get("object").String == "testRunner":
		emit(path, o, "a test runner operation has no expected result or error", nil)
		return
	}
	want, fails := o.Get("expectResult"), o.Get("expectError")
	switch {
	case fails != nil:
		emit(path, o, "expectError was dropped", o.With("expectError", nil))
		ofError(path+".expectError", fails, emit)
	case want != nil:
		if want.Kind == source.Array {
			ofList(path+".expectResult", want, emit)
		}
		ofLeaves(path+".expectResult", want, emit)
	case o.Get("saveResultAsEntity") == nil:
		emit(path, o, "expectError was added",
			o.With("expectError", document(o.Position, "isError", boolean(o.Position, true))))
	}
}

// ofError changes every assertion of an expectedError to one that the error does not meet.
func ofError(path string, e *source.Value, emit emitter) {
	for _, f := range e.Fields {
		at := path + "." + f.Key
		switch f.Key {
		case "isClientError", "isTimeoutError":
			emit(at, f.Value, "was negated", boolean(f.Value.Position, !f.Value.Bool))
		case "errorContains", "errorCode", "errorCodeName", "errorResponse", "expectResult", "writeErrors",
			"writeConcernErrors":
			ofLeaves(at, f.Value, emit)
		case "errorLabelsContain":
			emit(at, f.Value, "another label was required", appended(f.Value, str(f.Value.Position, "NoSuchLabel")))
		case "errorLabelsOmit":
			if contained := e.Get("errorLabelsContain"); contained != nil && len(contained.Items) > 0 {
				emit(at, f.Value, "a required label was forbidden", appended(f.Value, contained.Items[0]))
			}
		}
	}
	for _, added := range []source.Field{
		{Key: "errorCode", Value: &source.Value{Position: e.Position, Kind: source.Int, Int: 987654}},
		{Key: "errorContains", Value: str(e.Position, "no such text in any error")},
		{Key: "errorLabelsContain", Value: list(e, str(e.Position, "NoSuchLabel"))},
	} {
		if e.Get(added.Key) == nil {
			emit(path, e, added.Key+" was added", e.With(added.Key, added.Value))
		}
	}
}

func ofEventList(path string, events *source.Value, extra bool, emit emitter) {
	if events == nil {
		return
	}
	n := len(events.Items)
	if n > 0 && extra {
		emit(path, events, "ignoreExtraEvents: more events are allowed", nil)
	}
	if n > 0 && !extra {
		emit(path, events, "the last event was dropped", list(events, events.Items[:n-1]...))
		emit(path, events, "the first event was dropped", list(events, events.Items[1:]...))
		emit(path, events, "the last event was duplicated", appended(events, events.Items[n-1]))
	}
	for i := range n - 1 {
		// Swapped events differ unless one meets all assertions of the other.
		if a, b := events.Items[i], events.Items[i+1]; !covers(a, b) && !covers(b, a) {
			swapped := slices.Clone(events.Items)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			emit(path, events, fmt.Sprintf("events %d and %d were swapped", i, i+1), list(events, swapped...))
		}
	}
	for i, e := range events.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if len(e.Fields) != 1 {
			continue
		}
		name, body := e.Fields[0].Key, e.Fields[0].Value
		if other := otherEvent[name]; other != "" {
			kept := *body
			kept.Fields = slices.DeleteFunc(slices.Clone(body.Fields), func(f source.Field) bool {
				return f.Key != "commandName" && f.Key != "databaseName"
			})
			emit(at, e, name+" became "+other, document(e.Position, other, &kept))
		}
		ofLeaves(at+"."+name, body, emit)
		if command := body.Get("command"); command != nil {
			emit(at+"."+name+".command", command, "a field that no command has was required",
				command.With("noSuchField", boolean(command.Position, true)))
		}
	}
}

// ofSpans changes the spans of one level, and those nested in them. No list of spans may be empty.
func ofSpans(path string, spans *source.Value, extra bool, emit emitter) {
	n := len(spans.Elements())
	switch {
	case n > 0 && extra:
		emit(path, spans, "ignoreExtraSpans: more spans are allowed", nil)
	case n > 1:
		emit(path, spans, "the last span was dropped", list(spans, spans.Items[:n-1]...))
		emit(path, spans, "the first span was dropped", list(spans, spans.Items[1:]...))
	}
	if n > 0 {
		missing := document(spans.Position, "name", str(spans.Position, "no such span")).
			With("attributes", &source.Value{Position: spans.Position, Kind: source.Document})
		emit(path, spans, "a span that does not exist was required", appended(spans, missing))
	}
	for i := range n - 1 {
		if a, b := spans.Items[i], spans.Items[i+1]; !covers(a, b) && !covers(b, a) {
			swapped := slices.Clone(spans.Items)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			emit(path, spans, fmt.Sprintf("spans %d and %d were swapped", i, i+1), list(spans, swapped...))
		}
	}
	for i, s := range spans.Elements() {
		at := fmt.Sprintf("%s[%d]", path, i)
		ofLeaves(at+".name", s.Get("name"), emit)
		ofLeaves(at+".attributes", s.Get("attributes"), emit)
		if nested := s.Get("nested"); nested != nil {
			if !extra {
				emit(at, s, "the nested spans were dropped", s.With("nested", nil))
			}
			ofSpans(at+".nested", nested, extra, emit)
		}
	}
}

// otherEvent maps events to events that cannot occur in their place.
var otherEvent = map[string]string{
	"commandStartedEvent":            "commandSucceededEvent",
	"commandSucceededEvent":          "commandFailedEvent",
	"commandFailedEvent":             "commandSucceededEvent",
	"poolClearedEvent":               "poolClosedEvent",
	"connectionCheckOutStartedEvent": "connectionCheckedInEvent",
	"connectionCheckedOutEvent":      "connectionCheckOutFailedEvent",
	"connectionClosedEvent":          "connectionCreatedEvent",
}

// ofLeaves changes every scalar below a value, and the length of every array. It does nothing for nil.
func ofLeaves(path string, v *source.Value, emit emitter) {
	if v == nil {
		return
	}
	switch v.Kind {
	case source.Document:
		for _, f := range v.Fields {
			at := path + "." + f.Key
			switch f.Key {
			case "$$exists", "hasServiceId", "hasServerConnectionId", "failureIsRedacted":
				emit(at, f.Value, "was negated", boolean(f.Value.Position, !f.Value.Bool))
			case "$$type", "$$lte", "$$placeholder", "$$matchesEntity", "$$sessionLsid":
				emit(at, f.Value, f.Key+": another operand can match, too, or is invalid", nil)
			case "$$unsetOrMatches":
				emit(at, f.Value, f.Key+": the value may be missing", nil)
			default:
				ofLeaves(at, f.Value, emit)
			}
		}
	case source.Array:
		ofList(path, v, emit)
		for i, item := range v.Items {
			ofLeaves(fmt.Sprintf("%s[%d]", path, i), item, emit)
		}
	case source.Int:
		emit(path, v, fmt.Sprintf("%d became %d", v.Int, v.Int+1),
			&source.Value{Position: v.Position, Kind: source.Int, Int: v.Int + 1})
		emit(path, v, fmt.Sprintf("%d became %d.5", v.Int, v.Int),
			&source.Value{Position: v.Position, Kind: source.Float, Float: float64(v.Int) + 0.5})
	case source.Float:
		emit(path, v, fmt.Sprintf("%v became %v", v.Float, v.Float+1),
			&source.Value{Position: v.Position, Kind: source.Float, Float: v.Float + 1})
	case source.String:
		emit(path, v, fmt.Sprintf("%q became %q", v.String, v.String+"x"), str(v.Position, v.String+"x"))
	case source.Bool:
		emit(path, v, fmt.Sprintf("%t was negated", v.Bool), boolean(v.Position, !v.Bool))
	case source.Null:
		emit(path, v, "null became 1", &source.Value{Position: v.Position, Kind: source.Int, Int: 1})
	}
}

func ofList(path string, v *source.Value, emit emitter) {
	if n := len(v.Items); n > 0 {
		emit(path, v, "the last element was dropped", list(v, v.Items[:n-1]...))
		emit(path, v, "the last element was duplicated", appended(v, v.Items[n-1]))
	} else {
		emit(path, v, "an element was added", appended(v, document(v.Position, "_id", str(v.Position, "no such document"))))
	}
}

func boolean(p source.Position, b bool) *source.Value {
	return &source.Value{Position: p, Kind: source.Bool, Bool: b}
}

func str(p source.Position, s string) *source.Value {
	return &source.Value{Position: p, Kind: source.String, String: s}
}

func document(p source.Position, key string, v *source.Value) *source.Value {
	return &source.Value{Position: p, Kind: source.Document, Fields: []source.Field{{Key: key, KeyPosition: p, Value: v}}}
}

func list(like *source.Value, items ...*source.Value) *source.Value {
	return &source.Value{Position: like.Position, Kind: source.Array, Items: items}
}

func appended(v, item *source.Value) *source.Value {
	return list(v, slices.Concat(v.Items, []*source.Value{item})...)
}

func clone(v *source.Value) *source.Value {
	out := *v
	out.Fields, out.Items = nil, nil
	for _, f := range v.Fields {
		f.Value = clone(f.Value)
		out.Fields = append(out.Fields, f)
	}
	for _, item := range v.Items {
		out.Items = append(out.Items, clone(item))
	}
	return &out
}

// covers reports whether b meets all assertions of a.
func covers(a, b *source.Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case source.Document:
		return !slices.ContainsFunc(a.Fields,
			func(f source.Field) bool { return b.Get(f.Key) == nil || !covers(f.Value, b.Get(f.Key)) })
	case source.Array:
		return slices.EqualFunc(a.Items, b.Items, covers)
	default:
		return a.Bool == b.Bool && a.Int == b.Int && a.Float == b.Float && a.String == b.String
	}
}
