package runner

import (
	"testing"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Tests that wait are spread among the others, the longest first, where that can shorten a run.
func TestExecution(t *testing.T) {
	waiting := func(text string) job {
		v, err := source.ParseJSON("f", []byte(text))
		testkit.Check(t, err)
		return job{suite: &specs.Suite{}, test: &specs.Test{Operations: []specs.Operation{{Arguments: v}}}}
	}
	short, long := waiting(`{"ms": 20}`), waiting(`{"failPoint": {"data": {"blockTimeMS": 1000}}}`)
	longer := job{suite: &specs.Suite{CreateEntities: []specs.Entity{{Value: waiting(`{"uriOptions": {"serverSelectionTimeoutMS": 5000}}`).test.Operations[0].Arguments}}},
		test: &specs.Test{}}
	skipped, elsewhere, later := longer, long, longer
	skipped.skip, elsewhere.offer, later.id = &Skip{}, 1, result.TestID{Iteration: 1}
	beside := func(collection string, more job) job {
		more.beside, more.uses.names = true, []string{"db." + collection}
		return more
	}
	alone, reader, whole := beside("a", longer), beside("d", short), beside("*", longer)
	alone.uses.alone, reader.uses.reads, whole.uses.names[0] = "it drops a database of others", "data", wholeCluster
	seed := int64(1)
	for _, tt := range []struct {
		why  string
		cfg  Config
		jobs []job
		want []int
	}{
		{"the longest begins first", Config{Jobs: 2}, []job{short, long, longer, short}, []int{2, 0, 3, 1}},
		{"tests that wait are spread by their waits: one of 2 s counts as two of 1 s", Config{Jobs: 2},
			[]job{long, long, longer, short, short, short, short}, []int{2, 3, 4, 0, 5, 1, 6}},
		{"without others, the longest begin first", Config{Jobs: 2}, []job{long, longer, long}, []int{1, 0, 2}},
		{"waits below 50 ms change nothing", Config{Jobs: 2}, []job{short, waiting(`{"ms": 49}`)}, []int{0, 1}},
		{"a wait of 50 ms counts", Config{Jobs: 2}, []job{short, waiting(`{"ms": 50}`)}, []int{1, 0}},
		{"a timeoutMS of 5 s is a wait, a longer one is a limit", Config{Jobs: 2},
			[]job{short, waiting(`{"timeoutMS": 5001}`), waiting(`{"timeoutMS": 5000}`)}, []int{2, 0, 1}},
		{"a skipped test does not wait", Config{Jobs: 2}, []job{short, skipped}, []int{0, 1}},
		{"one worker keeps the order", Config{Jobs: 1}, []job{short, long}, []int{0, 1}},
		{"a random order stays", Config{Jobs: 2, Shuffle: &seed}, []job{short, long}, []int{0, 1}},
		{"topologies follow each other", Config{Jobs: 2, AllTopologies: true}, []job{short, elsewhere}, []int{0, 1}},
		{"one topology for each test: any order", Config{Jobs: 2}, []job{short, elsewhere}, []int{1, 0}},
		{"side by side, the longest sequence begins first, and a test that runs alone is last", Config{Jobs: 2},
			[]job{alone, beside("b", short), beside("a", short), beside("c", longer), beside("a", short)}, []int{3, 2, 1, 4, 0}},
		{"tests that only read share the time of the workers, and those of the whole cluster are last", Config{Jobs: 2},
			[]job{whole, reader, reader, beside("a", short), beside("b", short), beside("b", short)}, []int{4, 1, 3, 5, 2, 0}},
		{"iterations follow each other", Config{Jobs: 2}, []job{short, later}, []int{0, 1}},
	} {
		testkit.Equal(t, tt.why, execution(tt.jobs, &tt.cfg), tt.want)
	}
}
