package sweep

import (
	"fmt"
	"slices"
	"testing"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Tests that run side by side on one cluster have no verdict that they do not also have one by one, on every topology and
// in any order: a sample of our suites and of the official ones, or all with UTR_SOAK=1.
func TestSideBySide(t *testing.T) {
	suites := suitetest.Share(t, 96)
	if source, found := testkit.FindOfficial(t); found {
		suites = append(suites, suitetest.Some(suitetest.Load(t, source), testkit.Chance(t, 48))...)
	}
	played := testkit.Chance(t, 2)
	for _, topology := range suitetest.Topologies() {
		for _, mode := range []deployment.FailPointMode{deployment.FailPointsAuto, deployment.FailPointsProxy} {
			if !played() {
				continue
			}
			t.Run(fmt.Sprintf("%s, fail points %s", topology, mode), func(t *testing.T) { sideBySide(t, topology, mode, suites) })
		}
	}
}

func sideBySide(t *testing.T, topology deployment.Topology, mode deployment.FailPointMode, suites []*specs.Suite) {
	d := embedded.StartT(t, embedded.Options{Topology: topology})
	differ := onCluster(t, d, mode, suites, 16)
	count := len(differ)
	// On a busy machine, tests with short time limits do not always have the same verdict.
	for attempt := 0; attempt < 10 && len(differ) > 0; attempt++ {
		alone := onCluster(t, d, mode, only(suites, differ), 1)
		if attempt == 0 {
			testkit.Equal(t, "verdicts", len(alone), count)
		}
		for test, v := range alone {
			if beside := differ[test]; beside.Status == v.Status && beside.Reason == v.Reason {
				delete(differ, test)
			}
		}
	}
	for _, v := range differ {
		t.Errorf("only side by side: %s", suitetest.Describe(v))
	}
}

// only returns the tests of suites that have a verdict.
func only(suites []*specs.Suite, verdicts map[result.Position]*result.Verdict) (some []*specs.Suite) {
	for _, s := range suites {
		part := *s
		part.Tests = slices.DeleteFunc(slices.Clone(s.Tests), func(t *specs.Test) bool {
			return verdicts[t.Position] == nil
		})
		if len(part.Tests) > 0 {
			some = append(some, &part)
		}
	}
	return some
}

// onCluster runs suites on a running deployment, in a random order, and returns the verdicts.
func onCluster(t *testing.T, d *embedded.Deployment, mode deployment.FailPointMode, suites []*specs.Suite,
	jobs int) map[result.Position]*result.Verdict {
	t.Helper()
	b := suitetest.New(t, deployment.EmbeddedOptions{})
	source, err := deployment.OpenCluster(testkit.Context(t), deployment.ClusterOptions{URI: d.URI(), SingleURI: d.SingleURI(),
		FailPointMode: mode, Jobs: jobs})
	testkit.Check(t, err)
	defer func() { testkit.Check(t, source.Close()) }()
	b.Config.Source, b.Config.Jobs = source, jobs
	verdicts := map[result.Position]*result.Verdict{}
	for _, v := range b.Everywhere(t, suites) {
		verdicts[v.Position] = v
	}
	return verdicts
}
