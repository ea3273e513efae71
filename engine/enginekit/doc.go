// Package enginekit is what engines have in common that are written in Go on
// packages of the Go driver: the entities of a test by name, the tests that are
// open, tables of operations, arguments and connection strings, the log of a
// client, events of the driver's monitors and values in the terms of package
// result, and the sockets of a client. What a driver decides is not here: engines
// that are compared with each other share no rule.
package enginekit
