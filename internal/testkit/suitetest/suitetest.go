// Package suitetest runs suites in tests, on an engine and embedded deployments, and checks the verdicts.
package suitetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/enginetest"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// Specifications returns the specifications that have suites in this repository.
func Specifications() []string {
	return []string{"retryable-reads", "retryable-writes", "client-backpressure"}
}

// Dated maps the folders of suites of earlier dates to their policies.
func Dated() map[string]string {
	return map[string]string{
		"retryable-writes-2018":       "retryable-writes@2018-03-14",
		"retryable-reads-2024":        "retryable-reads@2024",
		"client-backpressure-2025-12": "client-backpressure@2025-12",
		"read-preferences-2014":       "read-preferences@2014-02-14",
	}
}

// Topologies returns all embedded topologies.
func Topologies() []deployment.Topology {
	return []deployment.Topology{deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced, deployment.Single}
}

// OwnFolder returns the folder of our own suites of a specification.
func OwnFolder(t testing.TB, specification string) string {
	return filepath.Join(testkit.Root(t), "specs", specification)
}

// Load loads suites.
func Load(t testing.TB, paths ...string) []*specs.Suite {
	t.Helper()
	loaded, err := specs.Load(paths, specs.Options{})
	testkit.Check(t, err)
	return loaded.Suites
}

// OwnSuites returns all our own suites. They are loaded once; tests must not modify them.
func OwnSuites(t testing.TB) []*specs.Suite {
	t.Helper()
	loaded, err := ownOnce()
	testkit.Check(t, err)
	return loaded.Suites
}

var ownOnce = sync.OnceValues(func() (*specs.Loaded, error) { return specs.Load(Specifications(), specs.Options{}) })

// OwnPass expects that one in n tests of our own suites passes on two topologies, and another sample on the other two.
func OwnPass(t *testing.T, n int) {
	t.Helper()
	for _, on := range [][]deployment.Topology{{deployment.ReplicaSet, deployment.LoadBalanced},
		{deployment.Sharded, deployment.Single}} {
		PassOn(t, on, "", Share(t, n))
	}
}

// OfficialPass expects that a quarter of the official suites passes on the most common topologies.
func OfficialPass(t *testing.T) {
	for _, r := range []struct {
		specification, folder string
		files                 int // the minimum, to detect a moved folder
	}{
		{"retryable-reads", "tests/unified", 45},
		{"retryable-writes", "tests/unified", 35},
		{"client-backpressure", "tests", 4},
	} {
		t.Run(r.specification, func(t *testing.T) {
			found := files(t, testkit.Official(t, r.specification, r.folder))
			if len(found) < r.files {
				t.Errorf("%s of at least %d", plural.Of(len(found), "file"), r.files)
			}
			on := []deployment.Topology{deployment.ReplicaSet, deployment.Sharded}
			PassOn(t, on, "", Load(t, someFiles(found, testkit.Chance(t, 4))...))
		})
	}
}

// Some returns the tests that picked selects.
func Some(suites []*specs.Suite, picked func() bool) []*specs.Suite {
	var out []*specs.Suite
	for _, s := range suites {
		part := *s
		part.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(*specs.Test) bool { return !picked() })
		if len(part.Tests) > 0 {
			out = append(out, &part)
		}
	}
	return out
}

// Share loads one in n tests of our own suites, or all with UTR_SOAK=1. n must be at least 4: it parses a quarter of
// the files, because parsing takes longer than running so few tests.
func Share(t testing.TB, n int) []*specs.Suite {
	t.Helper()
	var all []string
	for _, s := range Specifications() {
		all = append(all, files(t, OwnFolder(t, s))...)
	}
	quarter, rest := testkit.Chance(t, 4), testkit.Chance(t, n/4)
	for {
		if some := Some(Load(t, someFiles(all, quarter)...), rest); len(some) > 0 {
			return some
		}
	}
}

// files lists the suites of a folder, the largest first, so that a sample of one in n files has about one in n tests.
func files(t testing.TB, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.yml"))
	testkit.Check(t, err)
	if len(found) == 0 {
		t.Fatalf("no suites in %s", folder)
	}
	size := func(name string) int64 {
		info, err := os.Stat(name)
		testkit.Check(t, err)
		return info.Size()
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(size(b), size(a)) })
	return found
}

// someFiles returns the files that picked selects, at least one.
func someFiles(all []string, picked func() bool) []string {
	for {
		if some := slices.DeleteFunc(slices.Clone(all), func(string) bool { return !picked() }); len(some) > 0 {
			return some
		}
	}
}

// Bench runs suites. Config may be modified before a run.
type Bench struct{ Config runner.Config }

// New returns a bench with the reference engine and embedded deployments.
func New(t testing.TB, o deployment.EmbeddedOptions) *Bench {
	t.Helper()
	return NewWithPolicy(t, "", o)
}

