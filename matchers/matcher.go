package matchers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// Entities provides entities to a Matcher. For an undefined entity, or an entity of another type, it returns an error.
// The error becomes a mismatch.
type Entities interface {
	// BSON returns a BSON entity, for $$matchesEntity.
	BSON(name string) (bson.RawValue, error)
	// LSID returns the logical session id of a session, for $$sessionLsid.
	LSID(name string) (bson.RawValue, error)
}

// ofElements returns the shape of the elements of an array.
func ofElements(s operations.Shape) operations.Shape {
	if s == operations.RootDocuments {
		return operations.RootDocument
	}
	return operations.Value
}

// Matcher compares an expectation with an actual value. A Matcher is for one assertion, and must not be used
// concurrently. All methods return all mismatches, or nil if the expectation is met.
type Matcher struct {
	entities Entities
	known    map[string]*source.Value // entities by operator and name; nil if undefined
	inEntity *source.Value            // name of the entity whose content is compared
	exact    bool                     // no special operators and flexible numerics
	path     string                   // in the test

	quiet      bool // set differs only
	differs    bool
	mismatches []result.Mismatch
	faults     []result.Mismatch // undefined entities; they replace all mismatches
}

// New returns a matcher. With nil entities, any reference to an entity is a mismatch.
func New(entities Entities) *Matcher {
	return &Matcher{entities: entities, known: make(map[string]*source.Value)}
}

// Expectation is the expected outcome of an operation.
type Expectation struct {
	Position source.Position  // of the operation
	Error    *source.Value    // expectError, nil if absent
	Result   *source.Value    // expectResult, nil if absent
	Shape    operations.Shape // of the result
	// Aggregates is true for operations that raise a BulkWriteException (bulkWrite
	// and insertMany of a collection, not clientBulkWrite): errorContains and
	// errorCodeName then also apply to its write errors and write concern errors.
	Aggregates bool
}

// Value matches a value at a path. The zero RawValue is a missing value, and not null. The shape says which documents
// are root-level and may have extra fields ("Allowing Extra Fields in Root-level Documents").
func (m *Matcher) Value(path string, expected *source.Value, actual bson.RawValue, shape operations.Shape) []result.Mismatch {
	return m.found(path, "", func() { m.match(expected, actual, shape) })
}

// Outcome matches the outcome of an operation. path is the operation's, for example "operations[3]".
func (m *Matcher) Outcome(path string, expected Expectation, actual result.Outcome) []result.Mismatch {
	return m.found(path, "", func() {
		switch {
		case expected.Error != nil:
			m.atKey("expectError", func() { m.matchError(expected, actual) })
		case expected.Result != nil:
			m.atKey("expectResult", func() {
				if m.succeeded(expected, actual) {
					m.match(expected.Result, actual.Value.RawValue, expected.Shape)
				}
			})
		default:
			m.succeeded(expected, actual)
		}
	})
}

func (m *Matcher) succeeded(expected Expectation, actual result.Outcome) bool {
	if actual.Err != nil {
		m.say(expected.Position, "no error", describeError(actual.Err), "the operation raised an error")
	}
	return actual.Err == nil
}

// Events matches the observed events of a client, in order, against an expectedEventsForClient. It skips events whose
// monitor is not the eventType. An event of an unknown type is a mismatch.
func (m *Matcher) Events(path string, expected *source.Value, actual []result.Event) []result.Mismatch {
	monitor := cmp.Or(result.Monitor(expected.Get("eventType").Text()), result.MonitorCommand)
	events := expected.Get("events")
	return m.found(path, "events", func() {
		var got []*result.Event
		for i := range actual {
			switch e := &actual[i]; e.Type.Monitor() {
			case "":
				m.say(events.Position, nothing, describeEvent(e), "observed an event of the unknown type %q", e.Type)
			case monitor:
				got = append(got, e)
			}
		}
		matchList(m, list[*result.Event]{
			what: "event", of: expected.Get("client").Text(), at: events.Position, want: events.Items, got: got,
			allowExtra: expected.Get("ignoreExtraEvents").IsTrue(),
			match:      m.matchEvent, alike: alikeEvents, describe: describeEvent, wanted: wantedEvent, observed: observedEvent,
		})
	})
}

// Count counts the events that match an expectedEvent, for waitForEvent and assertEventCount. The mismatches name
// undefined entities. The count is then meaningless, and the test fails.
func (m *Matcher) Count(path string, expected *source.Value,
	actual []result.Event) (n int, mismatches []result.Mismatch) {
	mismatches = m.found(path, "", func() {
		for i := range actual {
			if m.holds(func() { m.matchEvent(expected, &actual[i]) }) {
				n++
			}
		}
	})
	return n, mismatches
}

