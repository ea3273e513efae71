// Package acceptance holds the tests of all parts together: suites that run
// through an engine on embedded deployments, as a whole and in processes of
// their own. Package sweep runs more of them without the race detector, soak/suites
// all of them.
package acceptance

import (
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit/bench"
)

// A quarter of the official suites passes, with the race detector. Package sweep runs all of them without it.
func TestOfficialSuites(t *testing.T) { bench.OfficialPass(t, 4) }

// A small share of our own suites passes, with the race detector. Package sweep runs more of them without it.
func TestOwnSuites(t *testing.T) { bench.OwnPass(t, 64) }