// NewWithPolicy is New with a retry policy.
func NewWithPolicy(t testing.TB, policy string, o deployment.EmbeddedOptions) *Bench {
	t.Helper()
	// Backoffs are computed but not slept. The jitter is at least 0.25: if a test expects that a backoff exceeds
	// timeoutMS, it does.
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone,
		Random: func() float64 { return 0.25 + 0.75*rand.Float64() }})
	testkit.Check(t, err)
	return With(t, e, o)
}

// With returns a bench with an engine and embedded deployments. It closes the engine.
func With(t testing.TB, e engine.Engine, o deployment.EmbeddedOptions) *Bench {
	t.Helper()
	lender, err := deployment.OpenEmbedded(o)
	testkit.Check(t, err)
	t.Cleanup(func() { testkit.Check(t, errors.Join(e.Close(), lender.Close())) })
	return &Bench{Config: runner.Config{Engine: e, Source: lender, Jobs: 2, Timeout: testkit.Patience}}
}

// Run runs suites and returns the verdicts in the order of the notes.
func (b *Bench) Run(t testing.TB, suites []*specs.Suite) []*result.Verdict {
	t.Helper()
	var verdicts []*result.Verdict
	config := b.Config
	config.Notify = func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdicts = append(verdicts, f.Verdict)
		}
		if b.Config.Notify != nil {
			b.Config.Notify(n)
		}
	}
	summary, err := runner.Run(context.Background(), suites, config)
	testkit.Check(t, err)
	if len(summary.Problems) > 0 {
		t.Errorf("problems of the run: %v", summary.Problems)
	}
	return verdicts
}

// Everywhere runs suites in a random order on every topology of the bench.
func (b *Bench) Everywhere(t testing.TB, suites []*specs.Suite) []*result.Verdict {
	t.Helper()
	seed := int64(testkit.Seed(t) >> 1)
	everywhere := *b
	everywhere.Config.AllTopologies, everywhere.Config.Shuffle = true, &seed
	return everywhere.Run(t, suites)
}

// PassOn expects that suites pass on embedded topologies with a retry policy ("" for the current one), and that at
// least one test passes on each topology. Tests may be skipped only for requirements.
func PassOn(t *testing.T, topologies []deployment.Topology, policy string, suites []*specs.Suite) {
	t.Helper()
	verdicts := NewWithPolicy(t, policy, deployment.EmbeddedOptions{Topologies: topologies}).Everywhere(t, suites)
	CheckVerdicts(t, verdicts, result.SkipRequirement)
	for _, topology := range topologies {
		if !slices.ContainsFunc(verdicts, func(v *result.Verdict) bool {
			return v.Status == result.Passed && strings.HasPrefix(v.Test.Deployment, string(topology))
		}) {
			t.Errorf("no test passed on %s", topology)
		}
	}
}

// CheckVerdicts expects that all tests passed, are known to fail, or were skipped for one of
// the given kinds of reasons, and that at least one passed.
func CheckVerdicts(t testing.TB, verdicts []*result.Verdict, fine ...result.SkipKind) {
	t.Helper()
	count := map[result.Status]int{}
	for _, v := range verdicts {
		count[v.Status]++
		switch {
		case v.Status == result.Passed, v.Status == result.KnownFailing:
		case v.Status == result.Skipped && slices.Contains(fine, v.SkipKind):
		default:
			t.Errorf("%s\n%s", v.Position, Describe(v))
		}
	}
	t.Logf("%v", count)
	if count[result.Passed] == 0 {
		t.Error("no test passed")
	}
}

// Describe summarizes a verdict.
func Describe(v *result.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s %s %s", v.Test.Description, v.Test.Deployment, v.Status, v.SkipKind, v.Reason)
	for _, m := range v.Mismatches {
		fmt.Fprintf(&b, "\n  %s: %s: %s\n    want %s\n    got  %s", m.Position, m.Path, m.Message, m.Want, m.Got)
	}
	return b.String()
}

// KnownFailing returns the entries of a known-failing file that match tests of the suites. The path is relative to the
// project.
func KnownFailing(t testing.TB, file string, suites []*specs.Suite) []runner.KnownFailure {
	t.Helper()
	name := filepath.Join(testkit.Root(t), file)
	list, err := runner.ParseKnownFailing(name, strings.NewReader(testkit.Read(t, name)))
	testkit.Check(t, err)
	return slices.DeleteFunc(list, func(k runner.KnownFailure) bool {
		only := runner.Filter{Run: []*regexp.Regexp{k.Pattern}}
		return !slices.ContainsFunc(suites, func(s *specs.Suite) bool {
			return slices.ContainsFunc(s.Tests, func(test *specs.Test) bool { return only.Allows(s, test) })
		})
	})
}

// Behaviors checks all behaviors of an engine on the deployment at uri.
func Behaviors(t *testing.T, e engine.Engine, uri string) {
	for _, b := range enginetest.Behaviors() {
		t.Run(b.Name, func(t *testing.T) { testkit.Check(t, b.Check(t.Context(), e, uri)) })
	}
}
