package runner

import (
	"regexp"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// Config says how suites are run. Engine and Source are needed; the zero
// value of everything else is a sensible choice. A Config is not changed by a
// run and may serve several.
type Config struct {
	// Engine is the driver under test. The runner does not close it.
	Engine engine.Engine
	// Source lends deployments. The runner does not close it.
	Source deployment.Source
	// Notify gets the notes of the run, in order, never two at once. It must
	// not block for long: workers wait for it. Nil drops them.
	Notify func(result.Note)

	// Jobs is the number of tests that run at once; less than 1 means 1. Each
	// worker acquires its own deployment, so that a source with one cluster
	// runs one test at a time whatever is said here.
	Jobs int
	// Filter chooses tests.
	Filter Filter
	// FailFast begins no further test after the first that failed or broke.
	FailFast bool
	// Timeout bounds each test, clean-up apart; 0 means DefaultTimeout.
	Timeout time.Duration
	// Shuffle is the seed of a random order; nil keeps the order of the files.
	Shuffle *int64
	// Count is how many times each test runs; less than 1 means 1.
	Count int
	// AllTopologies runs each test on every offer of the source. Otherwise a
	// test runs once, on the first offer that meets its requirements.
	AllTopologies bool
	// Reseed says when initial data is created again.
	Reseed Reseed
	// KnownFailing lists tests that are expected to fail.
	KnownFailing []KnownFailure
	// Retries is how often a test that failed or broke is tried again. One that
	// passes then is flaky.
	Retries int
	// Shard is the part of the tests to run; the zero Shard is all.
	Shard Shard
	// ServerAPI is the version of the Stable API that clients declare for which
	// their suite declares none (serverApi), and that the runner's own clients
	// declare; "" leaves them without.
	ServerAPI string
	// Cell names the cell of a matrix that this run is; "" outside of a matrix.
	Cell string
	// KeepEvents keeps events and operations of passed tests in verdicts.
	KeepEvents bool
	// Limits bound what verdicts keep; the zero value is result.DefaultLimits.
	Limits result.Limits
	// Rerun gives the argument vector that runs one test again, for reports.
	// Nil leaves it out.
	Rerun func(result.TestID) []string
	// Now is the time of durations; nil means time.Now.
	Now func() time.Time
}

// DefaultTimeout bounds a test when Config.Timeout does not.
const DefaultTimeout = 2 * time.Minute

// Filter chooses tests by patterns over "file: description". The zero Filter
// chooses all. A pattern that matches no test at all is a Problem of the
// Summary, so that a stale one does not stay unnoticed.
type Filter struct {
	Run  []*regexp.Regexp // at least one must match, unless empty
	Skip []*regexp.Regexp // none may match
}

// Reseed says when initial data is created again.
type Reseed string

// The ways to reseed. ReseedAuto, the zero value, leaves a collection alone
// that no test since can have changed, and only exchanges the documents of one in
// which nothing else can have changed: see specs/operations.Effect.
const (
	ReseedAuto   Reseed = ""
	ReseedAlways Reseed = "always" // the letter of the format
)
