package matchers

import (
	"cmp"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// Entities is what a match needs of the entity map. An undefined entity or
// one of another type is an error, and the error becomes a mismatch: no
// expectation that names such an entity ever holds.
type Entities interface {
	// BSON gives a BSON entity, for $$matchesEntity.
	BSON(name string) (bson.RawValue, error)
	// LSID gives the logical session id of a session entity, for
	// $$sessionLsid.
	LSID(name string) (bson.Raw, error)
}

// Shape says which documents of a value are root-level: the only ones that
// may hold more fields than expected ("Allowing Extra Fields in Root-level
// Documents").
type Shape uint8

// The shapes of a value.
const (
	// Nested: no document is root-level. For results of distinct and the
	// like.
	Nested Shape = iota
	// RootDocument: the value itself is, if it is a document.
	RootDocument
	// RootDocuments: the elements of the value are, if it is an array. For
	// iterables of documents: find, aggregate, listIndexes, …
	RootDocuments
)

// Matcher compares expectations with what was seen. It is cheap to make, is
// made for one assertion, and is not for concurrent use. All methods return
// every mismatch that there is, and none if the expectation holds.
type Matcher struct {
	entities Entities
}

// New makes a matcher. Entities may be nil where no expectation names an
// entity; one that does is then a mismatch.
func New(entities Entities) *Matcher { return &Matcher{entities: entities} }

// Expectation is what a test says of the end of one operation.
type Expectation struct {
	Position source.Position // of the operation
	Error    *source.Value   // expectError, nil if absent
	Result   *source.Value   // expectResult, nil if absent
	Shape    Shape           // of what the operation returns
	// Aggregates is true for operations that raise a BulkWriteException
	// (collection bulkWrite and insertMany, not clientBulkWrite): for them
	// errorContains and errorCodeName also examine the write errors and write
	// concern errors.
	Aggregates bool
}

// Value matches a value, under path in messages. The zero RawValue as actual
// means that there is no value, which is not the same as null.
func (m *Matcher) Value(path string, expected *source.Value, actual bson.RawValue, shape Shape) []result.Mismatch {
	k := m.compiler(path)
	n := k.value(expected, atTop)
	return k.finish(func(c *comparison) { c.match(n, actual, shape) })
}

// Outcome matches the end of an operation: expectError, or else no error and
// expectResult. path is that of the operation ("operations[3]").
func (m *Matcher) Outcome(path string, expected Expectation, actual result.Outcome) []result.Mismatch {
	k := m.compiler(path)
	if expected.Error != nil {
		k.path.key("expectError")
		x := k.expectedError(expected.Error)
		return k.finish(func(c *comparison) { matchError(c, x, actual, expected) })
	}
	var n *node
	if expected.Result != nil {
		k.path.key("expectResult")
		n = k.value(expected.Result, atTop)
	}
	return k.finish(func(c *comparison) {
		switch {
		case actual.Err != nil:
			c.say(expected.Position, "no error", describeError(actual.Err), "the operation raised an error")
		case n != nil:
			c.match(n, actual.Value, expected.Shape)
		}
	})
}

// Events matches the events of one client against an expectedEventsForClient.
// actual is its log in order; events of other monitors than that of the eventType
// are passed over, ignored and unobserved ones have been left out before. An
// observed event of a type that the format does not know is a mismatch.
func (m *Matcher) Events(path string, expected *source.Value, actual []result.Event) []result.Mismatch {
	k := m.compiler(path)
	monitor := cmp.Or(result.Monitor(expected.Get("eventType").Text()), result.MonitorCommand)
	if result.EventTypes(monitor) == nil {
		k.path.atKey("eventType", func() { k.faultOf(expected.Get("eventType"), "unknown eventType") })
		monitor = ""
	}
	at := expected.Get("events").Position
	var want []eventExpectation
	k.path.key("events")
	k.list(expected.Get("events"), func(v *source.Value) { want = append(want, k.expectedEvent(v, monitor)) })
	got, unknown := observed(actual, monitor)
	return k.finish(func(c *comparison) {
		for _, e := range unknown {
			c.say(at, nothing, describeEvent(e), "observed an event of the unknown type %q", e.Type)
		}
		allowExtra := expected.Get("ignoreExtraEvents").IsTrue()
		sequence[eventExpectation, *result.Event]{"event", at, want, got, allowExtra, describeEvent}.compare(c)
	})
}

// Count says how many of the events match an expectedEvent, for waitForEvent
// and assertEventCount. The mismatches are faults of the expected event
// itself (an unknown event type or field, an undefined entity): if there are
// any, the count means nothing and the test has failed.
func (m *Matcher) Count(path string, expected *source.Value, actual []result.Event) (int, []result.Mismatch) {
	k := m.compiler(path)
	x := k.expectedEvent(expected, "")
	if len(k.faults) > 0 {
		return 0, k.faults
	}
	n := 0
	for i := range actual {
		if passes(func(c *comparison) { x.match(c, &actual[i]) }) {
			n++
		}
	}
	return n, nil
}

// LogMessages matches the log messages of one client against an
// expectedLogMessagesForClient.
func (m *Matcher) LogMessages(path string, expected *source.Value, actual []result.LogMessage) []result.Mismatch {
	k := m.compiler(path)
	var want, ignored []logExpectation
	at := expected.Position
	allowExtra := false
	messages := func(list *[]logExpectation) func(*source.Value) {
		return func(v *source.Value) {
			k.list(v, func(item *source.Value) { *list = append(*list, k.expectedLogMessage(item)) })
		}
	}
	read := map[string]func(*source.Value){
		"client":              func(v *source.Value) { k.string(v) },
		"messages":            func(v *source.Value) { at = v.Position; messages(&want)(v) },
		"ignoreMessages":      messages(&ignored),
		"ignoreExtraMessages": func(v *source.Value) { allowExtra = k.bool(v) },
	}
	k.each(expected, func(f source.Field) bool {
		if read[f.Key] != nil {
			read[f.Key](f.Value)
		}
		return read[f.Key] != nil
	})
	if expected.Get("messages") == nil {
		k.fault(at, expected.JSON(), "expectLogMessages requires messages")
	}
	return k.finish(func(c *comparison) {
		c.path.key("messages")
		var got []*result.LogMessage
		for i := range actual {
			matches := func(x logExpectation) bool { return passes(func(c *comparison) { x.match(c, &actual[i]) }) }
			if !slices.ContainsFunc(ignored, matches) {
				got = append(got, &actual[i])
			}
		}
		sequence[logExpectation, *result.LogMessage]{"log message", at, want, got, allowExtra, describeLog}.compare(c)
	})
}

// Collection matches the contents of a collection, sorted by _id, against the
// documents of an outcome; path is theirs ("outcome[0].documents"), at the
// position of the collectionData. The documents must be the same, with the
// same BSON types; only the order of keys is free, and special operators mean
// nothing.
func (m *Matcher) Collection(path string, at source.Position, expected []*source.Value, actual []bson.Raw) []result.Mismatch {
	k := m.compiler(path)
	k.exact = true
	want := make([]documentExpectation, len(expected))
	for i, v := range expected {
		k.path.atIndex(i, func() { want[i] = documentExpectation{k.document(v)} })
	}
	describe := func(got bson.Raw) string { return abridge(Extended(document(got), false)) }
	return k.finish(func(c *comparison) {
		sequence[documentExpectation, bson.Raw]{"document", at, want, actual, false, describe}.compare(c)
	})
}

type documentExpectation struct{ node *node }

func (d documentExpectation) match(c *comparison, got bson.Raw) {
	c.match(d.node, document(got), Nested)
}
func (d documentExpectation) at() source.Position { return d.node.at }
func (d documentExpectation) text() string        { return abridge(wanted(d.node, false)) }

func (d documentExpectation) alike(got bson.Raw) bool {
	t, ok := d.node.test.(*fields)
	if !ok {
		return false
	}
	i, ok := t.byKey["_id"]
	return ok && t.nodes[i].value.Type != 0 && exactly(t.nodes[i].value, lookup(got, "_id"))
}

func (m *Matcher) compiler(base string) *compiler {
	return &compiler{entities: m.entities, path: path{base: base}}
}

// finish compares, unless there are faults, and renders.
func (k *compiler) finish(compare func(*comparison)) []result.Mismatch {
	if len(k.faults) > 0 {
		return k.faults
	}
	c := comparison{path: k.path}
	compare(&c)
	return render(c.differences)
}