// LogMessages matches the log messages of a client against an expectedLogMessagesForClient.
func (m *Matcher) LogMessages(path string, expected *source.Value, actual []result.LogMessage) []result.Mismatch {
	messages := expected.Get("messages")
	return m.found(path, "messages", func() {
		var got []*result.LogMessage
		for i := range actual {
			ignored := func(want *source.Value) bool { return m.holds(func() { m.matchLog(want, &actual[i]) }) }
			if !slices.ContainsFunc(expected.Get("ignoreMessages").Elements(), ignored) {
				got = append(got, &actual[i])
			}
		}
		matchList(m, list[*result.LogMessage]{
			what: "log message", of: expected.Get("client").Text(), at: messages.Position, want: messages.Items, got: got,
			allowExtra: expected.Get("ignoreExtraMessages").IsTrue(),
			match:      m.matchLog, alike: m.alikeLogs, describe: describeLog, wanted: wantedLog, observed: observedLog,
		})
	})
}

// Collection matches the documents of a collection, sorted by _id, against the documents of an outcome. path is for
// example "outcome[0].documents", at the position of the collectionData. Documents must be equal, with equal BSON
// types, except for the order of keys. Special operators are not evaluated.
func (m *Matcher) Collection(path string, at source.Position, expected []*source.Value,
	actual []bson.Raw) []result.Mismatch {
	m.exact = true
	return m.found(path, "", func() {
		matchList(m, list[bson.Raw]{
			what: "document", of: "the collection", at: at, want: expected, got: actual,
			match: func(want *source.Value, got bson.Raw) { m.match(want, document(got), operations.Value) },
			alike: func(want *source.Value, got bson.Raw) bool {
				id := want.Get("_id")
				return id != nil && m.holds(func() { m.match(id, got.Lookup("_id"), operations.Value) })
			},
			describe: func(got bson.Raw) string { return abridge(ExtendedJSON(document(got), false)) },
			wanted:   (*source.Value).JSON,
			observed: func(got bson.Raw) string { return ExtendedJSON(document(got), false) },
		})
	})
}

// found runs a comparison at a path and an optional key and returns the mismatches.
func (m *Matcher) found(path, key string, compare func()) []result.Mismatch {
	m.path = strings.Trim(path+"."+key, ".")
	compare()
	if len(m.faults) > 0 {
		return m.faults
	}
	return m.mismatches
}

// holds reports whether a comparison finds no difference, without recording any.
func (m *Matcher) holds(compare func()) bool {
	quiet, differs := m.quiet, m.differs
	m.quiet, m.differs = true, false
	compare()
	holds := !m.differs
	m.quiet, m.differs = quiet, differs
	return holds
}

// differ records a difference between an expected and an actual value.
func (m *Matcher) differ(want *source.Value, actual bson.RawValue, format string, args ...any) {
	m.differAs(want, actual, operations.Value, format, args...)
}

func (m *Matcher) differAs(want *source.Value, actual bson.RawValue, shape operations.Shape, format string, args ...any) {
	if m.differs = true; m.quiet { // do not render
		return
	}
	at := want.Position
	if m.inEntity != nil {
		at = m.inEntity.Position
	}
	wanted, got := both(want, actual)
	m.mismatches = append(m.mismatches, result.Mismatch{
		Path: m.path, Position: at, Message: fmt.Sprintf(format, args...), Want: wanted, Got: got,
		Diff: m.diff(want, actual, shape),
	})
}

// reject records a difference between an expected value and a rendered one.
func (m *Matcher) reject(want *source.Value, got, format string, args ...any) {
	if m.differs = true; !m.quiet {
		m.say(want.Position, abridge(want.JSON()), got, format, args...)
	}
}

// say records a difference between two rendered values.
func (m *Matcher) say(at source.Position, want, got, format string, args ...any) {
	if m.differs = true; !m.quiet {
		m.mismatches = append(m.mismatches,
			result.Mismatch{Path: m.path, Position: at, Message: fmt.Sprintf(format, args...),
				Want: want, Got: got})
	}
}

// atKey and atIndex call a function with an extended path, such as expectEvents[0].events[2].command["a.b"].
func (m *Matcher) atKey(key string, do func()) {
	switch {
	case key == "" || strings.ContainsAny(key, ".[]\" \t\n"):
		m.below("["+strconv.Quote(key)+"]", do)
	case m.path == "":
		m.below(key, do)
	default:
		m.below("."+key, do)
	}
}

func (m *Matcher) atIndex(i int, do func()) { m.below("["+strconv.Itoa(i)+"]", do) }

func (m *Matcher) below(step string, do func()) {
	outer := m.path
	m.path += step
	do()
	m.path = outer
}
