// Package runner runs Unified Test Format suites against an engine and a
// deployment ("Test Runner Implementation"). It knows the format and neither
// the driver under test nor what it talks to: the engine is asked to open
// entities and to do operations, the deployment lends connection strings, and
// what comes back is judged by package matchers.
//
// The way of one test: requirements, initial data through the runner's own
// client, entities, operations, fail points off, events, outcome, sessions
// ended and entities closed, verdict. What must be put right again is put
// right always: after a failure, a deadline, an interruption, a panic.
package runner
