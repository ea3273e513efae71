// Package process plays mongod and mongos as processes of their own, with the
// servers of package server behind them: utr mongod and utr mongos. Programs
// that start MongoDB, such as mongo-orchestration, can start these.
//
// # Fronts and hosts
//
// A process that plays mongod or mongos is a front: it owns the public port,
// speaks TLS, keeps the log, and has no data. The data of one deployment live
// in a host, a process that the fronts start and that serves no public port. A
// front hands each client over to its host, on a port of the server that the front
// plays. So any front can be killed, the primary's as well, and the others go on
// with the data: as with real members, and unlike them without
// replication.
//
//   - A standalone starts its host at once.
//   - A mongod with --replSet waits. It answers clients itself, as a member
//     without configuration. The one that gets replSetInitiate asks the others
//     whether they may join, starts the host, and joins it first. Then the host
//     invites the others.
//   - A host invites members that are away five times a second: one that was killed
//     and started again rejoins. It notices the end of a front by the end of its
//     connection, reports the member as down, and elects another primary if a
//     majority is left.
//   - A mongos asks the config servers that it was given for their host, and
//     joins it as a router. Its cluster has data of its own there; addShard is
//     recorded in config.shards, and the shards' own data stay apart.
//
// # Its end
//
// A host lives as long as a front is connected. Then it waits, for at most 30 s,
// while the file utr-host.json in the dbpath of a former front exists, as those may
// come again: so data and users survive a restart of all members, with which
// mongo-orchestration switches authentication on. Where dbpath was deleted, or
// never given, the host ends at once. A front whose host has ended ends with
// code 14.
//
// # Protocol
//
// Processes say one line of JSON to each other, after the four bytes "utr ", and
// are answered with one line: message.go has the fields. The public port of a
// front takes, from this machine alone:
//
//	state    who it is, and where its host is
//	invite   join this host as that member of the set
//
// A host listens on a free port of the loopback interface and requires its token,
// which is random and which fronts tell to processes of this machine:
//
//	join     the connection stays, and its end is that of the front; the answer
//	         has the ports to which the front hands its clients over; the host
//	         says stop if a client has sent shutdown
//
// None of this keeps out other users of the machine: it is for tests.
package process
