package runner

import (
	"cmp"
	"slices"

	"github.com/unified-test-runner/utr/specs/source"
)

// longWait is the wait, in milliseconds, from which a test begins early.
const longWait = 1000

// execution returns the order in which workers take jobs, as indices. Tests that can wait long begin first, so that no
// worker is left alone with one at the end. Reports keep the order of the jobs. A single worker and a random order have
// nothing to gain, and deployments of --topology all are used one after the other.
func execution(jobs []job, cfg *Config) []int {
	order := make([]int, len(jobs))
	for i := range jobs {
		order[i] = i
	}
	if cfg.Jobs == 1 || cfg.Shuffle != nil {
		return order
	}
	waits := make([]int64, len(jobs))
	for i, j := range jobs {
		if wait := longestWait(j); wait >= longWait {
			waits[i] = wait
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := jobs[a], jobs[b]
		if x.offer != y.offer && cfg.AllTopologies || x.id.Iteration != y.id.Iteration {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(waits[b], waits[a])
	})
	return order
}

// longestWait estimates how long a test waits, by the longest time in its operations and in the file's entities.
func longestWait(j job) (longest int64) {
	if j.skip != nil || j.fails != nil {
		return 0
	}
	for _, e := range j.suite.CreateEntities {
		longest = max(longest, waitIn(e.Value))
	}
	for _, o := range j.test.Operations {
		longest = max(longest, waitIn(o.Arguments))
	}
	return longest
}

func waitIn(v *source.Value) (longest int64) {
	for _, item := range v.Elements() {
		longest = max(longest, waitIn(item))
	}
	if v == nil {
		return longest
	}
	for _, f := range v.Fields {
		switch f.Key {
		case "blockTimeMS", "serverSelectionTimeoutMS", "ms":
			longest = max(longest, f.Value.Int)
		}
		longest = max(longest, waitIn(f.Value))
	}
	return longest
}
