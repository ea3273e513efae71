package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomFault is a fault with what the properties below have to know of it.
type randomFault struct {
	name     string
	step     step
	applies  bool // the server does what the command says, or did it before
	overload bool // the label SystemOverloadedError
	safe     bool // and RetryableError
}

func randomFaults() []randomFault {
	return []randomFault{
		{name: "the reply is lost", step: closes, applies: true},
		{name: "labelled concern", step: concern(91, labelWrite), applies: true},
		{name: "bare concern", step: concern(91), applies: true},
		{name: "labelled", step: fails(91, labelWrite)},
		{name: "nothing written", step: fails(10107, labelWrite, "NoWritesPerformed")},
		{name: "by code", step: fails(11600)},
		{name: "not retryable", step: fails(42)},
		{name: "overload", step: fails(462, append(slices.Clone(both), "NoWritesPerformed")...), overload: true, safe: true},
		{name: "overload, and retryable as a write", step: fails(91, labelOverloaded, labelWrite), overload: true},
		{name: "overload alone", step: fails(462, labelOverloaded), overload: true},
	}
}

// TestRandomFaults sends operations through random faults, and holds what the
// servers received against the properties of the specifications: no more
// attempts than the policy has, one session and one number for all, no
// attempt like another, and no write done twice.
func TestRandomFaults(t *testing.T) {
	const schedules = 160
	var retried [8]int
	t.Run("schedules", func(t *testing.T) {
		for worker := range retried {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for n := range schedules / len(retried) {
					if randomSchedule(t, rand.New(rand.NewPCG(uint64(worker), uint64(n)))) > 1 {
						retried[worker]++
					}
				}
			})
		}
	})
	sum := 0
	for _, n := range retried {
		sum += n
	}
	if sum < schedules/5 {
		t.Errorf("%d schedules of %d had a retry", sum, schedules)
	}
}

// randomSchedule plays one, and gives the number of attempts.
func randomSchedule(t *testing.T, r *rand.Rand) int {
	t.Helper()
	supported, plain := retryableWrites(), plainWrites()
	ops := append(slices.Clone(supported), plain...)
	for _, read := range reads {
		if read.name != "createChangeStream" {
			ops = append(ops, writeOp{read.object, read.name, read.args, read.command})
		}
	}
	at := r.IntN(len(ops))
	op := ops[at]
	numbered, writes := at < len(supported), at < len(supported)+len(plain)
	kind := []string{"single", "replicaset", "sharded", "load-balanced"}[r.IntN(4)]
	on := r.IntN(4) > 0
	kinds := randomFaults()
	if !writes || op.name == "runCommand" { // which do not look for write concern errors
		kinds = slices.DeleteFunc(kinds, func(f randomFault) bool { return strings.Contains(f.name, "concern") })
	}
	var faults []randomFault
	for range r.IntN(5) {
		faults = append(faults, kinds[r.IntN(len(kinds))])
	}
	s := script(t, kind, map[string]int{"replicaset": 2, "sharded": 2}[kind]+1)
	var told []string
	for _, f := range faults {
		s.on(op.commands, f.step)
		told = append(told, f.name)
	}
	if op.commands == "bulkWrite" {
		s.on(op.commands, written)
	}
	b := open(t, s, newVirtual().options(1), d("retryWrites", on, "retryReads", on))
	out := b.do(op.object, op.name, op.args)
	ids, operations, sent := attemptsOf(b, op.commands)
	fail := func(format string, args ...any) {
		t.Errorf("%s on %s, retries %v, faults %s: %s: %v", op.name, kind, on, strings.Join(told, "; "), fmt.Sprintf(format, args...), sent)
	}
	if len(sent) == 0 || len(ids) != len(sent) || len(operations) != 1 {
		fail("%d sent, requestIds %v, operationIds %v", len(sent), ids, operations)
		return 0
	}
	numbered = numbered && on && kind != "single"
	limit, applied, recorded := 2, 0, false
	for i, c := range sent {
		var f randomFault
		if i < len(faults) {
			f = faults[i]
		} else {
			f.applies = true
		}
		n, err := c.LookupErr("txnNumber")
		if (err == nil) != numbered || numbered && !n.Equal(sent[0].Lookup("txnNumber")) || !c.Lookup("lsid").Equal(sent[0].Lookup("lsid")) {
			fail("attempt %d has number %v of session %v", i+1, n, c.Lookup("lsid"))
		}
		if slices.Contains(ids[:i], ids[i]) {
			fail("attempt %d has the requestId of another", i+1)
		}
		if f.applies && !(numbered && recorded) {
			applied, recorded = applied+1, true
		}
		if i == len(sent)-1 {
			if (f.name == "") != (out.Err == nil) {
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
	return len(sent)
}
