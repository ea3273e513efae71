package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// randomFault is a step with its properties.
type randomFault struct {
	step     string
	applies  bool // the server executes the command, or recognizes it
	overload bool // the label SystemOverloadedError
	safe     bool // and the label RetryableError
}

var randomFaults = []randomFault{{"close", true, false, false}, {"concern:91/w", true, false, false},
	{"concern:91", true, false, false},
	{"91/w", false, false, false}, {"10107/wn", false, false, false}, {"11600", false, false, false}, {"42", false,
		false, false},
	{"462/orn", false, true, true}, {"91/ow", false, true, false}, {"462/o", false, true, false}}

// TestRandomFaults performs operations with random faults, and checks the commands against the specifications: the
// number of attempts, one session and transaction number for all attempts, and no write executed twice.
func TestRandomFaults(t *testing.T) {
	const schedules = 400
	r, retried := rand.New(rand.NewPCG(testkit.Seed(t), 0)), 0
	for range schedules {
		synctest.Test(t, func(t *testing.T) {
			if randomSchedule(t, r) > 1 {
				retried++
			}
		})
	}
	if retried < schedules/10 { // a quarter is usual, with a standard deviation of 8 schedules
		t.Errorf("%d schedules of %d had a retry", retried, schedules)
	}
}

// randomSchedule performs one operation, and returns the number of attempts.
func randomSchedule(t *testing.T, r *rand.Rand) int {
	ops := slices.Concat(retryableWrites, plainWrites, slices.DeleteFunc(slices.Clone(reads), func(r sends) bool {
		return strings.Contains(r.do, "createChangeStream")
	}))
	at := r.IntN(len(ops))
	op, on, kind := ops[at], r.IntN(4) > 0, []string{"single", "replicaset", "sharded", "load-balanced"}[r.IntN(4)]
	writes := at < len(retryableWrites)+len(plainWrites)
	numbered := at < len(retryableWrites) && on && kind != "single"
	s := script(t, kind, map[string]int{"replicaset": 2, "sharded": 2}[kind])
	faults := make([]randomFault, r.IntN(5))
	for i := range faults {
		faults[i] = randomFaults[r.IntN(len(randomFaults))]
		for strings.Contains(faults[i].step, "concern") && (!writes || strings.Contains(op.do, "runCommand")) {
			// only writes report them
			faults[i] = randomFaults[r.IntN(len(randomFaults))]
		}
		s.on(op.command, stepsOf(t, faults[i].step, nil)...)
	}
	b := open(t, s.uri(fmt.Sprintf("retryWrites=%t&retryReads=%[1]t", on)), Options{dial: s.dial}, nil)
	out := b.perform(op.do)
	b.verify(0, out, false)
	sent := s.commands(op.command)
	check := func(holds bool, what string) {
		if !holds {
			t.Errorf("%s on %s, retries %v, faults %v: %s: %v, %v", op.do, kind, on, faults, what, sent, out.Err)
		}
	}
	operations := map[int64]bool{}
	for _, e := range b.events("client") {
		if e.Type == result.CommandStarted {
			operations[e.OperationID] = true
		}
	}
	check(len(sent) > 0 && len(operations) == 1, "several operationIds")
	limit, applied, recorded := 2, 0, false
	for i, c := range sent {
		f, last := randomFault{applies: true}, i == len(sent)-1
		if i < len(faults) {
			f = faults[i]
		}
		n := c.Lookup("txnNumber")
		check((n.Type != 0) == numbered && n.Equal(sent[0].Lookup("txnNumber")) &&
			c.Lookup("lsid").Equal(sent[0].Lookup("lsid")),
			"the transaction number or session differs")
		if f.applies && !(numbered && recorded) {
			applied, recorded = applied+1, true
		}
		if f.overload && !last {
			limit = 3
		}
		check(!last || (f.step == "") == (out.Err == nil), "the outcome differs from the last attempt")
		check(last || f.safe || on && (numbered || !writes), "an error that is not retryable was retried")
	}
	check(len(sent) <= limit, "too many attempts")
	check(!writes || applied <= 1, "the write was executed twice")
	return len(sent)
}
