package retry

import (
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// A decision allocates nothing unless it deprioritizes a server: simulations make millions of them.
func TestDecisionsAllocateNothing(t *testing.T) {
	chosen := Chosen{Address: "a:27017", Wire: 25, RetryableWrites: true}
	overload := []string{codes.SystemOverloadedError, codes.RetryableError}
	for _, p := range Policies() {
		for _, row := range []struct {
			why, operation string
			in             Input
		}{
			{"begin", "find", Input{Kind: Begin}},
			{"a server is selected", "find", Input{Kind: Selected, Chosen: chosen}},
			{"success", "find", Input{Kind: Succeeded}},
			{"a network error of a read", "find", Input{Kind: Failed, Failure: Failure{Kind: Network}}},
			{"a network error of a write", "insert", Input{Kind: Failed, Failure: Failure{Kind: Network}}},
			{"a labelled error of a write", "insert",
				Input{Kind: Failed, Failure: Failure{Kind: Server, Code: 91, Labels: []string{codes.RetryableWriteError}}}},
			{"an error that is not retried", "find", Input{Kind: Failed, Failure: Failure{Kind: Server, Code: 59}}},
			{"overload", "insert", Input{Kind: Failed, Failure: Failure{Kind: Server, Code: 462, Labels: overload},
				Tokens: Token}},
			{"the end of a backoff", "find", Input{Kind: BackedOff, Left: time.Second}},
			{"an unknown input", "find", Input{Kind: 99}},
		} {
			row.in.Left, row.in.Jitter = time.Minute, 0.5
			s := Start(p, Settings{Operation: Lookup(row.operation), RetryReads: true, RetryWrites: true})
			s.Attempt, s.Chosen = 1, chosen
			var after State
			var d Decision
			allocated := testing.AllocsPerRun(100, func() { after, d = Next(s, row.in) })
			if allocated > 0 && after.deprioritized == nil {
				t.Errorf("%s, %s: %v allocations: %s", p.Name, row.why, allocated, d.Rules)
			}
		}
	}
}
