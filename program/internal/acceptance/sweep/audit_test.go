package sweep

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/format/audit"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// A suite with one changed expectation fails, with a mismatch at the changed line. Each
// test runs once; its mutants are judged by the recording of that run, with which the
// unchanged test must pass.
func TestMutantsFail(t *testing.T) {
	own := func(folder ...string) func(*testing.T) string {
		return func(t *testing.T) string { return filepath.Join(append([]string{testkit.Root(t)}, folder...)...) }
	}
	for _, r := range []struct {
		name   string
		folder func(*testing.T) string
		files  int // the sample is one in files
		tests  int // and one in tests of them
		policy string
	}{
		{"own reads", own("specs", "retryable-reads"), 4, 16, ""},
		{"own writes", own("specs", "retryable-writes"), 4, 64, ""},
		{"own backpressure", own("specs", "client-backpressure"), 4, 16, ""},
		{"own preferences", own("specs", "read-preferences"), 3, 9, ""},
		{"own spans", own("specs", "open-telemetry"), 3, 32, ""},
		{"writes of 2018", own("specs", "dated", "retryable-writes-2018"), 6, 36, "retryable-writes@2018-03-14"},
		{"reads of 2024", own("specs", "dated", "retryable-reads-2024"), 4, 16, "retryable-reads@2024"},
		{"backpressure of 2025", own("specs", "dated", "client-backpressure-2025-12"), 4, 16, "client-backpressure@2025-12"},
		{"preferences of 2014", own("specs", "dated", "read-preferences-2014"), 3, 9, "read-preferences@2014-02-14"},
		{"official reads", func(t *testing.T) string { return testkit.Official(t, "retryable-reads", "tests", "unified") }, 3,
			9, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join(r.folder(t), "*.yml"))
			testkit.Check(t, err)
			// A test with a hundred threads cannot be judged by a recording.
			files = slices.DeleteFunc(files, func(name string) bool { return filepath.Base(name) == "tokens.yml" })
			if len(files) == 0 {
				t.Fatal("no suites")
			}
			// A sample can be empty, or have only tests that cannot be judged.
			file, test := testkit.Chance(t, r.files), testkit.Chance(t, r.tests)
			var sample []*specs.Suite
			rec := &runner.Recording{}
			for len(rec.Passed) == 0 {
				if some := slices.DeleteFunc(slices.Clone(files), func(string) bool { return !file() }); len(some) > 0 {
					sample = suitetest.Some(suitetest.Load(t, some...), test)
					rec = record(t, r.policy, sample)
				}
			}
			all := assess(t, rec, sample)
			testkit.Equal(t, "no mutant was judged", len(all) == 0, false)
			t.Logf("%d mutants judged", len(all))
			for _, a := range all {
				if a.fault != "" {
					t.Errorf("%s: %s: %s: %s", a.mutant.Position, a.mutant.Path, a.mutant.Change, a.fault)
				}
			}
		})
	}
}

// A test whose threads concurrently send the same request passes and cannot be judged,
// because the recording does not show which reply belongs to which thread.
func TestRacingThreads(t *testing.T) {
	suite, err := specs.Parse("a.yml",
		[]byte(`{description: d, schemaVersion: "1.10", runOnRequirements: [{topologies: [single]}],
createEntities: [{client: {id: c}}, {database: {id: d, client: c, databaseName: utr-racing}}, {collection: {id: k, database: d, collectionName: x}},
  {thread: {id: one}}, {thread: {id: two}}],
tests: [{description: at once, operations: [
  {name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: failCommand, mode: alwaysOn,
    data: {failCommands: [find], blockConnection: true, blockTimeMS: 200}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: one, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: runOnThread, object: testRunner, arguments: {thread: two, operation: {name: find, object: k, arguments: {filter: {}}}}},
  {name: waitForThread, object: testRunner, arguments: {thread: one}},
  {name: waitForThread, object: testRunner, arguments: {thread: two}}]},
 {description: alone, operations: [{name: find, object: k, arguments: {filter: {}}, expectResult: []}]}]}`))
	testkit.Check(t, err)
	rec := record(t, "", []*specs.Suite{suite})
	testkit.Equal(t, "tests that can and cannot be judged", [2]int{len(rec.Passed), len(rec.Racing)}, [2]int{1, 1})
	for id := range rec.Racing {
		testkit.Equal(t, "the racing test", id.Description, "at once")
	}
}

