package server_test

import (
	"testing"

	"github.com/unified-test-runner/utr/embedded/server"
)

// BenchmarkPing is a round trip over a socket.
func BenchmarkPing(b *testing.B) {
	c := dial(b, cluster(b, server.ReplicaSet, "8.0", 3).Members()[0].Address())
	for b.Loop() {
		if c.call(d("ping", 1)) == nil {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkHandshake is a connection with its first hello.
func BenchmarkHandshake(b *testing.B) {
	s := cluster(b, server.ReplicaSet, "8.0", 3).Members()[0]
	for b.Loop() {
		c := dial(b, s.Address())
		if c.call(d("hello", 1)) == nil {
			b.Fatal("no answer")
		}
		_ = c.Close()
	}
}
