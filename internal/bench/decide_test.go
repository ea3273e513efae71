package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
)

// BenchmarkDecide has a read fail again and again under timeoutMS, and succeed
// at last: two decisions for each attempt, to select and to send. On a sharded
// cluster, each attempt deprioritizes one of two mongoses.
func BenchmarkDecide(b *testing.B) {
	policy, err := retry.Named("")
	if err != nil {
		b.Fatal(err)
	}
	for _, sharded := range []bool{false, true} {
		who := "replica set"
		if sharded {
			who = "sharded"
		}
		measure(b, "decide on every attempt of an operation", "attempts", who, []int{1, 4, 16, 64}, func(b *testing.B, n int) {
			settings := retry.Settings{Operation: retry.Lookup("find"), RetryReads: true, Timeout: true}
			servers := [2]retry.Chosen{}
			for i := range servers {
				servers[i] = retry.Chosen{Address: fmt.Sprintf("server%d:27017", i), Sharded: sharded, Wire: 25, RetryableWrites: true}
			}
			for b.Loop() {
				state := retry.Start(policy, settings)
				in := retry.Input{Kind: retry.Begin}
				var d retry.Decision
				for attempt := 0; ; {
					state, d = retry.Next(state, in)
					if d.Action == retry.Select {
						in = retry.Input{Kind: retry.Selected, Chosen: servers[attempt%2]}
						continue
					}
					if d.Action != retry.Send {
						break
					}
					attempt++
					in = retry.Input{Kind: retry.Succeeded}
					if attempt < n {
						in = retry.Input{Kind: retry.Failed, Left: time.Hour,
							Failure: retry.Failure{Kind: retry.Network, Server: state.Chosen.Address}}
					}
				}
				if d.Action != retry.ReturnResult || d.Attempt != n {
					b.Fatalf("%d attempts end in %s after %d", n, d.Action, d.Attempt)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/attempt")
		})
	}
}
