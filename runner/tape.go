package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// tape holds answers by question, in the order in which they came.
type tape struct {
	played bool // nobody is asked any more

	mu      sync.Mutex
	answers map[string][]any
	events  map[string][]result.Event // by client: all that were read
	asking  map[string]int            // operations under way
	racing  bool                      // threads asked the same at once: chance says which answer is whose
	missed  error                     // the first question that was not asked when it was recorded
}

func newTape() *tape {
	return &tape{answers: map[string][]any{}, events: map[string][]result.Event{}, asking: map[string]int{}}
}

// rewound is a copy that plays from the beginning.
func (t *tape) rewound() *tape {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tape{played: true, answers: maps.Clone(t.answers), events: t.events}
}

func question(parts ...any) string { return fmt.Sprint(parts...) }

// heard records an answer. A tape that is played gives the answers to a question in turn,
// and the last one again and again; found says whether there is one. What is asked before
// the first test is on no tape.
func heard[T any](t *tape, question string, ask func() T) (answer T, found bool) {
	if t == nil || !t.played {
		answer = ask()
	}
	if t == nil {
		return answer, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.answers[question]
	switch {
	case !t.played:
		t.answers[question] = append(all, answer)
		return answer, true
	case len(all) == 0:
		return answer, false
	case len(all) > 1:
		t.answers[question] = all[1:]
	}
	return all[0].(T), true
}

// ask notes that an operation begins (1) or ends (-1).
func (t *tape) ask(question string, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking[question] += by
	t.racing = t.racing || t.asking[question] > 1
}

// taped is an engine whose answers are on the tape of the test that runs.
type taped struct {
	engine.Engine
	now **tape
}

func (e taped) Begin(ctx context.Context) (engine.Test, error) {
	test, err := e.Engine.Begin(ctx)
	return &tapedTest{test, *e.now}, err
}

type tapedTest struct {
	engine.Test
	tape *tape
}

// came is what came of an operation, with the errors that its callback
// returned, call by call.
type came struct {
	outcome   result.Outcome
	callbacks []*result.Error
}

func (r *tapedTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	q := question("do", op.Object, op.Name, op.Arguments)
	callback := op.Callback
	c, found := heard(r.tape, q, func() (c came) {
		if callback != nil {
			op.Callback = func(ctx context.Context) *result.Error {
				err := callback(ctx)
				c.callbacks = append(c.callbacks, err)
				return err
			}
		}
		r.tape.ask(q, 1)
		defer r.tape.ask(q, -1)
		c.outcome = r.Test.Do(ctx, op)
		return c
	})
	switch {
	case !found:
		r.tape.mu.Lock()
		defer r.tape.mu.Unlock()
		r.tape.missed = cmp.Or(r.tape.missed, fmt.Errorf("%s on %s is not recorded", op.Name, op.Object))
		return result.Outcome{Err: &result.Error{Message: "not recorded"}}
	case r.tape.played:
		for _, before := range c.callbacks {
			if err := callback(ctx); err != nil && before == nil {
				return result.Outcome{Err: err}
			}
		}
	}
	return c.outcome
}

func (r *tapedTest) Events(ctx context.Context, client string, after int64, wait time.Duration) ([]result.Event, error) {
	var err error
	events, found := heard(r.tape, question("events", client, after), func() (events []result.Event) {
		events, err = r.Test.Events(ctx, client, after, wait)
		return events
	})
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	all := r.tape.events[client]
	if !found {
		later := func(e result.Event) bool { return e.Sequence > after }
		return all[slices.IndexFunc(append(all[:len(all):len(all)], result.Event{Sequence: after + 1}), later):], nil
	}
	if !r.tape.played {
		for _, e := range events {
			if lastSequence(all) < e.Sequence {
				all = append(all, e)
			}
		}
		r.tape.events[client] = all
	}
	return events, err
}

func (r *tapedTest) Logs(ctx context.Context, client string) (logs []result.LogMessage, err error) {
	logs, _ = heard(r.tape, question("logs", client), func() (logs []result.LogMessage) {
		logs, err = r.Test.(engine.LogReader).Logs(ctx, client)
		return logs
	})
	return logs, err
}

// tapedCommands are the runner's own commands on a deployment, whose answers are on the
// tape of the test that runs.
type tapedCommands struct {
	commands
	now **tape
}

type reply struct {
	raw     bson.Raw
	service *bson.ObjectID
	err     error
}

// once and at give the same answers where they ask the same.
func (c *tapedCommands) command(database string, command any, ask func() reply) reply {
	r, found := heard(*c.now, question("command", database, command), ask)
	if !found {
		r.raw, r.err = bson.Marshal(bson.D{{Key: "ok", Value: 1}})
	}
	return r
}

func (c *tapedCommands) at(ctx context.Context, address, database string, command any) (bson.Raw, error) {
	r := c.command(database, command, func() (r reply) {
		r.raw, r.err = c.commands.at(ctx, address, database, command)
		return r
	})
	return r.raw, r.err
}

func (c *tapedCommands) once(ctx context.Context, uri, database string, command any) (*bson.ObjectID, error) {
	r := c.command(database, command, func() (r reply) {
		r.service, r.err = c.commands.once(ctx, uri, database, command)
		return r
	})
	return r.service, r.err
}

type listed struct {
	documents []bson.Raw
	err       error
}

func (c *tapedCommands) list(ctx context.Context, address, database string, command any) ([]bson.Raw, error) {
	l, _ := heard(*c.now, question("list", database, command), func() (l listed) {
		l.documents, l.err = c.commands.list(ctx, address, database, command)
		return l
	})
	return l.documents, l.err
}

// Where tapes are played, an engine and commands only open and close.
type (
	silentEngine   struct{ about engine.Description }
	silentTest     struct{ engine.Test }
	silentCommands struct{ commands }
)

func (e silentEngine) Describe(context.Context) (engine.Description, error) { return e.about, nil }
func (e silentEngine) Begin(context.Context) (engine.Test, error)           { return silentTest{}, nil }
func (e silentEngine) Close() error                                         { return nil }

func (silentTest) Open(context.Context, engine.Entity) error { return nil }
func (silentTest) Close(context.Context, string) error       { return nil }
func (silentTest) End(context.Context) error                 { return nil }

func (silentCommands) close() {}

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
