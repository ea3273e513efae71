package runner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/result"
)

func jobsOf(n int) (jobs []job) {
	for i := range n {
		jobs = append(jobs, job{id: result.TestID{File: fmt.Sprintf("f%d.yml", i%7), Description: fmt.Sprintf("test %d", i), Iteration: 1}})
		if i%5 == 0 {
			jobs[i].skip = &skip{result.SkipFile, "DRIVERS-1"}
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

// All shards together hold every job exactly once, in the order of the whole.
func TestShardsPartition(t *testing.T) {
	jobs := jobsOf(500)
	twice := append(jobsOf(40), jobsOf(40)...) // names that are there twice
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range []struct {
		reason    string
		jobs      []job
		durations map[string]time.Duration
	}{
		{"by name", jobs, nil},
		{"by durations", jobs, durationsOf(jobs, func(int) time.Duration { return time.Duration(random.IntN(1e9)) })},
		{"by durations of some", jobs, durationsOf(jobs[:50], func(i int) time.Duration { return time.Duration(i) })},
		{"by durations of others", jobs, map[string]time.Duration{"x": 1}},
		{"by durations of nothing", jobs, map[string]time.Duration{}},
		{"names that are there twice", twice, nil},
		{"names that are there twice, by durations", twice, durationsOf(twice, func(i int) time.Duration { return time.Duration(i) })},
		{"nothing at all", nil, nil},
	} {
		for _, n := range []int{1, 2, 3, 7, 600} {
			var all []job
			seen := map[string]int{}
			for i := 1; i <= n; i++ {
				part := Shard{Index: i, Count: n, Durations: r.durations}.of(r.jobs)
				all = append(all, part...)
				last := -1
				for _, j := range part {
					key := ShardKey(j.id)
					if other, found := seen[key]; found && other != i {
						t.Errorf("%s: %q is in shards %d and %d of %d", r.reason, j.id.Description, other, i, n)
					}
					seen[key] = i
					var at int
					_, _ = fmt.Sscanf(j.id.Description, "test %d", &at)
					if at < last && len(r.jobs) == 500 {
						t.Errorf("%s: shard %d of %d is not in order", r.reason, i, n)
					}
					last = at
				}
			}
			if len(all) != len(r.jobs) {
				t.Errorf("%s: %d shards have %d jobs of %d", r.reason, n, len(all), len(r.jobs))
			}
		}
	}
}

// Without durations a test stays where it is when others come and go.
func TestShardIsStable(t *testing.T) {
	jobs := jobsOf(200)
	s := Shard{Index: 1, Count: 4}
	whole, fewer := s.parts(jobs), s.parts(jobs[100:])
	for i, part := range fewer {
		if whole[100+i] != part {
			t.Fatalf("test %d moved from %d to %d", 100+i, whole[100+i], part)
		}
	}
	if got := hashed(ShardKey(result.TestID{File: "a.yml", Description: "b", Deployment: "single 8.0"}), 1000); got != 741 {
		t.Errorf("the hash is %d: machines of two versions would disagree", got)
	}
}

// The longest shard exceeds the average by one test at most, and by name alone
// shards have about the same number of tests.
func TestShardsAreBalanced(t *testing.T) {
	jobs := jobsOf(1000)
	random := rand.New(rand.NewPCG(3, 4))
	durations := durationsOf(jobs, func(i int) time.Duration { return time.Duration(random.ExpFloat64() * float64(time.Second)) })
	const n = 6
	var sum, longest, most time.Duration
	for i := 1; i <= n; i++ {
		var took time.Duration
		for _, j := range (Shard{Index: i, Count: n, Durations: durations}).of(jobs) {
			if j.skip == nil {
				d := durations[ShardKey(j.id)]
				took, longest = took+d, max(longest, d)
			}
		}
		sum, most = sum+took, max(most, took)
		if tests := len(Shard{Index: i, Count: n}.of(jobs)); tests < 120 || tests > 220 {
			t.Errorf("shard %d has %d tests of 1000", i, tests)
		}
	}
	if most > sum/n+longest {
		t.Errorf("the longest shard takes %s, the average is %s", most, sum/n)
	}
	// Tests that took no time are spread as well.
	zero := durationsOf(jobs, func(int) time.Duration { return 0 })
	if tests := len(Shard{Index: 1, Count: 4, Durations: zero}.of(jobs)); tests < 180 || tests > 320 {
		t.Errorf("%d tests of no duration in one of four shards", tests)
	}
}

func TestParseShard(t *testing.T) {
	for _, r := range []struct {
		reason, text string
		ok           bool
	}{
		{"a part", "2/5", true},
		{"the only part", "1/1", true},
		{"none", "", false},
		{"no count", "2", false},
		{"parts count from 1", "0/5", false},
		{"one too many", "6/5", false},
		{"no parts", "1/0", false},
		{"words", "one/five", false},
		{"more", "1/2/3", false},
	} {
		s, err := ParseShard(r.text)
		if (err == nil) != r.ok || r.ok && s.String() != r.text {
			t.Errorf("%s: %v %v", r.reason, s, err)
		}
	}
}
