// Package reference is the reference engine: a driver that executes the decisions of package reference/retry.
//
// It selects servers with package reference/selection, and builds and sends each attempt itself. Monitoring, connection
// pools and handshakes come from the Go driver's public experimental packages, so that a real driver publishes the CMAP
// and SDAM events.
//
// # The way of an operation
//
//  1. test.Do (call.go) finds the row of the operation in a table, checks its arguments, and sets session and
//     timeoutMS.
//  2. The row (reads.go, writes.go, bulk.go, clientbulk.go, gridfs.go, …) translates the operation to commands, and
//     their replies to a result. It contains no retry logic.
//  3. client.execute (execute.go) performs a command. It is a loop around retry.Next: it passes in what happened, and
//     does what Next decides, until that is to return a result or to raise an error.
//     - Select: attempt.selectServer waits for a suitable server (selecting.go).
//     - Send: attempt.perform checks out a connection, assembles the command for that server (command.go), sends it,
//     and writes the events (eventwriter.go). A failed attempt is classified with its labels (failure.go).
//     - BackOff: it sleeps, or reports the delay without sleeping.
//  4. Each decision is added to the outcome, with the numbers of the rules that led to it. `utr explain` prints them.
//
// Under a policy of 2014, reads on replica sets follow pinning.Next instead (pinned.go). The callback of
// withTransaction follows retry.NextTransaction (convenient.go).
//
// # The monitor and the connections
//
// The topology of the Go driver monitors servers and owns the pools. It departs from the specifications in some points,
// most of them about the order of events on different connections: whether the pool is cleared before a retry checks
// out a connection, for example. sockets corrects them from below (sockets.go): it dials all connections of a client,
// and holds, delays, ends or repeats what arrives on them. monitor.go writes the events of monitor and pools to the log
// of the client.
//
// The two are in this package, and in these files, because neither makes sense alone: a correction waits until the log
// shows that the topology has handled an error, and the log leaves out events that only a correction has caused.
// docs/driver/reference-engine.md, "Sockets", lists the corrections with the reason for each, and says why the engine
// has no monitor of its own. testdata/sockets.txt plays them step by step.
//
// # Where to look
//
// The rules, with their sections of the specifications, are in reference/retry/rules.go and reference/pinning/rules.go;
// the policies, which are dated sets of rules and constants, in reference/retry/policy.go. Stories in testdata/stories
// show each rule in the messages on the wire. docs/driver/reference-engine.md lists decisions where a text is open.
package reference
