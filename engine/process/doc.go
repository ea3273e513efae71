// Package process implements an engine in another process: a driver in any language
// behind a small program, its adapter. Both sides exchange JSON-RPC 2.0 messages, one
// per line, with the calls of package engine and BSON as canonical Extended JSON.
// docs/engine-protocol.md describes the protocol for authors of adapters.
//
// Each open test has its own conversation: a process that utr starts and reuses for
// later tests, or a connection to a running adapter. A protocol error ends the
// conversation and breaks its test; the next test gets a new conversation.
package process
