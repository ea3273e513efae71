// Package suites runs all suites, our own and the official ones, on every topology and
// server version, through both engines.
package suites

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
	"github.com/unified-test-runner/utr/result"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folders returns the folders of our own suites, and of the official ones if they exist.
func folders(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range suitetest.Specifications() {
		all = append(all, suitetest.OwnFolder(t, s))
		if path, found := testkit.FindOfficial(t, s, "tests"); found {
			all = append(all, path)
		} else {
			t.Logf("not verified: the official suites of %s are missing", s)
		}
	}
	return append(all, "server")
}

func TestReferenceEngine(t *testing.T) {
	suites := suitetest.Load(t, folders(t)...)
	for _, version := range embedded.Versions() {
		t.Run(version, func(t *testing.T) {
			b := suitetest.New(t, deployment.EmbeddedOptions{Version: version})
			suitetest.CheckVerdicts(t, b.Everywhere(t, suites), result.SkipRequirement)
		})
	}
}

func TestDriver(t *testing.T) {
	suites := suitetest.Load(t, folders(t)...)
	for _, version := range embedded.Versions() {
		t.Run(version, func(t *testing.T) {
			b := suitetest.With(t, driver.New(), deployment.EmbeddedOptions{Version: version})
			b.Config.Jobs = 8
			b.Config.KnownFailing = suitetest.KnownFailing(t, "engine/driver/known-failing.txt", suites)
			suitetest.CheckVerdicts(t, b.Everywhere(t, suites), result.SkipRequirement, result.SkipCapability)
		})
	}
}

// The suites of earlier dates pass with their policies. With the current policy, exactly the tests
// in specs/dated/known-failing.txt fail.
func TestDated(t *testing.T) {
	folders := suitetest.Dated()
	folders["../retryable-reads"] = "retryable-reads@2024" // they pass with both
	for folder, policy := range folders {
		suites := suitetest.Load(t, filepath.Join(testkit.Root(t), "specs", "dated", folder))
		for _, version := range embedded.Versions() {
			if version == "4.2" && strings.HasPrefix(folder, "client-backpressure") {
				continue // its fail points add error labels, and 4.2 does not support them
			}
			t.Run(folder+" "+version, func(t *testing.T) {
				dated := suitetest.NewWithPolicy(t, policy, deployment.EmbeddedOptions{Version: version})
				suitetest.CheckVerdicts(t, dated.Everywhere(t, suites), result.SkipRequirement)
				current := suitetest.New(t, deployment.EmbeddedOptions{Version: version})
				current.Config.KnownFailing = suitetest.KnownFailing(t, "specs/dated/known-failing.txt", suites)
				suitetest.CheckVerdicts(t, current.Everywhere(t, suites), result.SkipRequirement)
			})
		}
	}
}
