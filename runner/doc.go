// Package runner runs Unified Test Format suites against an engine and a deployment ("Test Runner Implementation").
// It knows the format, but neither the driver under test nor its servers: the engine opens entities and performs
// operations, the deployment provides connection strings, and package matchers compares the results.
//
// A test checks requirements, inserts initial data with the runner's own client, creates entities, performs
// operations, disables fail points, compares events and outcome, ends sessions and closes entities. It always cleans
// up, even after a failure, a timeout, an interruption or a panic.
package runner
