package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
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

// runTest runs and cleans up a test. It returns whether the site may run another test, and why the deployment can no
// longer be used.
func (r *run) runTest(ctx context.Context, s *site, j job) (v *result.Verdict, reusable bool, lost error) {
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
	if s.about.Shared {
		s.deployment.Sessions() // of earlier tests
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
	cleaning, done := cleanupContext(ctx, limit, interruptedCleanUp)
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
		return v, lost == nil && cleanup == nil && v.Status != result.Broken, lost
	}
	// The source leaves out a mongos that has ended.
	return v, lost == nil && !(s.sharded() && died != nil), lost
}

// cutOff reports whether the run was interrupted during the test. Any failure may be a consequence.
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
	return t.judge(ctx, observed)
}

func (t *testRun) setUp(ctx context.Context) *fault {
	began := t.run.cfg.Now()
	defer func() { t.timings.Setup += t.since(began) }()
	err := t.run.seed(ctx, t.site, t.job)
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

// join stops a thread and waits for its operations. They record their own faults.
func (t *testRun) join(ctx context.Context, path string, at source.Position, id, limit string) *fault {
	thread, err := entities.Value[*entities.Queue](&t.entities, id, entities.Thread)
	if err != nil {
		return broken(err)
	}
	thread.Stop()
	ctx, cancel := limited(ctx, waitLimit, limit)
	defer cancel()
	t.whileWaiting(func() { _ = thread.Wait(ctx) })
	return ended(ctx, path, at, "the operations of "+id)
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
