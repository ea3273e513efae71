// Package enginekit is what engines have in common that are written in Go on
// packages of the Go driver: the entities of a test by name, the tests that are
// open, the log of a client, events of the driver's monitors and values in the
// terms of package result. What a driver decides is not here: engines that
// are held against each other share no rule.
package enginekit
