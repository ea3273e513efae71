package bench

import (
	"context"
	"testing"

	"github.com/unified-test-runner/utr/embedded"
)

// BenchmarkStart starts embedded deployments, which then are ready for
// clients, and does not measure closing them.
func BenchmarkStart(b *testing.B) {
	sizes := []int{1, 3, 12, 48}
	for _, row := range []struct {
		who     string
		options func(n int) embedded.Options
	}{
		{"replica set", func(n int) embedded.Options { return embedded.Options{Topology: embedded.ReplicaSet, Members: n} }},
		{"sharded", func(n int) embedded.Options { return embedded.Options{Topology: embedded.Sharded, Mongoses: n} }},
		{"load balanced", func(n int) embedded.Options { return embedded.Options{Topology: embedded.LoadBalanced, Mongoses: n} }},
	} {
		measure(b, "start an embedded deployment", "servers", row.who, sizes, func(b *testing.B, n int) { start(b, row.options(n)) })
	}
	measure(b, "start an embedded standalone", "server", "standalone", []int{1}, func(b *testing.B, _ int) { start(b, embedded.Options{}) })
}

func start(b *testing.B, o embedded.Options) {
	for b.Loop() {
		d, err := embedded.Start(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
