// Package prose has the prose tests of the retry specifications: what they ask every driver to test, and the
// Unified Test Format cannot express. Each test runs on a deployment through any engine.
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
	// Name is short, such as "reads-2.1": the specification, and the number of the section.
	Name          string
	Specification string
	Section       string
	Needs         Needs
	// Policies are those of the reference engine whose specifications demand what the test does.
	Policies []string
	run      func(*stage)
}

// Needs are what a test requires of a deployment.
type Needs struct {
	// Topologies are those that it runs on, as runOnRequirements names them. Empty: the test has
	// a server of its own.
	Topologies []string
	// Version is the lowest server version, major and minor.
	Version [2]int
}

// For reports whether the test is about a policy.
func (t Test) For(policy string) bool { return slices.Contains(t.Policies, policy) }

// Deployment is what a test runs on. The connection strings are those of deployment.Deployment.
type Deployment interface {
	URI() string
	SingleURI() string
	DirectURI(address string) string
}

// Constants are those of client backpressure that tests count and measure by.
type Constants struct {
	MaxRetries int
	// Backoffs are the longest possible ones, in order, MaxRetries of them.
	Backoffs []time.Duration
	// Tokens is the capacity of the token bucket, 0 without one.
	Tokens int
}

// Setting is what a test runs with.
type Setting struct {
	// Engine gives a driver under test, which stays the caller's. Its random numbers are jitter,
	// unless that is nil; the error is a *Lacking if the driver cannot do this.
	Engine     func(jitter *float64) (engine.Engine, error)
	Deployment Deployment // nil for a test that needs none
	Constants  Constants
}

// Lacking is why a test could not run.
type Lacking struct{ What string }

// Error implements error.
func (l *Lacking) Error() string { return l.What }

// Unclean is the error of a test that has left something behind, such as a fail point that is still on: the deployment must
// not be used again.
type Unclean struct{ Err error }

// Error implements error.
func (u *Unclean) Error() string { return "cleaning up: " + u.Err.Error() }

// limit is how long a test may take.
const limit = time.Minute

// Check runs the test, closes what it opens, and turns its fail points off. The error says what was seen instead of
// what the specification demands. It is an *Unclean if the test has left something behind, whatever was seen; and a
// *Lacking, or a *result.Error with Unsupported, if the test could not run. Tests set the same fail points: a
// deployment runs one at a time.
func (t Test) Check(ctx context.Context, s Setting) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the test took more than %s", limit))
	defer cancel()
	k := &stage{ctx: ctx, setting: s}
	k.try(func() { t.run(k) })
	if err := k.end(); err != nil {
		return &Unclean{errors.Join(err, k.failed())}
	}
	return k.failed()
}

// Tests lists the tests, in the order of the specifications.
func Tests() []Test {
	all := slices.Concat(readTests(), writeTests(), overloadTests())
	names := map[string]string{"reads": "Retryable Reads", "writes": "Retryable Writes", "backpressure": "Client Backpressure"}
	for i, t := range all {
		about, _, _ := strings.Cut(t.Name, "-")
		all[i].Specification = names[about]
	}
	return all
}

// The policies that tests are about.
const (
	current  = "current"
	reads26  = "retryable-reads@2026"
	reads24  = "retryable-reads@2024"
	proposal = "client-backpressure@2025-12"
)

// The topologies.
var (
	sets     = []string{"replicaset"}
	clusters = []string{"sharded"}
	servers  = []string{"single", "replicaset", "sharded"}
	retrying = []string{"replicaset", "sharded"}
)
