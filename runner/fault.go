package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// fault is why a test did not pass. Exactly one of its first fields is set.
type fault struct {
	mismatches  []result.Mismatch // the test failed
	unsupported string            // a capability that the engine lacks: a skip
	broken      error             // set-up, deployment or engine failed
	interrupted bool

	// value means that an operation succeeded or failed as expected, with a different value. The test stops only if
	// operations remain. Otherwise, events and outcome are compared, too.
	value bool
}

func failf(path string, at source.Position, format string, args ...any) *fault {
	return &fault{mismatches: []result.Mismatch{
		{Path: path, Position: at, Message: fmt.Sprintf(format, args...)}}}
}

func breakf(format string, args ...any) *fault { return &fault{broken: fmt.Errorf(format, args...)} }

// broken converts an error to a fault, and nil to nil.
func broken(err error) *fault {
	if err == nil {
		return nil
	}
	return &fault{broken: err}
}

// unsupported returns the fault of an error that reports a missing capability.
func unsupported(err *result.Error) *fault {
	if err == nil || err.Unsupported == "" {
		return nil
	}
	return &fault{unsupported: err.Unsupported}
}

// failed converts mismatches to a fault. Without any, it returns nil.
func failed(mismatches []result.Mismatch) *fault {
	if len(mismatches) == 0 {
		return nil
	}
	return &fault{mismatches: mismatches}
}

// limitError is the cause of a context that ended at a time limit.
type limitError struct {
	what  string // timeoutFlag, or "the limit for an answer"
	limit time.Duration
}

// timeoutFlag names Config.Timeout as people set it.
const timeoutFlag = "--timeout"

func (e *limitError) Error() string {
	if e.what == timeoutFlag {
		return fmt.Sprintf("exceeded %s %s", e.what, e.limit)
	}
	return fmt.Sprintf("%s of %s has passed", e.what, e.limit)
}

// limited returns a context with a time limit. Messages name the limit.
func limited(ctx context.Context, d time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &limitError{what, d})
}

// errNoTestCommands rejects a deployment without enableTestCommands. Fail points require it ("Server Compatibility").
var errNoTestCommands = errors.New("runs without test commands: suites set fail points, and configureFailPoint exists only on " +
	"servers started with the parameter enableTestCommands; start each mongod and mongos with --setParameter enableTestCommands=1 " +
	"(it cannot be set at run time), and do not use a server with data that you want to keep; or let utr execute fail points (--fail-points proxy)")

func noTestCommands(deployment string) error {
	return fmt.Errorf("the deployment (%s) %w", deployment, errNoTestCommands)
}

// callError reports that a call of the engine panicked or did not return after its context ended. The test is broken.
type callError struct{ text string }

func (e *callError) Error() string { return e.text }

func panicked(during string, value any) error {
	return &callError{fmt.Sprintf("panic during %s: %v\n%s", during, value, debug.Stack())}
}

// grace is how long a call of the engine may continue after its context ended.
const grace = 5 * time.Second

// guarded calls the engine. A panic and a call that does not return become a *callError.
func guarded[T any](ctx context.Context, during string, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1) // buffered: nobody may receive a late answer
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
	done, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case a := <-answers:
			return a.value, a.err
		case <-done:
			done, late = nil, time.After(grace)
		case <-late:
			return *new(T), &callError{noReturn(ctx, during)}
		}
	}
}

// noReturn returns the message about a call that did not end although it was canceled.
func noReturn(ctx context.Context, during string) string {
	if limit := (*limitError)(nil); errors.As(context.Cause(ctx), &limit) {
		return fmt.Sprintf("%s: %s did not return", limit, during)
	}
	return fmt.Sprintf("%s did not return within %s after it was canceled", during, grace)
}

// failure returns the fault of an error during a wait, or nil without one. If the context has ended, it returns the
// fault of the context.
func failure(ctx context.Context, path string, at source.Position, waitingFor string, err error) *fault {
	if f := ended(ctx, path, at, waitingFor); err != nil && f != nil {
		return f
	}
	return broken(err)
}

// ended returns the fault of a context that has ended, or nil: a time limit fails
// the test, any other cause is an interruption.
func ended(ctx context.Context, path string, at source.Position, waitingFor string) *fault {
	if ctx.Err() == nil {
		return nil
	}
	if err := lostDuring(ctx); err != nil {
		return broken(err)
	}
	var limit *limitError
	if cause := context.Cause(ctx); errors.As(cause, &limit) {
		return failf(path, at, "%s while waiting for %s", limit, waitingFor)
	}
	return &fault{interrupted: true}
}

// add records a fault. It keeps all mismatches. Without mismatches, a broken fault replaces another one.
func (t *testRun) add(f *fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case f == nil:
	case t.fault == nil:
		t.fault = f
	case len(t.fault.mismatches) > 0 && len(f.mismatches) > 0:
		t.fault.mismatches = append(t.fault.mismatches, f.mismatches...)
		t.fault.value = t.fault.value && f.value
	case f.broken != nil && len(t.fault.mismatches) == 0:
		t.fault = f
	default:
		t.fault.value = false
	}
}

// found returns a copy of the fault so far, or the zero fault.
func (t *testRun) found() fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return *t.fault
	}
	return fault{}
}

// hasFault reports whether a fault stops the test.
func (t *testRun) hasFault() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault != nil && !t.fault.value
}

// stopAtFault stops the test if it has any fault, including one about a value:
// after a skipped operation, events and outcome cannot be as expected.
func (t *testRun) stopAtFault() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		t.fault.value = false
	}
	return t.fault != nil
}
