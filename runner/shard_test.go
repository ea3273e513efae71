package runner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

func jobsOf(n int) (jobs []job) {
	for i := range n {
		jobs = append(jobs, job{id: result.TestID{File: fmt.Sprintf("f%d.yml", i%7), Description: fmt.Sprintf("test %d", i),
			Iteration: 1}})
		if i%5 == 0 {
			jobs[i].skip = &Skip{result.SkipFile, "DRIVERS-1"}
		}
	}
	return jobs
}

func durationsOf(jobs []job, each func(i int) time.Duration) map[string]time.Duration {
	m := make(map[string]time.Duration)
	for i, j := range jobs {
		m[ShardKey(j.id)] = each(i)
	}
	return m
}

// Each test is in one shard, in order and independently of the order of all tests.
// Shards by duration differ by at most the longest test, as docs/night/scale.md states;
// shards by name have similar numbers of tests.
func TestShards(t *testing.T) {
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	jobs := jobsOf(600)
	twice := append(jobsOf(100), jobsOf(100)...)
	// Most tests take milliseconds, a few take seconds.
	measured := durationsOf(jobs, func(int) time.Duration {
		return time.Duration(random.ExpFloat64() * random.ExpFloat64() * float64(100*time.Millisecond))
	})
	more := map[string]time.Duration{"gone.yml\x00gone\x00single 4.2\x001": time.Hour}
	for key, took := range measured {
		more[key] = took
	}
	for _, r := range []struct {
		reason    string
		jobs      []job
		durations map[string]time.Duration
		even      bool // the durations decide
	}{
		{"no tests", nil, nil, false},
		{"by name", jobs, nil, false},
		{"by durations", jobs, measured, true},
		{"by durations, many of them equal", jobs,
			durationsOf(jobs, func(i int) time.Duration { return time.Duration(i % 3) }), true},
		{"by durations of half of the tests", jobs,
			durationsOf(jobs[:300], func(i int) time.Duration { return time.Duration(i) }), false},
		{"by durations of these and other tests", jobs, more, true},
		{"by durations of other tests only", jobs, map[string]time.Duration{"x": 1}, false},
		{"by no durations", jobs, map[string]time.Duration{}, false},
		{"duplicate names", twice, nil, false},
		{"duplicate names, by durations", twice, durationsOf(twice, func(i int) time.Duration { return time.Duration(i) }),
			false},
	} {
		for _, n := range []int{1, 2, 7, 700} {
			parts := Shard{Count: n, Durations: r.durations}.parts(r.jobs)
			sums, tests := make([]time.Duration, n), make([]int, n)
			var longest time.Duration
			var chosen []job // the jobs of one shard
			for _, j := range r.jobs {
				key := ShardKey(j.id)
				in := parts[key]
				if in < 0 || in >= n {
					t.Fatalf("%s: %q is in shard %d of %d", r.reason, key, in, n)
				}
				tests[in]++
				if in == n/2 {
					chosen = append(chosen, j)
				}
				if j.skip == nil {
					sums[in] += r.durations[key]
					longest = max(longest, r.durations[key])
				}
			}
			part := Shard{Index: 1 + n/2, Count: n, Durations: r.durations}.of(r.jobs)
			if !slices.EqualFunc(part, chosen, func(a, b job) bool { return a.id == b.id }) {
				t.Errorf("%s: shard %d of %d has %d jobs, want %d, in order", r.reason, 1+n/2, n, len(part), len(chosen))
			}
			if apart := slices.Max(sums) - slices.Min(sums); r.even && apart > longest {
				t.Errorf("%s: shards of %d take %v: a difference of %s, the longest test takes %s", r.reason, n, sums,
					apart, longest)
			}
			if even := len(r.jobs) / n; n <= 7 && (slices.Min(tests) < even/2 || slices.Max(tests) > even*3/2) && !r.even {
				t.Errorf("%s: shards of %d have %v tests", r.reason, n, tests)
			}
			shuffled := slices.Clone(r.jobs)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if again := (Shard{Count: n, Durations: r.durations}).parts(shuffled); !maps.Equal(again, parts) {
				t.Fatalf("%s: the shards of %d depend on the order of tests", r.reason, n)
			}
		}
	}
	testkit.Equal(t, "jobs of the whole run", len(Shard{}.of(jobs)), len(jobs))
}

// Without durations, the shard of a test does not depend on other tests.
func TestShardIsStable(t *testing.T) {
	jobs := jobsOf(200)
	s := Shard{Index: 1, Count: 4}
	all := s.parts(jobs)
	for key, part := range s.parts(jobs[100:]) {
		testkit.Equal(t, "the shard of "+key+" among fewer tests", part, all[key])
	}
	key := ShardKey(result.TestID{File: "a.yml", Description: "b", Deployment: "single 8.0"})
	testkit.Equal(t, "the hash, which must not change between versions", hashed(key, 1000), 741)
}

func TestParseShard(t *testing.T) {
	for text, ok := range map[string]bool{
		"2/5": true, "1/1": true, "": false, "2": false, "0/5": false, "6/5": false, "1/0": false, "one/five": false,
		"1/2/3": false,
	} {
		if s, err := ParseShard(text); (err == nil) != ok || ok && s.String() != text {
			t.Errorf("%q: %v %v", text, s, err)
		}
	}
	testkit.Equal(t, "the whole run", Shard{}.String(), "")
}