// record runs suites on embedded deployments, each test once.
func record(t *testing.T, policy string, suites []*specs.Suite) *runner.Recording {
	t.Helper()
	lender, err := deployment.OpenEmbedded(deployment.EmbeddedOptions{Topologies: []deployment.Topology{
		deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced, deployment.Single}})
	testkit.Check(t, err)
	// Some backoffs must exceed the remaining time.
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone,
		Random: func() float64 { return 0.9 }})
	testkit.Check(t, err)
	rec, _, err := runner.Record(t.Context(), suites,
		runner.Config{Engine: e, Source: lender, Notify: func(n result.Note) {
			if f, ended := n.(result.TestFinished); ended && f.Verdict.Status != result.Passed &&
				f.Verdict.Status != result.Skipped {
				t.Errorf("%s: %s %s", f.Verdict.Test.Description, f.Verdict.Status, f.Verdict.Reason)
			}
		}})
	testkit.Check(t, errors.Join(err, e.Close(), lender.Close()))
	return rec
}

func judge(t *testing.T, rec *runner.Recording, suite *specs.Suite, id result.TestID) *result.Verdict {
	t.Helper()
	v, err := rec.Judge(t.Context(), suite, id)
	if err != nil {
		t.Error(err)
	}
	return v
}

// assessment is the result of a mutant. fault is empty if it failed as expected.
type assessment struct {
	mutant audit.Mutant
	fault  string
}

// assess judges every recorded test and all its mutants, on all processors.
func assess(t *testing.T, rec *runner.Recording, suites []*specs.Suite) (all []assessment) {
	t.Helper()
	var mu sync.Mutex
	var workers sync.WaitGroup
	work := make(chan func())
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	for _, s := range suites {
		ids := map[result.Position]result.TestID{}
		for id, at := range rec.Passed {
			ids[at] = id
		}
		for _, test := range s.Tests {
			id, found := ids[test.Position]
			if !found {
				continue // no deployment meets its requirements
			}
			work <- func() {
				unchanged := *s
				unchanged.Tests = []*specs.Test{test}
				if v := judge(t, rec, &unchanged, id); v.Status != result.Passed {
					t.Errorf("%s: the unchanged test %s: %s %v", test.Position, v.Status, v.Reason, v.Mismatches)
				}
			}
		}
		broken, _ := audit.Mutants(s.Root)
		for _, m := range broken {
			id, found := ids[m.TestPosition]
			if !found {
				continue
			}
			work <- func() {
				mutated, err := specs.FromValue(s.File, m.Root)
				if err != nil {
					return // a mutant that the schema rejects cannot run
				}
				a := assessment{mutant: m}
				switch v := judge(t, rec, mutated, id); {
				case v.Status != result.Failed:
					a.fault = "the mutant " + string(v.Status) + " " + v.Reason
				case !blames(v, m):
					a.fault = "the failure does not name the line: " + v.Reason
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, a)
			}
		}
	}
	close(work)
	workers.Wait()
	return all
}

// blames reports whether a mismatch names the changed line, or a value in a list or
// document that was changed as a whole.
func blames(v *result.Verdict, m audit.Mutant) bool {
	for _, mismatch := range v.Mismatches {
		if mismatch.Position.Line == m.Position.Line || m.Whole && strings.HasPrefix(mismatch.Path, m.Path) {
			return true
		}
	}
	return false
}
