package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A recording holds all that tests heard from an engine and a deployment. A
// suite whose expectations were changed asks the same questions, so that it can
// be judged without either.
type recording struct {
	engine engine.Description
	sites  map[string]deployment.Description // by name

	tapes map[result.TestID]*tape
	// positions are those of the tests that can be judged.
	positions map[result.TestID]source.Position
}

// tape holds answers by question, in the order in which they came.
type tape struct {
	mu      sync.Mutex
	answers map[string][]any
	events  map[string][]result.Event // by client: all that were read

	asking map[string]int // operations under way
	racing bool           // threads asked the same at once: chance says which answer is whose
}

func newTape() *tape {
	return &tape{answers: map[string][]any{}, events: map[string][]result.Event{}, asking: map[string]int{}}
}

// ask notes that an operation begins (1) or ends (-1).
func (t *tape) ask(question string, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking[question] += by
	t.racing = t.racing || t.asking[question] > 1
}

func (t *tape) record(question string, answer any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers[question] = append(t.answers[question], answer)
}

// heardOf gives the answers to a question in turn, and the last one again and
// again.
func heardOf[T any](t *tape, question string) (out T, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.answers[question]
	if len(all) == 0 {
		return out, false
	}
	if len(all) > 1 {
		t.answers[question] = all[1:]
	}
	return all[0].(T), true
}

// rewound is a copy that plays from the beginning.
func (t *tape) rewound() *tape {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := newTape()
	for q, a := range t.answers {
		c.answers[q] = a
	}
	c.events = t.events
	return c
}

// record runs suites on embedded deployments, each test once, and keeps those
// that passed and can be played again.
func record(t *testing.T, policy string, suites []*specs.Suite) *recording {
	t.Helper()
	lender, err := deployment.OpenEmbedded(t.Context(), deployment.EmbeddedOptions{Topologies: []deployment.Topology{
		deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced, deployment.Single}})
	if err != nil {
		t.Fatal(err)
	}
	// Some delays must be too long for the time that is left.
	e, err := reference.New(reference.Options{Policy: policy, Backoff: reference.BackoffNone, Random: func() float64 { return 0.9 }})
	if err != nil {
		t.Fatal(err)
	}
	rec := &recording{sites: map[string]deployment.Description{}, tapes: map[result.TestID]*tape{}, positions: map[result.TestID]source.Position{}}
	var now *tape // of the one test that runs
	config := Config{Engine: recorder{e, &now}, Source: lender, Reseed: ReseedAlways, Notify: func(n result.Note) {
		switch n := n.(type) {
		case result.TestStarted:
			now = newTape()
			rec.tapes[n.Test] = now
		case result.TestFinished:
			switch v := n.Verdict; v.Status {
			case result.Passed:
				if !rec.tapes[v.Test].racing {
					rec.positions[v.Test] = v.Position
				}
			case result.Skipped:
			default:
				t.Errorf("%s: %s %s", v.Test.Description, v.Status, v.Reason)
			}
		}
	}}
	r, err := prepare(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	rec.engine = r.about
	dial := r.dial
	r.dial = func(d deployment.Deployment) (commands, error) {
		rec.sites[d.Description().Name] = d.Description()
		c, err := dial(d)
		return &recordedCommands{c, &now}, err
	}
	_, err = r.all(t.Context(), suites)
	for _, err := range []error{err, e.Close(), lender.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	return rec
}

// recorder is an engine whose tests are recorded.
type recorder struct {
	engine.Engine
	now **tape
}

func (e recorder) Begin(ctx context.Context) (engine.Test, error) {
	test, err := e.Engine.Begin(ctx)
	return &recordedTest{test, *e.now}, err
}

type recordedTest struct {
	engine.Test
	tape *tape
}

// heard is what came of an operation, with the errors that its callback
// returned, call by call.
type heard struct {
	outcome   result.Outcome
	callbacks []*result.Error
}

func (r *recordedTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	var calls []*result.Error
	if callback := op.Callback; callback != nil {
		op.Callback = func(ctx context.Context) *result.Error {
			err := callback(ctx)
			calls = append(calls, err)
			return err
		}
	}
	q := question("do", op.Object, op.Name, op.Arguments)
	r.tape.ask(q, 1)
	out := r.Test.Do(ctx, op)
	r.tape.ask(q, -1)
	r.tape.record(q, heard{out, calls})
	return out
}

func (r *recordedTest) Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error) {
	events, err := r.Test.Events(ctx, client, after, wait)
	r.tape.record(question("events", client, after), events)
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	for _, e := range events {
		if all := r.tape.events[client]; len(all) == 0 || all[len(all)-1].Sequence < e.Sequence {
			r.tape.events[client] = append(all, e)
		}
	}
	return events, err
}

func (r *recordedTest) Logs(ctx context.Context, client string) ([]result.LogMessage, error) {
	logs, err := r.Test.(engine.LogReader).Logs(ctx, client)
	r.tape.record(question("logs", client), logs)
	return logs, err
}

func question(parts ...any) string { return fmt.Sprint(parts...) }

// recordedCommands are the runner's own commands on a deployment, which are
// recorded for the test that runs.
type recordedCommands struct {
	commands
	now **tape
}

type reply struct {
	raw     bson.Raw
	service *bson.ObjectID
	err     error
}

func (c *recordedCommands) keep(question string, answer any) {
	if *c.now != nil {
		(*c.now).record(question, answer)
	}
}

func (c *recordedCommands) at(ctx context.Context, address, database string, command any) (bson.Raw, error) {
	raw, err := c.commands.at(ctx, address, database, command)
	c.keep(question("command", database, command), reply{raw, nil, err})
	return raw, err
}

func (c *recordedCommands) once(ctx context.Context, uri, database string, command any) (*bson.ObjectID, error) {
	service, err := c.commands.once(ctx, uri, database, command)
	c.keep(question("command", database, command), reply{nil, service, err})
	return service, err
}

func (c *recordedCommands) list(ctx context.Context, address, database string, command any) ([]bson.Raw, error) {
	documents, err := c.commands.list(ctx, address, database, command)
	c.keep(question("list", database, command), listed{documents, err})
	return documents, err
}

type listed struct {
	documents []bson.Raw
	err       error
}

// judge runs one test of a suite, whose expectations may have been changed, on
// what was recorded of the test with this name.
func (r *recording) judge(t *testing.T, suite *specs.Suite, id result.TestID) *result.Verdict {
	t.Helper()
	p := &player{t: t, rec: r, tape: r.tapes[id].rewound()}
	var verdict *result.Verdict
	run, err := prepare(t.Context(), Config{Engine: playedEngine{p}, Reseed: ReseedAlways, Source: &still{r.sites[id.Deployment]}, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdict = f.Verdict
		}
	}})
	if err != nil {
		t.Error(err)
		return &result.Verdict{}
	}
	run.dial = func(deployment.Deployment) (commands, error) { return p, nil }
	if _, err = run.all(t.Context(), []*specs.Suite{suite}); err != nil {
		t.Error(err)
	}
	return verdict
}

