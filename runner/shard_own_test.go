package runner

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/specs"
)

// everywhere is what our own suites are on with --topology all.
func everywhere(t *testing.T) ([]*specs.Suite, []deployment.Description) {
	t.Helper()
	loaded, err := specs.Load([]string{"retryable-reads", "retryable-writes", "client-backpressure"}, specs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var offers []deployment.Description
	for _, topology := range []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced, deployment.Single} {
		for _, auth := range []bool{false, true} {
			d := deployment.Description{Name: string(topology) + " 8.0", Topology: topology, Version: [3]int{8, 0, 4}, Auth: auth, ReplicaSetShards: true}
			if auth {
				d.Name += " auth"
			}
			offers = append(offers, d)
		}
	}
	return loaded.Suites, offers
}

// The parts of all our suites, on all topologies, hold each test once and what
// the whole holds, whatever the durations: none, of all tests, of half of them,
// of others as well. By durations no part takes longer than another by more
// than the longest test, which is the bound that docs/scale.md states.
func TestShardsOfOwnSuites(t *testing.T) {
	suites, offers := everywhere(t)
	about := everything()
	whole := choose(suites, &Config{AllTopologies: true}, offers, about)
	if len(whole) < 10_000 {
		t.Fatalf("only %d jobs", len(whole))
	}
	random := rand.New(rand.NewPCG(5, 6))
	// Most tests take milliseconds, a few seconds: as measured.
	measured := durationsOf(whole, func(int) time.Duration {
		return time.Duration(random.ExpFloat64() * random.ExpFloat64() * float64(100*time.Millisecond))
	})
	half, more := map[string]time.Duration{}, map[string]time.Duration{"gone.yml\x00gone\x00single 4.2\x001": time.Hour}
	for i, j := range whole {
		key := ShardKey(j.id)
		if more[key] = measured[key]; i%2 == 0 {
			half[key] = measured[key]
		}
	}
	for _, r := range []struct {
		reason    string
		durations map[string]time.Duration
	}{
		{"by name", nil}, {"by durations", measured}, {"by durations of half of the tests", half}, {"by durations of others as well", more},
	} {
		for _, n := range []int{1, 2, 3, 7} {
			s := Shard{Count: n, Durations: r.durations}
			parts := s.parts(whole)
			in := map[string]int{}
			sums := make([]time.Duration, n)
			var longest time.Duration
			for i, j := range whole {
				key := ShardKey(j.id)
				if other, again := in[key]; again && other != parts[i] {
					t.Errorf("%s: %q is in parts %d and %d of %d", r.reason, key, other+1, parts[i]+1, n)
				}
				if in[key] = parts[i]; parts[i] < 0 || parts[i] >= n {
					t.Fatalf("%s: %q is in part %d of %d", r.reason, key, parts[i]+1, n)
				}
				if j.skip == nil {
					sums[parts[i]] += measured[key]
					longest = max(longest, measured[key])
				}
			}
			if s.Index = 1 + n/2; n == 7 { // what a run makes of one of them
				cfg := &Config{AllTopologies: true, Shard: s}
				if got, want := len(choose(suites, cfg, offers, about)), occurrences(parts, n/2); got != want {
					t.Errorf("%s: part %s has %d jobs, want %d", r.reason, s, got, want)
				}
			}
			apart := slices.Max(sums) - slices.Min(sums)
			switch {
			case len(r.durations) >= len(measured) && apart > longest:
				t.Errorf("%s: parts of %d take %v: %s apart, the longest test takes %s", r.reason, n, sums, apart, longest)
			case r.durations == nil && n > 1 && float64(slices.Max(sums)) > 1.25*float64(slices.Min(sums)):
				t.Errorf("%s: parts of %d take %v", r.reason, n, sums)
			}
		}
	}
}

func occurrences(list []int, what int) (n int) {
	for _, v := range list {
		if v == what {
			n++
		}
	}
	return n
}

// Every machine says the same, in whichever order it finds files and looks
// durations up.
func TestShardsAreTheSameEverywhere(t *testing.T) {
	suites, offers := everywhere(t)
	whole := choose(suites, &Config{AllTopologies: true}, offers, everything())
	random := rand.New(rand.NewPCG(7, 8))
	values := make([]time.Duration, len(whole))
	for i := range values {
		values[i] = time.Duration(random.IntN(50)) * time.Millisecond // many are equal
	}
	first := map[string]int{}
	for range 3 {
		s := Shard{Count: 7, Durations: durationsOf(whole, func(i int) time.Duration { return values[i] })} // a map of its own
		order := random.Perm(len(whole))
		jobs := make([]job, len(whole))
		for to, from := range order {
			jobs[to] = whole[from]
		}
		for i, part := range s.parts(jobs) {
			key := ShardKey(jobs[i].id)
			if before, known := first[key]; known && before != part {
				t.Fatalf("%q is in part %d, and in part %d where the tests are in another order", key, before+1, part+1)
			}
			first[key] = part
		}
	}
}
