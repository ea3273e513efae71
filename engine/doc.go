// Package engine defines the interface to a driver under test. The runner uses an engine only through this interface,
// whether the driver is in the same process or behind an adapter. Arguments and results are BSON documents as the
// Unified Test Format writes them; converting them to typed options is up to the engine.
//
// # The life of a test
//
//  1. The runner calls Describe once, and skips tests that need an operation or a feature that the engine lacks.
//  2. For each test it calls Begin, which returns a Test: a namespace of entities. Tests overlap: the runner prepares
//     one while it cleans up another.
//  3. It opens the entities of the suite in order: clients, then their databases and sessions, then collections.
//  4. It performs operations with Do, from several goroutines if the suite has threads. Do returns an Outcome: a value
//     or an error, as the driver raised it. The engine does not judge: the runner compares.
//  5. For withTransaction, Do calls back. The runner performs the operations of the callback, and returns the error
//     that the callback raises in the driver.
//  6. It reads events and log messages. Each client has one log, in which command, CMAP and SDAM events have the order
//     in which they occurred. Events waits if asked to; reading does not remove.
//  7. It closes entities that the suite closes, and calls End, after which nothing of the test may remain: cursors and
//     sessions are ended, and clients are closed.
//
// # What an engine must not do
//
// It must not ignore what it does not know: an unknown operation, argument or option is an Unsupported error before
// anything is sent, and skips the test. Otherwise the test would pass or fail for another reason. It must not turn the
// deadline of a context into timeoutMS, and must not log the runner's own commands (OpConfigureFailPoint).
//
// Package enginetest checks these behaviors, for a Go test and for `utr engine check`.
//
// # Engines
//
// Package driver is the official Go driver, through its public API. Package reference executes the rules of the retry
// specifications. Both use enginekit: entities by name, tables of operations, and the log of a client. Package process
// is the client of adapters: drivers in other languages, in processes of their own (docs/driver/engine-protocol.md). To
// write one, begin with docs/your-driver.md.
package engine
