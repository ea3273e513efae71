package bench

import (
	"context"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/experiment"
)

// BenchmarkExperiment simulates 12 seconds of the overload experiment for a
// number of clients, four times, and sixteen times as many. The capacity grows
// with them, and so do operations and attempts; in the last series it does not,
// so that there are more clients to keep and no more to do.
func BenchmarkExperiment(b *testing.B) {
	const few = 500
	for _, row := range []struct {
		who, policy string
		capacity    func(clients int) int
	}{
		{"no retry", "none", func(n int) int { return n }},
		{"final policy", "final", func(n int) int { return n }},
		{"final policy, same capacity", "final", func(int) int { return few }},
	} {
		p, err := experiment.PolicyNamed(row.policy)
		if err != nil {
			b.Fatal(err)
		}
		measure(b, "simulate an overloaded server", "clients", row.who, []int{few, 4 * few, 16 * few}, func(b *testing.B, n int) {
			c := experiment.Defaults().Scaled(row.capacity(n))
			c.Clients, c.Duration, c.Policies = n, 12*time.Second, []experiment.Policy{p}
			attempts := 0
			for b.Loop() {
				r, err := experiment.Overload(context.Background(), c, nil)
				if err != nil {
					b.Fatal(err)
				}
				for _, phase := range r.Runs[0].Phases {
					attempts += phase.Attempts
				}
			}
			if attempts == 0 {
				b.Fatal("nothing was attempted")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(attempts), "ns/attempt")
		})
	}
}
