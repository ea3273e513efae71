//go:build !unix

package server

// hold is there on Unix alone: elsewhere, the port of a server that is down is free.
func hold(string) (release func()) { return func() {} }
