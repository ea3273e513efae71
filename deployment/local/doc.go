// Package local runs clusters of mongod and mongos processes on this machine:
// standalone, replica set, sharded, and load balanced. It knows nothing of
// tests. What is to be started, with which arguments and in which order, is
// decided apart from the doing (Plan, Argv), and depends on nothing but the
// shape of the cluster and the version of the programs.
//
// All servers listen on the loopback interface alone and have test commands
// on. Everything they write is in one temporary folder of a cluster, which goes
// when it is closed: data is thrown away, so that processes are killed and not
// asked to shut down, for which a mongod may take 15 seconds.
package local
