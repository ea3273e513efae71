package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// beside returns a suite with a number of tests. Each performs an operation that takes a second.
func beside(t *testing.T, name, operation string, tests int) *specs.Suite {
	t.Helper()
	text := strings.NewReplacer("NAME", name, "OPERATION", operation).Replace(`
description: NAME
schemaVersion: "1.21"
createEntities:
  - client: {id: client0}
  - database: {id: database0, client: client0, databaseName: db}
  - collection: {id: collection0, database: database0, collectionName: NAME}
initialData: [{databaseName: db, collectionName: NAME, documents: [{_id: 1}]}]
tests:
`)
	for i := range tests {
		text += fmt.Sprintf("  - {description: %q, operations: [%s]}\n", fmt.Sprint(name, i+1), operation)
	}
	return parseFile(t, name+".yml", text)
}

const (
	finds   = "{name: find, object: collection0, arguments: {filter: {}}}"
	fetches = "{name: aggregate, object: collection0, arguments: {pipeline: []}}"
	inserts = "{name: insertOne, object: collection0, arguments: {document: {}}}"
	lists   = "{name: listDatabases, object: client0}"
)

// besides is a run on views of the same servers.
type besides struct {
	*run
	*fakeSource
	mu   sync.Mutex
	sent []string // names of the runner's own commands that end sessions, or drop collections
	ran  map[string][2]time.Duration
}

func onViews(t *testing.T, e *fakeEngine, jobs int, lacks ...deployment.Feature) *besides {
	t.Helper()
	began := time.Now()
	b := &besides{ran: map[string][2]time.Duration{}}
	about := deployment.Description{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Hosts: []string{"a:1"},
		Servers: []string{"server:1"}, FailPoints: []string{"failCommand"}, Version: [3]int{8}, Shared: true, Lacks: lacks}
	b.fakeSource = &fakeSource{offers: []deployment.Description{about}, start: func(about deployment.Description) *fakeDeployment {
		return &fakeDeployment{about: about, owned: true, sessions: []bson.RawValue{{Type: bson.TypeInt32, Value: []byte{7, 0, 0, 0}}},
			say: func(format string, args ...any) {
				line := fmt.Sprintf(format, args...)
				for _, name := range []string{"killAllSessions", "killSessions", `"drop"`} {
					if strings.Contains(line, name) {
						b.mu.Lock()
						b.sent = append(b.sent, line[strings.Index(line, "{"):])
						b.mu.Unlock()
					}
				}
			}}
	}}
	r, err := onFakes(Config{Engine: e, Jobs: jobs, Timeout: time.Minute, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			from := f.Verdict.Started.Sub(began)
			b.ran[f.Verdict.Test.Description] = [2]time.Duration{from, from + time.Duration(f.Verdict.Duration)}
		}
	}}, b.fakeSource)
	testkit.Check(t, err)
	b.run = r
	return b
}

// overlaps reports whether tests ran at the same time.
func (b *besides) overlaps(a, other string) bool {
	return b.ran[a][0] < b.ran[other][1] && b.ran[other][0] < b.ran[a][1]
}

// Tests of different collections run at the same time, tests of one collection one by one, and a test of the whole
// cluster alone.
func TestBeside(t *testing.T) {
	for _, r := range []struct {
		reason string
		lacks  []deployment.Feature
		took   time.Duration
	}{
		{"as their footprints allow", nil, 5 * time.Second},
		{"without sessions, one at a time", []deployment.Feature{deployment.Sessions}, 8 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := onViews(t, &fakeEngine{during: func() { time.Sleep(time.Second) }}, 4, r.lacks...)
			summary, err := b.all(t.Context(), []*specs.Suite{beside(t, "whole", lists, 1), beside(t, "a", inserts, 3),
				beside(t, "b", inserts, 4)})
			testkit.Check(t, err)
			testkit.Equal(t, r.reason, fmt.Sprint(summary.Passed, " in ", summary.Duration), fmt.Sprint(8, " in ", r.took))
			for x := range b.ran {
				for y := range b.ran {
					same := x != y && (x[0] == y[0] || x == "whole1" || y == "whole1" || r.lacks != nil)
					if same && b.overlaps(x, y) {
						t.Errorf("%s: %s and %s ran at the same time", r.reason, x, y)
					}
				}
			}
		})
	}
}

// Tests that only read the same initial data run at the same time, also those that use the whole cluster. The first one
// creates the data. After a test that failed, the next one waits for the others and creates the data again.
func TestReadersBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := result.Error{Message: "scripted", Code: 1}
		e := &fakeEngine{script: map[string][]step{"collection0.aggregate": {{Lasts: time.Second, Error: &fails}},
			"collection0.find": {{Lasts: 3 * time.Second, Repeat: true}}, "client0.listDatabases": {{Lasts: time.Second, Repeat: true}}}}
		b := onViews(t, e, 2)
		other := beside(t, "a", finds, 1)
		other.Tests[0].Description, other.InitialData[0].Documents = "other", nil
		readers := beside(t, "a", finds, 3)
		readers.Tests[0] = beside(t, "a", fetches, 1).Tests[0]
		wide := beside(t, "a", lists, 2)
		wide.Tests[0].Description, wide.Tests[1].Description = "wide1", "wide2"
		summary, err := b.all(t.Context(), []*specs.Suite{readers, other, wide})
		testkit.Check(t, err)
		testkit.Equal(t, "passed and failed", fmt.Sprint(summary.Passed, summary.Failed), "5 1")
		var at []string
		for _, name := range slices.Sorted(maps.Keys(b.ran)) {
			at = append(at, fmt.Sprint(name, " ", b.ran[name]))
		}
		testkit.Equal(t, "times", strings.Join(at, ", "),
			"a1 [0s 1s], a2 [0s 3s], a3 [3s 6s], other [6s 9s], wide1 [3s 4s], wide2 [4s 5s]")
		drops := slices.DeleteFunc(b.sent, func(line string) bool { return !strings.Contains(line, `"drop": "a"`) })
		testkit.Equal(t, "how often the collection was created", len(drops), 2)
	})
}

