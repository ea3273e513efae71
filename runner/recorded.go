package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A Recording holds all that tests heard from an engine and a deployment. A
// suite whose expectations were changed asks the same questions, so that it can
// be judged without either. Its methods may be called concurrently.
type Recording struct {
	// Passed are the tests that passed, by where each stands. Those of Racing passed as
	// well, but cannot be judged: threads asked the same at once.
	Passed map[result.TestID]source.Position
	Racing map[result.TestID]source.Position

	engine engine.Description
	sites  map[string]deployment.Description // by name
	tapes  map[result.TestID]*tape
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

// Record runs suites as Run does, but one test at a time and each with its initial data
// written again, and keeps what they heard.
func Record(ctx context.Context, suites []*specs.Suite, cfg Config) (*Recording, result.Summary, error) {
	rec := &Recording{map[result.TestID]source.Position{}, map[result.TestID]source.Position{},
		engine.Description{}, map[string]deployment.Description{}, map[result.TestID]*tape{}}
	var now *tape // of the one test that runs
	cfg.Engine, cfg.Jobs, cfg.Reseed = recorder{cfg.Engine, &now}, 1, ReseedAlways
	notify := cfg.Notify
	cfg.Notify = func(n result.Note) {
		switch n := n.(type) {
		case result.TestStarted:
			now = newTape()
			rec.tapes[n.Test] = now
		case result.TestFinished:
			switch v := n.Verdict; {
			case v.Status != result.Passed:
			case rec.tapes[v.Test].racing:
				rec.Racing[v.Test] = v.Position
			default:
				rec.Passed[v.Test] = v.Position
			}
		}
		if notify != nil {
			notify(n)
		}
	}
	r, err := prepare(ctx, cfg)
	if err != nil {
		return nil, result.Summary{}, err
	}
	rec.engine = r.about
	dial := r.dial
	r.dial = func(d deployment.Deployment) (commands, error) {
		rec.sites[d.Description().Name] = d.Description()
		c, err := dial(d)
		return &recordedCommands{c, &now}, err
	}
	summary, err := r.all(ctx, suites)
	return rec, summary, err
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
