// Package matchers compares what a test expects with what was seen
// (Unified Test Format, "Evaluating Matches"). It knows values, errors,
// events, log messages and collections, and does no I/O.
//
// A match has four stages. Compiling reads the expectation into nodes and
// finds its faults: unknown operators, undefined entities, malformed arguments.
// A fault makes the expectation fail whatever was seen. Comparing walks nodes
// and BSON together and collects differences, all of them. Building the
// difference and rendering turn each into a result.Mismatch with path,
// position, both values and, for documents and arrays, a diff.
//
// Decisions where the format leaves room:
//
//   - Numbers (int32, int64, double) are compared exactly, never through
//     another type: 2^53+1 is not the double 2^53, 1.5 is not 1. NaN equals
//     NaN, -0 equals 0.
//   - Decimal128 equals only Decimal128 of the same text: 1.0 is not 1.00.
//   - All other scalars are equal if type and bytes are; the options of a
//     regular expression may come in any order.
//   - A missing value is not null. An operation that returned nothing matches
//     $$unsetOrMatches and $$exists: false, and nothing else.
//   - A document that has a key twice matches no expected document.
//   - $$exists and $$unsetOrMatches are faults as array elements; $$exists may
//     stand inside $$unsetOrMatches.
//   - $$lte takes a number, which Decimal128 is not; nothing is less than or equal
//     to NaN, and NaN to nothing.
//   - $$matchesHexBytes takes a string or, since bytes need not be UTF-8, a
//     generic binary.
//   - The content of an entity is data: $$ keys in it are not operators.
//   - What is exact (the scope of code, the documents of an outcome) has the same
//     BSON types too: an int is not a double. So it is in the Go driver's
//     runner, which passes the official suites.
package matchers
