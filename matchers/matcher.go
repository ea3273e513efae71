package matchers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs/operations"
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
type Shape = operations.Shape

// The shapes of a value: no document is root-level, which goes for all shapes that are
// not listed here, the value itself is, or the elements of an array are.
const (
	Nested        = operations.Value
	RootDocument  = operations.RootDocument
	RootDocuments = operations.RootDocuments
)

// ofElements is the shape of the elements of an array.
func ofElements(s Shape) Shape {
	if s == RootDocuments {
		return RootDocument
	}
	return Nested
}

// Matcher compares expectations with what was seen. It is cheap to make, is
// made for one assertion, and is not for concurrent use. All methods return
// every mismatch that there is, and none if the expectation holds.
type Matcher struct {
	entities Entities
	known    map[string]*source.Value // entities by operator and name, nil for what is not there
	inEntity *source.Value            // the name of the entity whose content is compared
	exact    bool                     // without special operators and flexible numerics
	path     string                   // in the test

	quiet      bool // note only that there is a difference
	differs    bool
	mismatches []result.Mismatch
	faults     []result.Mismatch // what makes the expectation fail whatever was seen
}

// New makes a matcher. Entities may be nil where no expectation names an
// entity; one that does is then a mismatch.
func New(entities Entities) *Matcher {
	return &Matcher{entities: entities, known: make(map[string]*source.Value)}
}

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
	return m.found(path, "", func() { m.match(expected, actual, shape) })
}

// Outcome matches the end of an operation: expectError, or else no error and
// expectResult. path is that of the operation ("operations[3]").
func (m *Matcher) Outcome(path string, expected Expectation, actual result.Outcome) []result.Mismatch {
	return m.found(path, "", func() {
		switch {
		case expected.Error != nil:
			m.atKey("expectError", func() { m.matchError(expected, actual) })
		case expected.Result != nil:
			m.atKey("expectResult", func() {
				if m.succeeded(expected, actual) {
					m.match(expected.Result, actual.Value, expected.Shape)
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

// Events matches the events of one client against an expectedEventsForClient.
// actual is its log in order; events of other monitors than that of the eventType
// are passed over, ignored and unobserved ones have been left out before. An
// observed event of a type that the format does not know is a mismatch.
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
			what: "event", at: events.Position, want: events.Items, got: got, allowExtra: expected.Get("ignoreExtraEvents").IsTrue(),
			match: m.matchEvent, alike: alikeEvents, describe: describeEvent,
		})
	})
}

// Count says how many of the events match an expectedEvent, for waitForEvent
// and assertEventCount. If there are mismatches, the expected event names an
// entity that is not there: the count means nothing and the test has failed.
func (m *Matcher) Count(path string, expected *source.Value, actual []result.Event) (int, []result.Mismatch) {
	n := 0
	return n, m.found(path, "", func() {
		for i := range actual {
			if m.holds(func() { m.matchEvent(expected, &actual[i]) }) {
				n++
			}
		}
	})
}

// LogMessages matches the log messages of one client against an
// expectedLogMessagesForClient.
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
			what: "log message", at: messages.Position, want: messages.Items, got: got, allowExtra: expected.Get("ignoreExtraMessages").IsTrue(),
			match: m.matchLog, alike: m.alikeLogs, describe: describeLog,
		})
	})
}

// Collection matches the contents of a collection, sorted by _id, against the
// documents of an outcome; path is theirs ("outcome[0].documents"), at the
// position of the collectionData. The documents must be the same, with the
// same BSON types; only the order of keys is free, and special operators mean
// nothing.
func (m *Matcher) Collection(path string, at source.Position, expected []*source.Value, actual []bson.Raw) []result.Mismatch {
	m.exact = true
	return m.found(path, "", func() {
		matchList(m, list[bson.Raw]{
			what: "document", at: at, want: expected, got: actual,
			match: func(want *source.Value, got bson.Raw) { m.match(want, document(got), Nested) },
			alike: func(want *source.Value, got bson.Raw) bool {
				id := want.Get("_id")
				return id != nil && m.holds(func() { m.match(id, got.Lookup("_id"), Nested) })
			},
			describe: func(got bson.Raw) string { return abridge(Extended(document(got), false)) },
		})
	})
}

// found compares, under a path and a key if there is one, and gives what was
// found.
func (m *Matcher) found(path, key string, compare func()) []result.Mismatch {
	m.path = path
	if key == "" {
		compare()
	} else {
		m.atKey(key, compare)
	}
	if len(m.faults) > 0 {
		return m.faults
	}
	return m.mismatches
}

// holds reports whether a comparison finds no difference, without noting any.
func (m *Matcher) holds(compare func()) bool {
	quiet, differs := m.quiet, m.differs
	m.quiet, m.differs = true, false
	compare()
	holds := !m.differs
	m.quiet, m.differs = quiet, differs
	return holds
}

// differ notes a difference between an expected value and what was seen.
func (m *Matcher) differ(want *source.Value, actual bson.RawValue, format string, args ...any) {
	m.differAs(want, actual, Nested, format, args...)
}

func (m *Matcher) differAs(want *source.Value, actual bson.RawValue, shape Shape, format string, args ...any) {
	if m.differs = true; m.quiet { // nothing is rendered in vain
		return
	}
	at := want.Position
	if m.inEntity != nil {
		at = m.inEntity.Position
	}
	wanted, got := both(want, actual)
	m.mismatches = append(m.mismatches, result.Mismatch{
		Path: m.path, Position: at, Message: fmt.Sprintf(format, args...), Want: wanted, Got: got, Diff: m.diff(want, actual, shape),
	})
}

// reject notes that what was seen is not what the file says.
func (m *Matcher) reject(want *source.Value, got, format string, args ...any) {
	if m.differs = true; !m.quiet {
		m.say(want.Position, abridge(want.JSON()), got, format, args...)
	}
}

// say notes a difference of things that are not BSON values.
func (m *Matcher) say(at source.Position, want, got, format string, args ...any) {
	if m.differs = true; !m.quiet {
		m.mismatches = append(m.mismatches, result.Mismatch{Path: m.path, Position: at, Message: fmt.Sprintf(format, args...), Want: want, Got: got})
	}
}

// atKey and atIndex do something one step further down in the path, which has
// a form like expectEvents[0].events[2].command["a.b"].
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
