// Package process is an engine in another process: a driver of any language behind
// a small program, its adapter. Both sides exchange JSON-RPC 2.0 messages, one per
// line, with the calls of package engine and BSON as canonical Extended JSON.
// docs/engine-protocol.md describes the protocol for authors of adapters.
//
// Each test that is open has a conversation of its own: a process that utr starts,
// which later tests use again, or a connection to an adapter that runs already. What
// goes wrong in a conversation ends its test as broken and the conversation with it;
// the next test gets a new one.
package process
