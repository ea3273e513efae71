// Package enginekit has what engines built on packages of the Go driver share: the
// tests that are open and their entities by name, tables of operations, arguments
// and connection strings, the log of a client, events of the driver's monitors and
// values in the terms of package result, and the sockets of a client. What a driver
// decides is not here: engines that are compared with each other share no rule.
package enginekit
