// Package acceptance tests all parts together: it runs suites through an engine on
// embedded deployments, in this process and in others. Package sweep runs more suites
// without the race detector; soak/suites runs all of them.
package acceptance

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit/suitetest"
)

// A quarter of the official suites pass.
func TestOfficialSuites(t *testing.T) { suitetest.OfficialPass(t) }

// A small sample of our own suites passes.
func TestOwnSuites(t *testing.T) { suitetest.OwnPass(t, 64) }
