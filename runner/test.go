package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/result"
)

// testRun is a running test. The main thread, the threads of the test and the
// callback of withTransaction use it concurrently.
type testRun struct {
	job
	run      *run
	site     *site
	engine   engine.Test
	entities entities.Map

	mu           sync.Mutex
	observations map[string]*observation   // by client
	uris         map[string]string         // by client; secret
	logs         map[string][]result.Event // by client, as far as read
	operations   []result.OperationLog
	failPoints   []*failPoint
	unfired      []result.Mismatch // fail points that never fired
	transactions bool              // one was started
	fault        *fault
	timings      result.Timings
	blocks       []block
	window       [2]time.Time // of the server log, by the wall clock
}

// runTest runs and cleans up a test. It returns why the deployment can no longer be used, and whether the site may run
// another test.
func (r *run) runTest(ctx context.Context, s *site, j job) (v *result.Verdict, lost error, reusable bool) {
	started := r.cfg.Now()
	if r.cfg.Around != nil {
		var done func(*result.Verdict)
		ctx, done = r.cfg.Around(ctx, j.id)
		defer func() { done(v) }()
	}
	t := &testRun{
		job: j, run: r, site: s, window: [2]time.Time{time.Now()},
		observations: make(map[string]*observation),
		uris:         make(map[string]string),
		logs:         make(map[string][]result.Event),
	}
	running, cancel := limited(ctx, r.cfg.Timeout, timeoutFlag)
	t.add(protect("a test", func() *fault { return t.execute(withoutDeadline(running)) }))
	cancel()
	t.window[1] = time.Now()
	if t.cutOff(ctx) {
		r.mu.Lock()
		r.interrupted(ctx)
		r.mu.Unlock()
	}
	limit := cleanupLimit
	if s.deployment.Dead() != nil { // servers will not respond
		limit = lostCleanUp
	}
	cleaning, done := cleanupContext(ctx, limit, InterruptedCleanUp)
	defer done()
	var cleanup *fault
	t.timed(&t.timings.Cleanup, func() {
		cleanup = protect("a clean-up", func() *fault { return t.cleanUp(cleaning) })
	})
	var died error
	lost, died = s.diagnose(ctx, cleanup != nil, len(t.found().mismatches) > 0)
	v = t.verdict(cleanup, lost, died)
	v.Started, v.Duration = started, r.cfg.Now().Sub(started)
	// An owned deployment is replaced unless the test and its clean-up went well.
	if s.deployment.Owned() {
		return v, lost, lost == nil && cleanup == nil && v.Status != result.Broken
	}
	// The source leaves a mongos out that died.
	return v, lost, lost == nil && !(s.sharded() && died != nil)
}

// cutOff reports whether the run was interrupted during the test. Whatever went wrong then may be a consequence.
func (t *testRun) cutOff(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrong := t.fault != nil && (t.fault.broken != nil || len(t.fault.mismatches) > 0)
	if wrong && ctx.Err() != nil && lostDuring(ctx) == nil {
		t.fault = &fault{interrupted: true}
	}
	return t.fault != nil && t.fault.interrupted
}

// withoutDeadline returns a context that ends with ctx and its cause, but has no deadline: a driver may convert a
// deadline to timeoutMS and send a maxTimeMS that the suite does not expect.
func withoutDeadline(ctx context.Context) context.Context {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return out
}

const cleanupLimit = 15 * time.Second

// InterruptedCleanUp is the time limit of a clean-up after an interruption. A
// responding deployment needs a fraction of it.
const InterruptedCleanUp = 3 * time.Second

// lostCleanUp is the time limit of a clean-up of a deployment that is lost.
const lostCleanUp = time.Second

// InterruptedEnd bounds the end of Run after an interruption, if the engine returns when it is canceled.
const InterruptedEnd = InterruptedCleanUp + closeLimit

// cleanupContext returns the context of a clean-up. It outlives ctx and ends after
// a time limit, which is shorter once the run is interrupted or the deployment lost.
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

// protect converts a panic of the runner or a matcher to a fault of the test.
func protect(during string, do func() *fault) (f *fault) {
	defer func() {
		if p := recover(); p != nil {
			f = &fault{broken: panicked(during, p)}
		}
	}()
	return do()
}

// execute runs a test without its clean-up ("Executing a Test").
func (t *testRun) execute(ctx context.Context) *fault {
	for _, p := range t.test.Errors {
		t.add(failf(p.Path, p.Position, "%s", p.Message))
	}
	if t.hasFault() {
		return nil
	}
	if f := t.setUp(ctx); f != nil {
		return f
	}
	if f := t.operate(ctx); f != nil || t.hasFault() {
		return f
	}
	observed := make(map[string][]result.Event)
	for _, client := range t.entities.Of(entities.Client) {
		events, err := t.observed(ctx, client)
		if err != nil {
			return broken(err)
		}
		observed[client] = events
	}
	var err error
	t.timed(&t.timings.Cleanup, func() {
		t.settle(ctx)
		t.unfired, err = t.failPointsOff(ctx)
	})
	if err != nil {
		return broken(err)
	}
	if t.run.cfg.RequireFailPoints {
		t.add(failed(t.unfired))
	}
	for i, want := range t.test.ExpectEvents {
		path, events := fmt.Sprintf("expectEvents[%d]", i), observed[want.Get("client").Text()]
		t.add(failed(t.matcher(ctx).Events(path, want, events)))
	}
	t.add(t.judgeLogs(ctx))
	t.add(t.judgeSpans(ctx))
	return t.judgeOutcome(ctx)
}

