// Package matchers compares the expectations of a test with actual values, errors, events, log messages, tracing
// spans and collections (Unified Test Format, "Evaluating Matches"). It does no I/O.
// A match compares the expected value of the file with the actual BSON, element by element, and reports each difference
// as a result.Mismatch with path, position, both values and, for documents and arrays, a diff. Package specs has
// validated the expected values, but entities may be undefined. An expectation with an undefined entity fails, whatever
// the actual value is.
//
// Decisions where the format leaves room:
//
//   - Numbers (int32, int64, double) are compared exactly, without conversion:
//     2^53+1 is not the double 2^53, 1.5 is not 1. NaN equals NaN, -0 equals 0.
//   - A Decimal128 equals only a Decimal128 with the same text: 1.0 is not 1.00.
//   - Other scalars are equal if their types and bytes are. The options of a
//     regular expression may be in any order.
//   - A missing value is not null. It matches only $$unsetOrMatches and
//     $$exists: false.
//   - A document with a duplicate key matches no expected document.
//   - $$exists and $$unsetOrMatches must not be array elements; $$exists may be
//     inside $$unsetOrMatches.
//   - $$lte requires a number other than Decimal128, and never matches NaN.
//   - $$matchesHexBytes accepts a string or, since bytes need not be UTF-8, a
//     generic binary.
//   - $$sessionLsid accepts a string, the text of the session's UUID, because the
//     attribute db.mongodb.lsid of a span is a string.
//   - A span without "nested" has no nested spans, unless ignoreExtraSpans allows
//     them. Attributes are a root-level document.
//   - $$ keys in the content of an entity are not operators.
//   - Exact comparisons (the scope of code, the documents of an outcome) require
//     equal BSON types: an int is not a double. The runner of the Go driver,
//     which passes the official suites, does the same.
package matchers
