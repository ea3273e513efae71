package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
)

// fault is what is wrong with a test. Exactly one of its first fields is set.
type fault struct {
	mismatches  []result.Mismatch // the test failed
	unsupported string            // the engine lacks a capability: a skip
	broken      error             // set-up, deployment or engine failed
	interrupted bool              // the run was asked to end

	// value says that mismatches are about a value alone: the operation did
	// end as it was to end. They end the test's operations; if none is left,
	// events and outcome are judged, so that all that differs is reported.
	value bool
}

func failf(path string, at source.Position, format string, args ...any) *fault {
	return &fault{mismatches: []result.Mismatch{{Path: path, Position: at, Message: fmt.Sprintf(format, args...)}}}
}

func breakf(format string, args ...any) *fault { return &fault{broken: fmt.Errorf(format, args...)} }

// failed makes a fault of mismatches, nil if there are none.
func failed(mismatches []result.Mismatch) *fault {
	if len(mismatches) == 0 {
		return nil
	}
	return &fault{mismatches: mismatches}
}

// limitError is the cause of a context that ended by a time limit of ours.
type limitError struct {
	what  string // "the test's time limit"
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s of %s has passed", e.what, e.limit) }

// errNoTestCommands refuses a deployment whose servers were started without
// the parameter that fail points need ("Server Compatibility").
var errNoTestCommands = errors.New("runs without test commands: suites set fail points, and configureFailPoint exists only on " +
	"servers started with the parameter enableTestCommands; start each mongod and mongos with --setParameter enableTestCommands=1 " +
	"(it cannot be set at run time), and use no server that holds data you want to keep")

func noTestCommands(deployment string) error {
	return fmt.Errorf("the deployment (%s) %w", deployment, errNoTestCommands)
}

// callError says that a call into the engine panicked, or did not come back
// even after its context had ended. The run goes on, the test is broken.
type callError struct{ text string }

func (e *callError) Error() string { return e.text }

func panicked(during string, value any) error {
	return &callError{fmt.Sprintf("panic during %s: %v\n%s", during, value, debug.Stack())}
}

// none is the answer of a call that has an error alone.
type none struct{}

// grace is how long a call into the engine may go on after its context ended.
const grace = 5 * time.Second

// guarded makes a call into the engine so that a panic there, or a call that
// never returns, harms no more than the test. The error is that of the call,
// or a *callError.
func guarded[T any](ctx context.Context, during string, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1) // so that a late one does not keep its goroutine
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = panicked(during, p)
			}
			answers <- a
		}()
		a.value, a.err = call(ctx)
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-time.After(grace):
		var nothing T
		return nothing, &callError{fmt.Sprintf("%s did not return within %s after it was told to end", during, grace)}
	}
}

// failure is the fault of an error that came while the test waited for
// something, nil if there was none: that of the context if it is over.
func failure(ctx context.Context, path string, at source.Position, waitingFor string, err error) *fault {
	if err == nil {
		return nil
	}
	if f := ended(ctx, path, at, waitingFor); f != nil {
		return f
	}
	return &fault{broken: err}
}

// ended is the fault of a context that is over, nil if it is not: a time limit
// fails the test, anything else is an interruption.
func ended(ctx context.Context, path string, at source.Position, waitingFor string) *fault {
	if ctx.Err() == nil {
		return nil
	}
	var limit *limitError
	if cause := context.Cause(ctx); errors.As(cause, &limit) {
		return failf(path, at, "%s while waiting for %s", limit, waitingFor)
	}
	return &fault{interrupted: true}
}
