package matchers

import (
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"go.mongodb.org/mongo-driver/v2/bson"
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

// Matcher holds expectations against what was seen. It is cheap to make, is
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

// ExpectedEvents is an expectedEventsForClient.
type ExpectedEvents struct {
	Position          source.Position
	EventType         string // command, cmap, sdam; "" is command
	Events            []*source.Value
	IgnoreExtraEvents bool
}

// Value matches a value, under path in messages. The zero RawValue as actual
// means that there is no value, which is not the same as null.
func (m *Matcher) Value(path string, expected *source.Value, actual bson.RawValue, shape Shape) []result.Mismatch {
	return unwritten(path)
}

// Outcome matches the end of an operation: expectError, or else no error and
// expectResult. path is that of the operation ("operations[3]").
func (m *Matcher) Outcome(path string, expected Expectation, actual result.Outcome) []result.Mismatch {
	return unwritten(path)
}

// Events matches the events of one client. actual is its log in order; events
// of other monitors than expected.EventType are passed over, ignored and
// unobserved ones have been left out before.
func (m *Matcher) Events(path string, expected ExpectedEvents, actual []result.Event) []result.Mismatch {
	return unwritten(path)
}

// Count says how many of the events match an expectedEvent, for waitForEvent
// and assertEventCount. The mismatches are faults of the expected event
// itself (an unknown event type or field, an undefined entity): if there are
// any, the count means nothing and the test has failed.
func (m *Matcher) Count(path string, expected *source.Value, actual []result.Event) (int, []result.Mismatch) {
	return 0, unwritten(path)
}

// LogMessages matches the log messages of one client against an
// expectedLogMessagesForClient.
func (m *Matcher) LogMessages(path string, expected *source.Value, actual []result.LogMessage) []result.Mismatch {
	return unwritten(path)
}

// Collection matches the contents of a collection, sorted by _id, against the
// documents of an outcome, at being the position of the collectionData. The
// documents must be the same, with the same BSON types; only the order of keys
// is free, and special operators mean nothing.
func (m *Matcher) Collection(path string, at source.Position, expected []*source.Value, actual []bson.Raw) []result.Mismatch {
	return unwritten(path)
}

func unwritten(path string) []result.Mismatch {
	return []result.Mismatch{{Path: path, Message: "matching is not written yet"}}
}
