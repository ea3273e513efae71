package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/specs"
)

// The generator uses every operation, fault, option and topology. Every schedule is a
// valid suite and depends only on the seed.
func TestGenerator(t *testing.T) {
	g, second, other, same, others := NewGenerator(3, all...), NewGenerator(3, all...), NewGenerator(4,
		all...), true, false
	seen := map[string]int{}
	var schedules []Schedule
	for range 3000 {
		s := g.Next()
		schedules = append(schedules, s)
		same, others = same && second.Next().String() == s.String(), others || other.Next().String() != s.String()
		seen[s.Operation]++
		seen[s.Topology]++
		for name, v := range s.Options {
			seen[fmt.Sprintf("{%s: %v}", name, v)]++
		}
		for _, f := range s.Faults {
			for _, word := range strings.Fields(f.String()) {
				seen[strings.Trim(word, "[]")]++
			}
		}
		if len(s.Faults) == 0 || len(s.Faults) > 4 {
			t.Errorf("%s has %d faults", s, len(s.Faults))
		}
		if s.Topology == "single" && parts().Operations[s.Operation].Replicated {
			t.Errorf("%s cannot run", s)
		}
	}
	for name, op := range parts().Operations { // standalones have no transactions
		if op.Replicated != strings.Contains(fmt.Sprint(op.Before, op.Operations), "Transaction") {
			t.Errorf("%s: replicated is %t", name, op.Replicated)
		}
	}
	wanted := slices.Concat(slices.Collect(maps.Keys(parts().Operations)), all, []string{
		"passes", "closed", "lost", "blocked", "concern", "SystemOverloadedError", "RetryableError", "NoWritesPerformed", "RetryableWriteError",
		"{retryReads: false}", "{retryWrites: false}", "{timeoutMS: 1000}", "{maxAdaptiveRetries: 0}", "{maxAdaptiveRetries: 3}",
		"{enableOverloadRetargeting: true}", "{readPreference: secondaryPreferred}", "2200"})
	for _, w := range wanted {
		if seen[w] == 0 {
			t.Errorf("%q is never generated", w)
		}
	}
	var tests []bson.D
	for i, one := range schedules[:100] { // soak/compare checks more
		tests = append(tests, one.test(fmt.Sprint(i), nil))
	}
	root, err := parsed(suite("all", tests...))
	testkit.Check(t, err)
	if all, err := specs.FromValue("all", root); err != nil || len(all.Tests) != len(tests) {
		t.Errorf("%d schedules are not a valid suite: %v", len(tests), err)
	}
	if !same || !others {
		t.Errorf("the same seed generates the same schedules: %t; another seed generates others: %t", same, others)
	}
}

// size decreases with each step of shrinking, so shrinking terminates.
func size(s Schedule) int {
	n := 1000*len(s.Faults) + len(s.Options)
	if s.Topology != "" && s.Topology != plainest {
		n += 500
	}
	for _, f := range s.Faults {
		if f.String() != "passes" {
			n += 100 + len(f.String())
		}
	}
	return n
}

// A schedule on several mongoses begins when the client knows both: a retry does not wait for discovery. A schedule on
// one, or on any deployment, has nothing to wait for.
func TestSchedulesBeginAfterDiscovery(t *testing.T) {
	for _, row := range []struct {
		schedule Schedule
		waits    bool
	}{
		{Schedule{Operation: "find", Topology: "sharded"}, true},
		{Schedule{Operation: "commitTransaction", Topology: "sharded"}, false},
		{Schedule{Operation: "find", Topology: "replicaset"}, false},
		{Schedule{Operation: "find"}, false},
	} {
		var steps []bson.D
		for _, e := range row.schedule.test("x", nil) {
			if e.Key == "operations" {
				steps, _ = e.Value.([]bson.D)
			}
		}
		at := slices.IndexFunc(steps, func(step bson.D) bool { return step[0].Value == "waitForEvent" })
		testkit.Equal(t, row.schedule.String(), at == 1, row.waits)
	}
}

// Each step of shrinking returns a smaller schedule with the same operation.
func TestSmaller(t *testing.T) {
	g := NewGenerator(4, all...)
	for range 500 {
		s := g.Next()
		before := s.String()
		for _, c := range smaller(s) {
			if size(c) >= size(s) || c.Operation != s.Operation {
				t.Errorf("%s is not a smaller %s", c, s)
			}
		}
		if s.String() != before {
			t.Fatalf("%s was changed to %s", before, s)
		}
	}
	if left := smaller(Schedule{Operation: "find", Topology: plainest, Faults: []Fault{{Code: 6}}}); len(left) != 1 ||
		left[0].Faults[0].String() != "passes" {
		t.Errorf("a single fault shrinks to %v", left)
	}
}