// still is a source of one deployment, where nothing runs.
type still struct{ about deployment.Description }

func (s *still) Offers() []deployment.Description                            { return []deployment.Description{s.about} }
func (s *still) Acquire(context.Context, int) (deployment.Deployment, error) { return s, nil }
func (s *still) Release(deployment.Deployment, bool)                         {}
func (s *still) Close() error                                                { return nil }
func (s *still) Description() deployment.Description                         { return s.about }
func (s *still) URI() string                                                 { return "mongodb://all" }
func (s *still) SingleURI() string                                           { return "mongodb://single" }
func (s *still) DirectURI(address string) string                             { return "mongodb://" + address }
func (s *still) Owned() bool                                                 { return true }
func (s *still) Dead() error                                                 { return nil }
func (s *still) Log(time.Time, time.Time) []deployment.LogLine               { return nil }

// player answers as an engine, its test and the runner's own commands once did.
type player struct {
	t    *testing.T
	rec  *recording
	tape *tape
}

// playedEngine begins tests that are played.
type playedEngine struct{ p *player }

func (e playedEngine) Describe(context.Context) (engine.Description, error) {
	return e.p.rec.engine, nil
}
func (e playedEngine) Begin(context.Context) (engine.Test, error) { return e.p, nil }
func (e playedEngine) Close() error                               { return nil }

func (p *player) Open(context.Context, engine.Entity) error { return nil }
func (p *player) Close(context.Context, string) error       { return nil }
func (p *player) End(context.Context) error                 { return nil }

func (p *player) Do(ctx context.Context, op engine.Operation) result.Outcome {
	h, found := heardOf[heard](p.tape, question("do", op.Object, op.Name, op.Arguments))
	if !found {
		p.t.Errorf("%s on %s is not recorded", op.Name, op.Object)
		return result.Outcome{Err: &result.Error{Message: "not recorded"}}
	}
	for _, before := range h.callbacks {
		if err := op.Callback(ctx); err != nil && before == nil {
			return result.Outcome{Err: err}
		}
	}
	return h.outcome
}

func (p *player) Events(_ context.Context, client string, after int64, _ time.Duration) ([]result.Event, error) {
	if events, found := heardOf[[]result.Event](p.tape, question("events", client, after)); found {
		return events, nil
	}
	all := p.tape.events[client]
	return all[slices.IndexFunc(append(all[:len(all):len(all)], result.Event{Sequence: after + 1}), func(e result.Event) bool { return e.Sequence > after }):], nil
}

func (p *player) Logs(_ context.Context, client string) ([]result.LogMessage, error) {
	logs, _ := heardOf[[]result.LogMessage](p.tape, question("logs", client))
	return logs, nil
}

func (p *player) command(database string, command any) (bson.Raw, *bson.ObjectID, error) {
	r, found := heardOf[reply](p.tape, question("command", database, command))
	if !found {
		r.raw = mustRaw(bson.D{{Key: "ok", Value: 1}})
	}
	return r.raw, r.service, r.err
}

func (p *player) at(_ context.Context, _, database string, command any) (bson.Raw, error) {
	raw, _, err := p.command(database, command)
	return raw, err
}

func (p *player) once(_ context.Context, _, database string, command any) (*bson.ObjectID, error) {
	_, service, err := p.command(database, command)
	return service, err
}

func (p *player) list(_ context.Context, _, database string, command any) ([]bson.Raw, error) {
	l, _ := heardOf[listed](p.tape, question("list", database, command))
	return l.documents, l.err
}

func (p *player) close() {}
