package utrtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
)

// Ports of an address that Address gives are free from here on.
const Ports = 20001

// Address gives a loopback address of the test's own, on which nobody else
// listens: processes that have to be told their ports get them there. Nor does
// the system choose it for the near end of a connection.
func Address(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not proved: this system has one loopback address")
	}
	for {
		address := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
		// Whoever has this port has the address.
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, Ports-1))
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return address
		}
	}
}
