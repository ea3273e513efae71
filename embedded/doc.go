// Package embedded starts MongoDB-compatible deployments inside the process, on real sockets of the loopback
// interface: standalone, replica set, sharded, load balanced. Any driver in any language can connect to one.
// Deployments are independent, so many can run at once.
//
// # In a Go test
//
// StartT starts a deployment for a test, and closes it when the test ends. URI returns its connection string:
//
//	d := embedded.StartT(t, embedded.Options{Topology: embedded.ReplicaSet})
//	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
//
// Fail points make commands fail, as on a server with test commands; Kill, Restart and StepDown act on members. A
// program that is not written in Go can use the command utr serve.
//
// # What it is
//
// It exists to test drivers. The protocol, fail points, error labels and the records of retryable writes match those
// of the server version in Options. Data is kept in memory.
//
// # The layers
//
// A deployment is a store below commands below servers; each layer imports only those below it.
//
//   - internal/server has one server for each member or mongos: its port, connections, handshake and authentication,
//     the state of the replica set, fail points, and the checks before each command.
//   - internal/commands has a table with a row for each command that works on data: its fields, and how it is parsed,
//     planned and run. Filters, updates, pipelines and expressions are in packages of their own (internal/query, …).
//   - internal/store has the data. All servers of a deployment share it, as if replication took no time: records,
//     indexes, the oplog, transactions, and sessions with the results of their retryable writes. It does not know
//     commands.
//
// # The way of an insert
//
//  1. A connection reads a message (internal/wire) and begins an exchange (internal/server/dispatch.go).
//  2. The exchange takes steps in the order of mongod: it looks up the row, and checks API version, session, cluster
//     time and read preference. Then the row plans the command: it parses the fields into a struct, and returns the
//     action (internal/commands/call.go). After that come fail points, authorization, the role of the member, the
//     transaction, concerns and maxTimeMS. The first error is the reply.
//  3. The action runs. Most other commands are planned only here, where mongod reports errors in their fields.
//  4. Work.Begin takes the turn of the session, and finds its transaction, or what an earlier attempt of this
//     retryable write did. Such a statement is not executed again: its recorded result is returned.
//  5. Update locks the store. In it, the statement changes the collection and its indexes, and appends the change to
//     the oplog and the result to the session. An error undoes them. End passes the turn on.
//  6. On the way up, the command makes a reply of the results. The exchange adds operationTime, $clusterTime, error
//     labels and the write concern error that a fail point requires. The connection sends it.
//
// # Where to look
//
// What differs between versions is in internal/version/features.go. Replies and errors are compared with recordings of
// real servers (internal/replay). docs/application/embedded.md lists what is supported, and differences from MongoDB.
// Package blackpipe is a scripted server without data.
package embedded
