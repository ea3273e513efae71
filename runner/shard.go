package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/result"
)

// Shard is one of several parts of a run, each of which another machine may
// run. All parts together hold every test exactly once, if they are given the
// same suites, deployments and Durations. The zero Shard is the whole.
type Shard struct {
	Index, Count int // Index counts from 1
	// Durations says how long tests took, by ShardKey, which balances the
	// parts. A test that is not in it counts as an average one. Nil: a test's
	// part depends on its name alone, and stays the same when others come and go.
	Durations map[string]time.Duration
}

// ParseShard reads "2/5".
func ParseShard(text string) (Shard, error) {
	index, count, found := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, other := strconv.Atoi(count)
	switch {
	case !found || err != nil || other != nil:
		return Shard{}, errors.New("expected a form such as 2/5, the second part of five")
	case n < 1 || i < 1 || i > n:
		return Shard{}, fmt.Errorf("there are %d parts, so that there is no part %d", n, i)
	}
	return Shard{Index: i, Count: n}, nil
}

// String is what ParseShard reads; "" for the whole.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// ShardKey names a test for a Shard.
func ShardKey(id result.TestID) string {
	return strings.Join([]string{id.File, id.Description, id.Deployment, strconv.Itoa(max(1, id.Iteration))}, "\x00")
}

// of gives the jobs of a shard, in their order.
func (s Shard) of(jobs []job) []job {
	if s.Count == 0 {
		return jobs
	}
	parts := s.parts(jobs)
	return slices.DeleteFunc(slices.Clone(jobs), func(j job) bool { return parts[ShardKey(j.id)] != s.Index-1 })
}

// parts gives the part of each job by its ShardKey, counted from 0. Jobs that
// run go one by one, the longest first, to the part that has the least to do;
// that makes no part longer than 4/3 of what is needed.
func (s Shard) parts(jobs []job) map[string]int {
	var sum time.Duration
	for _, d := range s.Durations {
		sum += d
	}
	average := sum / time.Duration(max(1, len(s.Durations)))
	parts, times := make(map[string]int), make(map[string]time.Duration)
	for _, j := range jobs {
		key := ShardKey(j.id)
		parts[key] = hashed(key, s.Count)
		if s.Durations != nil && j.skip == nil {
			took, known := s.Durations[key]
			if !known {
				took = average
			}
			times[key] += took
		}
	}
	longestFirst := func(a, b string) int { return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a, b)) }
	sums := make([]time.Duration, s.Count)
	counts := make([]int, s.Count) // what takes no time is spread as well
	for _, key := range slices.SortedFunc(maps.Keys(times), longestFirst) {
		part := 0
		for p := range sums {
			if sums[p] < sums[part] || sums[p] == sums[part] && counts[p] < counts[part] {
				part = p
			}
		}
		parts[key] = part
		sums[part] += times[key]
		counts[part]++
	}
	return parts
}

// hashed spreads names evenly, and says the same on every machine.
func hashed(key string, n int) int {
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(n))
}
