package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
)

// BenchmarkDecide has an operation fail again and again under timeoutMS, and
// succeed at last: two decisions for each attempt, to select and to send, and
// after an overload error a third, to back off. Where servers are
// deprioritized, attempts alternate between two.
func BenchmarkDecide(b *testing.B) {
	policy, err := retry.Named("")
	if err != nil {
		b.Fatal(err)
	}
	network := retry.Failure{Kind: retry.Network}
	for _, row := range []struct {
		who, operation string
		sharded        bool
		failure        retry.Failure
	}{
		{"read, replica set", "find", false, network},
		{"read, sharded", "find", true, network},
		{"write, replica set", "insert", false,
			retry.Failure{Kind: retry.Server, Code: 91, Labels: []string{"RetryableWriteError"}}},
		{"overload, read", "find", false,
			retry.Failure{Kind: retry.Server, Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError"}}},
		{"overload, write", "insert", false,
			retry.Failure{Kind: retry.Server, Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError", "RetryableWriteError"}}},
	} {
		measure(b, "decide on every attempt of an operation", "attempts", row.who, []int{1, 4, 16, 64}, func(b *testing.B, n int) {
			settings := retry.Settings{Operation: retry.Lookup(row.operation), RetryReads: true, RetryWrites: true, Timeout: true,
				MaxAdaptiveRetries: &n, OverloadRetargeting: true}
			servers := [2]retry.Chosen{}
			for i := range servers {
				servers[i] = retry.Chosen{Address: fmt.Sprintf("server%d:27017", i), Sharded: row.sharded, Wire: 25, RetryableWrites: true}
			}
			for b.Loop() {
				last := decideUntil(n, retry.Start(policy, settings), servers, row.failure)
				if last.Action != retry.ReturnResult || last.Attempt != n {
					b.Fatalf("%d attempts end in %s after %d", n, last.Action, last.Attempt)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/attempt")
		})
	}
}

// decideUntil has all attempts fail but the nth, and gives the last decision.
func decideUntil(n int, state retry.State, servers [2]retry.Chosen, failure retry.Failure) (d retry.Decision) {
	in := retry.Input{Kind: retry.Begin}
	for attempt := 0; ; {
		state, d = retry.Next(state, in)
		switch d.Action {
		case retry.Select:
			in = retry.Input{Kind: retry.Selected, Chosen: servers[attempt%2]}
		case retry.Send:
			attempt++
			in = retry.Input{Kind: retry.Succeeded}
			if attempt < n {
				in = retry.Input{Kind: retry.Failed, Left: time.Hour, Jitter: 0.5, Failure: failure}
			}
		case retry.BackOff:
			in = retry.Input{Kind: retry.BackedOff, Left: time.Hour}
		default:
			return d
		}
	}
}
