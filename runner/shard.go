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

// Shard is a part of a run. With the same suites, deployments and Durations, each
// test is in exactly one shard. The zero Shard is the whole run.
type Shard struct {
	Index, Count int // Index starts at 1
	// Durations of tests by ShardKey balance the shards; an unknown duration counts
	// as the average. If nil, the shard of a test depends only on its name.
	Durations map[string]time.Duration
}

// ParseShard parses a shard such as "2/5".
func ParseShard(text string) (Shard, error) {
	index, count, found := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, other := strconv.Atoi(count)
	switch {
	case !found || err != nil || other != nil:
		return Shard{}, errors.New("expected a form such as 2/5, the second part of five")
	case n < 1 || i < 1 || i > n:
		return Shard{}, fmt.Errorf("there is no part %d of %d", i, n)
	}
	return Shard{Index: i, Count: n}, nil
}

// String returns the form that ParseShard accepts, or "" for the whole run.
func (s Shard) String() string {
	if s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// ShardKey returns the key of a test in Shard.Durations.
func ShardKey(id result.TestID) string {
	return strings.Join([]string{id.File, id.Description, id.Deployment, strconv.Itoa(max(1, id.Iteration))}, "\x00")
}

// of returns the jobs of a shard in order.
func (s Shard) of(jobs []job) []job {
	if s.Count == 0 {
		return jobs
	}
	parts := s.parts(jobs)
	return slices.DeleteFunc(slices.Clone(jobs), func(j job) bool { return parts[ShardKey(j.id)] != s.Index-1 })
}

// parts returns the index of the shard of each job by ShardKey. It assigns jobs, the longest first, to the shard with
// the shortest total. The longest shard takes at most 4/3 of the optimum.
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
	counts := make([]int, s.Count) // to spread jobs of duration 0
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

// hashed maps a key to an index. The index is the same on every machine.
func hashed(key string, n int) int {
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(n))
}
