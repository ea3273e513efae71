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

// randomFault is a step with what the properties below have to know of it.
type randomFault struct {
	step     string
	applies  bool // the server does what the command says, or did it before
	overload bool // the label SystemOverloadedError
	safe     bool // and RetryableError
}

var randomFaults = []randomFault{
	{step: "close", applies: true}, {step: "concern:91/w", applies: true}, {step: "concern:91", applies: true},
	{step: "91/w"}, {step: "10107/wn"}, {step: "11600"}, {step: "42"},
	{step: "462/orn", overload: true, safe: true}, {step: "91/ow", overload: true}, {step: "462/o", overload: true},
}

// TestRandomFaults sends operations through random faults, and compares what the
// servers received with the properties of the specifications: no more attempts
// than the policy has, one session and one number for all, no attempt like
// another, and no write done twice.
func TestRandomFaults(t *testing.T) {
	const schedules = 400
	r, retried := rand.New(rand.NewPCG(testkit.Seed(t), 0)), 0
	for range schedules {
		if randomSchedule(t, r) > 1 {
			retried++
		}
	}
	if retried < schedules/5 {
		t.Errorf("%d schedules of %d had a retry", retried, schedules)
	}
}

// randomSchedule plays one, and gives the number of attempts.
func randomSchedule(t *testing.T, r *rand.Rand) (attempts int) {
	ops := slices.Concat(retryableWrites, plainWrites, slices.DeleteFunc(slices.Clone(reads), func(r sends) bool {
		return strings.Contains(r.do, "createChangeStream")
	}))
	at := r.IntN(len(ops))
	op, on, kind := ops[at], r.IntN(4) > 0, []string{"single", "replicaset", "sharded", "load-balanced"}[r.IntN(4)]
	writes := at < len(retryableWrites)+len(plainWrites)
	numbered := at < len(retryableWrites) && on && kind != "single"
	kinds := randomFaults
	if !writes || strings.Contains(op.do, "runCommand") { // which do not look for write concern errors
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(f randomFault) bool { return strings.Contains(f.step, "concern") })
	}
	var faults []randomFault
	var told []string
	for range r.IntN(5) {
		f := kinds[r.IntN(len(kinds))]
		faults, told = append(faults, f), append(told, f.step)
	}
	synctest.Test(t, func(t *testing.T) {
		s := script(t, kind, map[string]int{"replicaset": 2, "sharded": 2}[kind])
		if len(told) > 0 {
			s.on(op.command, stepsOf(t, strings.Join(told, ","))...)
		}
		b := open(t, s.uri(fmt.Sprintf("retryWrites=%t&retryReads=%[1]t", on)), Options{dial: s.dial}, nil)
		out := b.perform(op.do)
		b.verify(0, out, false)
		sent := s.commands(op.command)
		attempts = len(sent)
		fail := func(format string, args ...any) {
			t.Errorf("%s on %s, retries %v, faults %v: %s: %v", op.do, kind, on, told, fmt.Sprintf(format, args...), sent)
		}
		operations := map[int64]bool{}
		for _, e := range b.events("client") {
			if e.Type == result.CommandStarted {
				operations[e.Command.OperationID] = true
			}
		}
		if len(sent) == 0 || len(operations) != 1 {
			fail("%d operationIds", len(operations))
			return
		}
		limit, applied, recorded := 2, 0, false
		for i, c := range sent {
			f := randomFault{applies: true}
			if i < len(faults) {
				f = faults[i]
			}
			n, err := c.LookupErr("txnNumber")
			if (err == nil) != numbered || numbered && !n.Equal(sent[0].Lookup("txnNumber")) || !c.Lookup("lsid").Equal(sent[0].Lookup("lsid")) {
				fail("attempt %d has number %v of session %v", i+1, n, c.Lookup("lsid"))
			}
			if f.applies && !(numbered && recorded) {
				applied, recorded = applied+1, true
			}
			if i == len(sent)-1 {
				if (f.step == "") != (out.Err == nil) {
					fail("ended in %v", out.Err)
				}
				break
			}
			if f.overload {
				limit = 3
			}
			if !f.safe && (!on || writes && !numbered) {
				fail("attempt %d is sent again", i+1)
			}
		}
		if len(sent) > limit {
			fail("%d attempts of %d", len(sent), limit)
		}
		if writes && applied > 1 {
			fail("it was done %d times", applied)
		}
	})
	return attempts
}
