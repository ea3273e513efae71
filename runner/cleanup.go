package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
)

const cleanupLimit = 15 * time.Second

// interruptedCleanUp is the time limit of a clean-up after an interruption. A
// responding deployment needs a fraction of it.
const interruptedCleanUp = 3 * time.Second

// lostCleanUp is the time limit of a clean-up of a deployment that is lost.
const lostCleanUp = time.Second

// InterruptedEnd bounds the end of Run after an interruption, if the engine returns when it is canceled.
const InterruptedEnd = interruptedCleanUp + closeLimit

// cleanupContext returns the context of a clean-up. It outlives ctx and ends after a time limit. The limit is shorter
// once the run is interrupted or the deployment lost.
func cleanupContext(ctx context.Context, limit, interrupted time.Duration) (context.Context, context.CancelFunc) {
	cleaning, end := context.WithCancelCause(context.WithoutCancel(ctx))
	endAfter := func(d time.Duration, what string) *time.Timer {
		return time.AfterFunc(d, func() { end(&limitError{what, d}) })
	}
	timer := endAfter(limit, "the limit of the clean-up")
	stop := context.AfterFunc(ctx, func() {
		if lostDuring(ctx) != nil {
			interrupted = lostCleanUp
		}
		endAfter(interrupted, "the limit of the clean-up after an interruption")
	})
	return cleaning, func() { stop(); timer.Stop(); end(context.Canceled) }
}

// endless begins the error of an engine that could not end a test.
const endless = "the engine could not end the test: "

// cleanUp restores the state of deployment and engine after every test. It continues after errors, and returns them as
// a fault.
func (t *testRun) cleanUp(ctx context.Context) *fault {
	effect := operations.Anything // also after a panic
	defer func() {
		if effect == operations.Anything { // before another test could change what tests beside this one read
			t.run.fill(t.job, t.uses.names, false)
		}
		t.site.record(effect, t.uses)
	}()
	_, err := t.failPointsOff(ctx)
	failures := []error{err}
	for _, id := range t.entities.Of(entities.Thread) {
		thread, _ := entities.Value[*entities.Queue](&t.entities, id, entities.Thread)
		thread.Stop()
	}
	if t.engine != nil {
		for _, client := range t.entities.Of(entities.Client) {
			_, _ = t.log(ctx, client) // for the report
		}
		_, err := guarded(ctx, "the end of a test",
			func(ctx context.Context) (struct{}, error) { return struct{}{}, t.engine.End(ctx) })
		if err != nil {
			failures = append(failures, fmt.Errorf("%s%w", endless, err))
		}
	}
	for _, id := range t.entities.Of(entities.Thread) {
		thread, _ := entities.Value[*entities.Queue](&t.entities, id, entities.Thread)
		if err := thread.Wait(ctx); err != nil {
			failures = append(failures, fmt.Errorf("%s is still busy: %w", id, err))
		}
	}
	t.mu.Lock()
	clean, transactions := t.fault == nil, t.transactions
	t.mu.Unlock()
	if !clean || transactions {
		if err := t.site.endSessions(ctx); err != nil {
			failures = append(failures, fmt.Errorf("open transactions could not be terminated: %w", err))
		}
	}
	if !clean {
		t.settle(ctx) // so that late writes do not affect the next test
	}
	err = errors.Join(failures...)
	switch {
	case err != nil && ctx.Err() != nil:
		return breakf("%w: %w", context.Cause(ctx), err)
	case err == nil && clean:
		effect = effectOf(t.test)
	}
	return broken(err)
}
