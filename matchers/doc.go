// Package matchers compares what a test expects with what was seen
// (Unified Test Format, "Evaluating Matches"). It knows values, errors,
// events, log messages and collections, and does no I/O.
//
// A match walks the expected value of the file and the BSON that was seen
// together, and makes a result.Mismatch of each difference, with path,
// position, both values and, for documents and arrays, a diff. The schema and
// the semantic checks of package specs have validated the expected value: a
// test with an unknown operator or a misspelt key never gets this far. Only
// the entity map can still lack what an expectation names; then the
// expectation fails whatever was seen.
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
//   - $$exists and $$unsetOrMatches must not be array elements; $$exists may
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
