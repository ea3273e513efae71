package utrtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
)

// Ports is the first port of an Address that is free.
const Ports = 20001

// Address returns a loopback address for the exclusive use of the test, for processes
// that need fixed ports. The system does not use it as the source address of
// connections.
func Address(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not proved: this system has one loopback address")
	}
	for {
		address := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
		// This port reserves the address.
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, Ports-1))
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return address
		}
	}
}
