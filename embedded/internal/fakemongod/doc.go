// Command fakemongod is a mongod, or a mongos if its name begins with that. It runs the servers of package server in
// processes, for tests of what starts MongoDB: package deployment/internal/local and mongo-orchestration. It needs the
// insides of embedded, so Go does not let it stand below internal/testkit. utrtest.Release makes a release of MongoDB
// of it, and docs/contributing/testing.md describes how to make one by hand.
//
// # Fronts and hosts
//
// A mongod or mongos process is a front: it owns the public port, terminates TLS and writes the log, but has no data.
// The data of a deployment is in a host, a process without a public port that a front starts. A front forwards each
// client to its host. Any front, including the primary's, can be killed without losing data.
//
//   - A standalone starts its host immediately.
//   - A mongod with --replSet first answers clients itself, as a member without configuration. The member that receives
//     replSetInitiate asks the others whether they can join, starts the host, and joins it. Then the host invites the
//     others.
//   - A host invites missing members five times a second, so that restarted members rejoin. When the connection of a
//     front ends, the host reports the member as down, and elects another primary if a majority remains.
//   - A mongos asks its config servers for their host, and joins it as a router. The host has separate data for the
//     sharded cluster; addShard only changes config.shards.
//
// # Lifetime
//
// A host runs while a front is connected. Then it waits for at most 30 s while the file utr-host.json exists in the
// dbpath of a former front, because the front may restart. This preserves data and users when mongo-orchestration
// restarts all members to enable authentication. If dbpath was deleted or not given, the host exits immediately. A
// front exits with code 14 when its host has exited.
//
// # Protocol
//
// A request is the four bytes "utr " and a line of JSON, a reply is a line of JSON: see message.go. The public port of
// a front accepts, only from this machine:
//
//	state    returns the state of the process and the location of its host
//	invite   join a host as a member of the set
//
// A host listens on a free port of the loopback interface. It requires its random token, which fronts return to
// processes on this machine:
//
//	join     the connection stays open while the front runs; the host sends another
//	         reply if a client has sent shutdown
//	client   after the reply, the connection belongs to a client of a front
//
// This does not protect against other users of the machine. It is intended for tests.
package main
