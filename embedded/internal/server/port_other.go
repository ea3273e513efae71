//go:build !unix

package server

// ReservePort has no effect on this system: the port of a killed server is free.
func ReservePort(string) (release func()) { return func() {} }