// If the initial data is created again before each test, tests that only read it run one by one.
func TestReadersWithNewData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onViews(t, &fakeEngine{during: func() { time.Sleep(time.Second) }}, 3)
		b.cfg.Reseed = ReseedAlways
		summary, err := b.all(t.Context(), []*specs.Suite{beside(t, "a", finds, 3)})
		testkit.Check(t, err)
		testkit.Equal(t, "tests", fmt.Sprint(summary.Passed, " in ", summary.Duration), "3 in 3s")
	})
}

// Before the first test, all sessions are ended once. After a test that failed, only its own sessions are ended, and
// only its collections are created again.
func TestCleanUpBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := result.Error{Message: "scripted", Code: 1}
		e := &fakeEngine{during: func() { time.Sleep(time.Second) },
			script: map[string][]step{"collection0.insertOne": {{Error: &fails}}}}
		b := onViews(t, e, 2)
		summary, err := b.all(t.Context(), []*specs.Suite{beside(t, "a", inserts, 2), beside(t, "b", finds, 2)})
		testkit.Check(t, err)
		testkit.Equal(t, "passed and failed", fmt.Sprint(summary.Passed, summary.Failed), "3 1")
		ended := slices.DeleteFunc(slices.Clone(b.sent), func(line string) bool { return strings.Contains(line, "drop") })
		testkit.Equal(t, "ended sessions", strings.Join(ended, "\n"),
			`{"killAllSessions": []}`+"\n"+`{"killSessions": [{"id": {"$numberInt":"7"}}]}`)
		count := map[string]int{}
		for _, line := range b.sent {
			for _, name := range []string{`"drop": "a"`, `"drop": "b"`} {
				if strings.Contains(line, name) {
					count[name]++
				}
			}
		}
		testkit.Equal(t, "dropped", fmt.Sprint(count), `map["drop": "a":2 "drop": "b":1]`)
	})
}

// A test that a delay can have failed beside others runs again, alone, and that verdict counts. Other tests do not run
// again, nor does a test that a single worker ran.
func TestFailedBesideRunsAlone(t *testing.T) {
	const patient, strict = 10_000, 15_000
	for _, r := range []struct {
		reason    string
		timeoutMS int
		jobs      int
		want      string
	}{
		{"a short limit", patient, 2, "4 passed, 0 failed, a1 from 2s to 3s"},
		{"a limit that a delay does not reach", strict, 2, "3 passed, 1 failed, a1 from 0s to 1s"},
		{"one worker", patient, 1, "3 passed, 1 failed, a1 from 0s to 1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			fails := result.Error{Message: "scripted", Code: 1}
			e := &fakeEngine{script: map[string][]step{"collection0.insertOne": {{Lasts: time.Second, Error: &fails}, {Lasts: time.Second}},
				"collection0.find": {{Lasts: time.Second, Repeat: true}}}}
			b := onViews(t, e, r.jobs)
			limited := fmt.Sprintf("{name: insertOne, object: collection0, arguments: {document: {}, timeoutMS: %d}}", r.timeoutMS)
			summary, err := b.all(t.Context(), []*specs.Suite{beside(t, "a", limited, 1), beside(t, "b", finds, 3)})
			testkit.Check(t, err)
			testkit.Equal(t, r.reason, fmt.Sprintf("%d passed, %d failed, a1 from %s to %s", summary.Passed, summary.Failed,
				b.ran["a1"][0], b.ran["a1"][1]), r.want)
		})
	}
}

// When the run is interrupted, or another test ends it, workers that wait for a running test end, too.
func TestWaitingWorkersEnd(t *testing.T) {
	for _, r := range []struct {
		reason   string
		failFast bool
		skipped  int
	}{{"an interruption", false, 3}, {"fail-fast", true, 2}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			fails := result.Error{Message: "scripted", Code: 1}
			e := &fakeEngine{script: map[string][]step{"collection0.insertOne": {{Lasts: 10 * time.Second}},
				"collection0.aggregate": {{Lasts: time.Second, Error: &fails}}}}
			b := onViews(t, e, 3)
			b.cfg.FailFast = r.failFast
			suites := []*specs.Suite{beside(t, "a", inserts, 3)}
			if r.failFast {
				suites = append(suites, beside(t, "b", fetches, 1))
			} else {
				time.AfterFunc(time.Second, interrupt)
			}
			summary, err := b.all(ctx, suites)
			testkit.Check(t, err)
			testkit.Equal(t, r.reason, fmt.Sprint(summary.Skipped, len(b.lent), len(b.jobs)), fmt.Sprint(r.skipped, 0, 0))
		})
	}
}
