package runner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unified-test-runner/utr/format/source"
)

// Waits in milliseconds. A test that waits less than shortWait mostly computes. An estimate above mostWait is usually a
// limit that the test does not reach, as is a timeoutMS above mostTimeout.
const (
	shortWait   = 50
	mostWait    = 2000
	mostTimeout = 5000
)

// execution returns the order in which workers take jobs, as indices. Tests that wait are spread among those that
// compute, so that workers neither wait all together nor compute all together. The longest begin first, so that no
// worker is left alone with one at the end. Reports keep the order of the jobs. A single worker and a random order need
// no spreading. With --topology all, deployments are used one after the other.
//
// Where tests run side by side, those that cannot overlap form a sequence, and the longest one begins first.
func execution(jobs []job, cfg *Config) []int {
	order := make([]int, len(jobs))
	for i := range jobs {
		order[i] = i
	}
	if cfg.Jobs == 1 || cfg.Shuffle != nil {
		return order
	}
	for from, to := 0, 0; from < len(jobs); from = to {
		first := jobs[from]
		for to < len(jobs) && jobs[to].id.Iteration == first.id.Iteration &&
			(jobs[to].offer == first.offer || !cfg.AllTopologies) {
			to++
		}
		if first.beside {
			longestFirst(order[from:to], jobs, cfg.Jobs)
		} else {
			spread(order[from:to], jobs)
		}
	}
	return order
}

// longestFirst orders the jobs of order by the estimated time of their own and of later jobs with the same footprint.
// Those that only read share the time of the workers. Those that run alone, or use the whole cluster, are last.
func longestFirst(order []int, jobs []job, workers int) {
	left, rank := map[string]int64{}, map[int]int64{}
	for _, i := range slices.Backward(order) {
		if j := jobs[i]; j.uses.alone == "" && !slices.Contains(j.uses.names, wholeCluster) {
			took := shortWait + min(longestWait(j), mostWait)
			if j.uses.reads != "" {
				took /= int64(workers)
			}
			sequence := fmt.Sprint(j.offer, j.uses.names, j.uses.reads)
			left[sequence] += took
			rank[i] = left[sequence]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
}

// spread orders the jobs of order so that the tests that wait begin at intervals proportional to their waits.
func spread(order []int, jobs []job) {
	waits := map[int]int64{}
	var waiting, others []int
	var total, passed int64
	for _, i := range order {
		if wait := min(longestWait(jobs[i]), mostWait); wait >= shortWait {
			waits[i], waiting, total = wait, append(waiting, i), total+wait
		} else {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(waits[b], waits[a]) })
	order = order[:0]
	for done, i := range others {
		for len(waiting) > 0 && passed*int64(len(others)) <= total*int64(done) {
			passed += waits[waiting[0]]
			order, waiting = append(order, waiting[0]), waiting[1:]
		}
		order = append(order, i)
	}
	_ = append(order, waiting...)
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
	within(v, func(key string, v *source.Value) bool {
		switch {
		case key == "timeoutMS" && v.Int > mostTimeout:
		case slices.Contains([]string{"blockTimeMS", "serverSelectionTimeoutMS", "ms", "timeoutMS"}, key):
			longest = max(longest, v.Int)
		}
		return false
	})
	return longest
}
