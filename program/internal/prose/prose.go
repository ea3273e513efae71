// Package prose implements the prose tests of the retry specifications: the Unified Test Format cannot express them.
// Each test runs on a deployment through any engine.
package prose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine"
)

// Test is one prose test.
type Test struct {
	// Name consists of the specification and the number of the section, such as "reads-2.1".
	Name    string
	Section string
	Needs   Needs
	// Policies are the policies of the reference engine whose specifications require the test to pass.
	Policies []string
	run      func(*stage)
}

// Specification returns the name of the test's specification.
func (t Test) Specification() string {
	prefix, _, _ := strings.Cut(t.Name, "-")
	return map[string]string{"reads": "Retryable Reads", "writes": "Retryable Writes",
		"backpressure": "Client Backpressure"}[prefix]
}

// Needs are what a test requires of a deployment.
type Needs struct {
	// Topologies are named as in runOnRequirements. Empty: the test starts its own server.
	Topologies []string
	// Version is the lowest server version, major and minor.
	Version [2]int
}

// Deployment is the deployment of a test. The methods are methods of deployment.Deployment.
type Deployment interface {
	URI() string
	SingleURI() string
	DirectURI(address string) string
}

// Constants are the constants of client backpressure that tests use.
type Constants struct {
	// Backoffs are the maximum backoffs of all retries, in order.
	Backoffs []time.Duration
	// Tokens is the capacity of the token bucket, 0 without one.
	Tokens int
}

// Setting is the environment of a test.
type Setting struct {
	// Engine returns the engine under test. The caller closes it. If jitter is not nil, its random
	// numbers are jitter; the error is an *Unmet if the engine does not support this.
	Engine     func(jitter *float64) (engine.Engine, error)
	Deployment Deployment // nil for a test that needs none
	Constants  Constants
}

// Unmet is the error of a test that could not run.
type Unmet struct{ What string }

func (l *Unmet) Error() string { return l.What }

// Unclean is the error of a test whose cleanup failed, for instance to turn a fail point off. The deployment must not
// be used again.
type Unclean struct{ Err error }

func (u *Unclean) Error() string { return "cleaning up: " + u.Err.Error() }

// limit is the time limit of a test.
const limit = time.Minute

// Check runs the test and cleans up. The error describes the deviation from the specification. It is an *Unclean if
// the cleanup failed, and an *Unmet or a *result.Error with Unsupported if the test could not run. A deployment must
// run only one test at a time, since tests set the same fail points.
func (t Test) Check(ctx context.Context, s Setting) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the test took more than %s", limit))
	defer cancel()
	k := &stage{ctx: ctx, setting: s}
	k.Try(func() { t.run(k) })
	if err := k.End(ctx, limit); err != nil {
		return &Unclean{errors.Join(err, k.Failed())}
	}
	return k.Failed()
}

// Tests lists the tests in the order of the specifications.
func Tests() []Test { return slices.Concat(readTests(), writeTests(), overloadTests()) }

// Policies of the reference engine.
const (
	current  = "current"
	reads26  = "retryable-reads@2026"
	reads24  = "retryable-reads@2024"
	proposal = "client-backpressure@2025-12"
)

var everyPolicy = []string{current, reads26, reads24, proposal}

// Sets of topologies.
var (
	sets     = []string{"replicaset"}
	clusters = []string{"sharded"}
	servers  = []string{"single", "replicaset", "sharded"}
	retrying = []string{"replicaset", "sharded"}
)
