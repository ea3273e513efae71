// Package reads writes the suites of specs/retryable-reads from tables: the
// operations, the errors, and the stories of what can happen to an attempt.
// Every test says in its description which rule of reference/retry it checks.
//
// The suites are for any driver and any deployment since server 4.2. What a
// test needs beyond that stands in its runOnRequirements, and each file
// declares the lowest schemaVersion that it can.
package reads
