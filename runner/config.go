package runner

import (
	"context"
	"regexp"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// Config configures a run. Engine and Source are required; other fields have
// useful zero values. A run does not modify its Config.
type Config struct {
	// Engine is the driver under test. The runner does not close it.
	Engine engine.Engine
	// Source provides deployments. The runner does not close it.
	Source deployment.Source
	// Notify receives the notes of the run in order, and verdicts in the order of the tests, whatever Jobs is. Calls
	// never overlap, and block the workers. It may be nil.
	Notify func(result.Note)

	// Jobs is the number of concurrent tests; less than 1 means 1. Each worker
	// acquires a deployment: with one cluster, tests run one at a time.
	Jobs          int
	Filter        Filter         // selects tests
	FailFast      bool           // start no further test after one failed or broke
	Timeout       time.Duration  // of each test, without clean-up; 0 means DefaultTimeout
	Shuffle       *int64         // seed of a random order; nil keeps the order of the files
	Count         int            // runs of each test; less than 1 means 1
	AllTopologies bool           // run each test on every topology, not only on the first that meets its requirements
	Reseed        Reseed         // when to create initial data again
	KnownFailing  []KnownFailure // tests that are expected to fail
	Retries       int            // of a failed or broken test; if one passes, the test is flaky
	Shard         Shard          // the part of the tests to run; the zero Shard is all
	MinTests      int            // fewer tests, not counting skipped ones, are a Problem of the Summary
	// RequireFailPoints makes a test fail if one of its fail points never fired. Otherwise, the test has a warning if it
	// passes.
	RequireFailPoints bool
	// ServerAPI is the version of the Stable API that clients without serverApi and
	// the runner's own clients declare, or "".
	ServerAPI  string
	Cell       string           // of a matrix, or ""
	KeepEvents bool             // keep events and operations of passed tests in verdicts
	Now        func() time.Time // for durations; nil means time.Now
	Untrimmed  bool             // verdicts exceed result.DefaultLimits
	// Around is called before each attempt of a test. It returns the context of everything in the test, and a function to
	// call with the verdict. It may be nil.
	Around func(context.Context, result.TestID) (context.Context, func(*result.Verdict))
	Rerun  func(result.TestID) []string // returns the argument vector that runs a test again; may be nil
}

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 2 * time.Minute

// Filter selects tests by patterns over "file: description". The zero Filter
// selects all. A pattern that matches no test is a Problem of the Summary.
type Filter struct {
	Run  []*regexp.Regexp // one must match, unless empty
	Skip []*regexp.Regexp // none may match
}

// Reseed defines when initial data is created again.
type Reseed string

// The values of Reseed. ReseedAuto keeps collections that no test can have changed, and replaces only the documents
// where nothing else can have changed (operations.Effect). ReseedAlways creates all before each test, as the format
// specifies.
const (
	ReseedAuto   Reseed = "auto" // or ""
	ReseedAlways Reseed = "always"
)