func (t *testRun) setUp(ctx context.Context) *fault {
	began := t.run.cfg.Now()
	defer func() { t.timings.Setup += t.since(began) }()
	err := t.site.seed(ctx, t.suite, t.test, t.run.cfg.Reseed)
	if f := failure(ctx, "initialData", t.test.Position, "initial data", err); f != nil {
		return f
	}
	if f := failure(ctx, "initialData", t.test.Position, "distinct on each mongos", t.distinctFirst(ctx)); f != nil {
		return f
	}
	t.window[0] = time.Now() // initial data is not of interest
	if t.engine, err = guarded(ctx, "the beginning of a test", t.run.cfg.Engine.Begin); err != nil {
		t.engine = nil
		return failure(ctx, "", t.test.Position, "the engine to begin a test",
			fmt.Errorf("the engine cannot begin a test: %w", err))
	}
	return t.create(ctx, "createEntities", t.suite.CreateEntities)
}

// distinctFirst runs distinct on each mongos, so that it refreshes its database
// versions before a transaction ("StaleDbVersion Errors on Sharded Clusters").
func (t *testRun) distinctFirst(ctx context.Context) error {
	if !t.site.sharded() || !needsDistinct(t.test) {
		return nil
	}
	for _, d := range t.suite.InitialData {
		distinct := bson.D{{Key: "distinct", Value: d.CollectionName}, {Key: "key", Value: "_id"}}
		if err := t.site.everywhere(ctx, d.DatabaseName, distinct); err != nil {
			return err
		}
	}
	return nil
}

// operate performs the operations and waits for all threads.
func (t *testRun) operate(ctx context.Context) *fault {
	began, waited := t.run.cfg.Now(), t.timings.Waiting
	defer func() {
		t.mu.Lock()
		t.timings.Engine += t.since(began) - (t.timings.Waiting - waited)
		t.mu.Unlock()
	}()
	for i, op := range t.test.Operations {
		if _, f := t.perform(ctx, ctx, fmt.Sprintf("operations[%d]", i), op); f != nil {
			return f
		}
		if t.hasFault() || i+1 < len(t.test.Operations) && t.stopAtFault() {
			return nil // of a thread or a callback, or about a value
		}
	}
	for _, id := range t.entities.Of(entities.Thread) {
		if f := t.join(ctx, "operations", t.test.Position, id, "the wait for a thread"); f != nil {
			return f
		}
	}
	if t.hasFault() {
		return nil
	}
	return ended(ctx, "operations", t.test.Position, "the last operation")
}

// join stops a thread and waits for its operations, which record their own faults.
func (t *testRun) join(ctx context.Context, path string, at source.Position, id, limit string) *fault {
	thread, err := entities.Value[*entities.Queue](&t.entities, id, entities.Thread)
	if err != nil {
		return broken(err)
	}
	thread.Stop()
	ctx, cancel := limited(ctx, patience, limit)
	defer cancel()
	t.whileWaiting(func() { _ = thread.Wait(ctx) })
	return ended(ctx, path, at, "the operations of "+id)
}

func (t *testRun) judgeLogs(ctx context.Context) *fault {
	for i, want := range t.test.ExpectLogMessages {
		path, client := fmt.Sprintf("expectLogMessages[%d]", i), want.Get("client").Text()
		messages, err := guarded(ctx, "reading the log messages of "+client,
			func(ctx context.Context) ([]result.LogMessage, error) {
				return t.engine.Logs(ctx, client)
			})
		if err != nil {
			return breakf("%s: %w", path, err)
		}
		t.add(failed(t.matcher(ctx).LogMessages(path, want, messages)))
	}
	return nil
}

func (t *testRun) judgeSpans(ctx context.Context) *fault {
	for i, want := range t.test.ExpectTracing {
		path, client := fmt.Sprintf("expectTracingMessages[%d]", i), want.Get("client").Text()
		spans, err := guarded(ctx, "reading the spans of "+client, func(ctx context.Context) ([]result.Span, error) {
			return t.engine.Spans(ctx, client)
		})
		if err != nil {
			return breakf("%s: %w", path, err)
		}
		t.add(failed(t.matcher(ctx).Spans(path, want, spans)))
	}
	return nil
}

func (t *testRun) judgeOutcome(ctx context.Context) *fault {
	for i, d := range t.test.Outcome {
		path := fmt.Sprintf("outcome[%d]", i)
		documents, err := retried(ctx, func() ([]bson.Raw, error) {
			return t.site.documents(ctx, d.DatabaseName, d.CollectionName)
		})
		namespace := d.DatabaseName + "." + d.CollectionName
		if err != nil {
			return failure(ctx, path, d.Position, "the contents of "+namespace,
				fmt.Errorf("%s: reading %s: %w", path, namespace, err))
		}
		t.add(failed(t.matcher(ctx).Collection(path+".documents", d.Position, d.Documents, documents)))
	}
	return nil
}

// endless begins the error of an engine that could not end a test.
const endless = "the engine could not end the test: "

// cleanUp restores the state of deployment and engine after every test. It
// continues after errors, which it returns as a fault.
func (t *testRun) cleanUp(ctx context.Context) *fault {
	effect := operations.Anything // also after a panic
	defer func() { t.site.record(effect) }()
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
		if err := t.site.killAllSessions(ctx); err != nil {
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

// add records a fault. It keeps all mismatches; without any, a broken fault replaces another one.
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

// found returns a copy of the fault so far, zero without one.
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

func (t *testRun) since(began time.Time) result.Duration {
	return result.Duration(t.run.cfg.Now().Sub(began))
}

// timed adds the duration of a call to a timing.
func (t *testRun) timed(sum *result.Duration, do func()) {
	began := t.run.cfg.Now()
	do()
	t.mu.Lock()
	*sum += t.since(began)
	t.mu.Unlock()
}

func (t *testRun) whileWaiting(wait func()) { t.timed(&t.timings.Waiting, wait) }
