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

// tape records responses by request, in order.
type tape struct {
	playback bool

	mu        sync.Mutex
	responses map[string][]any
	events    map[string][]result.Event // by client: all that were read
	active    map[string]int            // operations in progress, by request
	racing    bool                      // threads sent equal requests concurrently
	missed    error                     // the first request that was not recorded
}

func newTape() *tape {
	return &tape{responses: map[string][]any{}, events: map[string][]result.Event{}, active: map[string]int{}}
}

// rewound returns a copy for playback.
func (t *tape) rewound() *tape {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tape{playback: true, responses: maps.Clone(t.responses), events: t.events}
}

// recorded sends a request and records the response. In playback, it returns the
// recorded responses in order, then the last one repeatedly; found reports whether
// there is one. Requests before the first test, with a nil tape, are not recorded.
func recorded[T any](t *tape, key string, send func() T) (response T, found bool) {
	if t == nil || !t.playback {
		response = send()
	}
	if t == nil {
		return response, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.responses[key]
	switch {
	case !t.playback:
		t.responses[key] = append(all, response)
		return response, true
	case len(all) == 0:
		return response, false
	case len(all) > 1:
		t.responses[key] = all[1:]
	}
	return all[0].(T), true
}

// count records that an operation starts (1) or ends (-1).
func (t *tape) count(key string, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[key] += by
	t.racing = t.racing || t.active[key] > 1
}

// tapedEngine records an engine on the tape of the current test, or plays it back.
type tapedEngine struct {
	engine.Engine
	current **tape
}

func (e tapedEngine) Begin(ctx context.Context) (engine.Test, error) {
	test, err := e.Engine.Begin(ctx)
	return &tapedTest{test, *e.current}, err
}

type tapedTest struct {
	engine.Test
	tape *tape
}

// recordedOutcome is an outcome with the errors that each call of the callback returned.
type recordedOutcome struct {
	outcome   result.Outcome
	callbacks []*result.Error
}

func (r *tapedTest) Do(ctx context.Context, op engine.Operation) result.Outcome {
	key := fmt.Sprint("do", op.Object, op.Name, op.Arguments)
	callback := op.Callback
	recording, found := recorded(r.tape, key, func() (out recordedOutcome) {
		if callback != nil {
			op.Callback = func(ctx context.Context) *result.Error {
				err := callback(ctx)
				out.callbacks = append(out.callbacks, err)
				return err
			}
		}
		r.tape.count(key, 1)
		defer r.tape.count(key, -1)
		out.outcome = r.Test.Do(ctx, op)
		return out
	})
	switch {
	case !found:
		r.tape.mu.Lock()
		defer r.tape.mu.Unlock()
		r.tape.missed = cmp.Or(r.tape.missed, fmt.Errorf("%s on %s is not recorded", op.Name, op.Object))
		return result.Outcome{Err: &result.Error{Message: "not recorded"}}
	case r.tape.playback:
		for _, before := range recording.callbacks {
			if err := callback(ctx); err != nil && before == nil {
				return result.Outcome{Err: err}
			}
		}
	}
	return recording.outcome
}

func (r *tapedTest) Events(ctx context.Context, client string, after int64,
	wait time.Duration) ([]result.Event, error) {
	var err error
	events, found := recorded(r.tape, fmt.Sprint("events", client, after), func() (events []result.Event) {
		events, err = r.Test.Events(ctx, client, after, wait)
		return events
	})
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	all := r.tape.events[client]
	if !found {
		return slices.DeleteFunc(slices.Clone(all), func(e result.Event) bool { return e.Sequence <= after }), nil
	}
	if !r.tape.playback {
		for _, e := range events {
			if lastSequence(all) < e.Sequence {
				all = append(all, e)
			}
		}
		r.tape.events[client] = all
	}
	return events, err
}

func (r *tapedTest) Logs(ctx context.Context, client string) ([]result.LogMessage, error) {
	return reported(ctx, r, "logs", client, engine.Test.Logs)
}

func (r *tapedTest) Spans(ctx context.Context, client string) ([]result.Span, error) {
	return reported(ctx, r, "spans", client, engine.Test.Spans)
}

// reported reads what an engine reports of a client, and records it.
func reported[T any](ctx context.Context, r *tapedTest, what, client string,
	read func(engine.Test, context.Context, string) (T, error)) (all T, err error) {
	all, _ = recorded(r.tape, fmt.Sprint(what, client), func() (all T) {
		all, err = read(r.Test, ctx, client)
		return all
	})
	return all, err
}

// tapedCommands records the runner's own commands on the tape of the current test, or plays them back. It does not
// record the commands of at: in a test that passed, they succeeded, and the runner does not need their replies.
type tapedCommands struct {
	commands
	current **tape
}

type reply struct {
	documents []bson.Raw
	service   *bson.ObjectID
	err       error
}

func (c *tapedCommands) once(ctx context.Context, uri, database string, command any) (serviceReply, error) {
	r, _ := recorded(*c.current, fmt.Sprint("once", database, command), func() (r reply) {
		var a serviceReply
		a, r.err = c.commands.once(ctx, uri, database, command)
		r.service = a.service
		return r
	})
	return serviceReply{service: r.service}, r.err
}

func (c *tapedCommands) list(ctx context.Context, address, database string, command any) ([]bson.Raw, error) {
	r, _ := recorded(*c.current, fmt.Sprint("list", database, command), func() (r reply) {
		r.documents, r.err = c.commands.list(ctx, address, database, command)
		return r
	})
	return r.documents, r.err
}

// The engine and the commands of playback.
type (
	playbackEngine   struct{ about engine.Description }
	playbackTest     struct{ engine.Test }
	playbackCommands struct{ commands }
)

func (e playbackEngine) Describe(context.Context) (engine.Description, error) { return e.about, nil }
func (e playbackEngine) Begin(context.Context) (engine.Test, error)           { return playbackTest{}, nil }
func (e playbackEngine) Close() error                                         { return nil }

func (playbackTest) Open(context.Context, engine.Entity) error { return nil }
func (playbackTest) Close(context.Context, string) error       { return nil }
func (playbackTest) End(context.Context) error                 { return nil }

func (playbackCommands) at(context.Context, string, string, any) (bson.Raw, error) { return nil, nil }
func (playbackCommands) ask(context.Context, string, bson.D) (bson.Raw, error)     { return nil, nil }
func (playbackCommands) close()                                                    {}

// playbackSource is the source and the deployment of playback. The runner does not call the other methods.
type playbackSource struct {
	deployment.Source
	deployment.Deployment
	about deployment.Description
}

func (s *playbackSource) Offers() []deployment.Description { return []deployment.Description{s.about} }
func (s *playbackSource) Acquire(context.Context, int) (deployment.Deployment, error) {
	return s, nil
}
func (s *playbackSource) Release(deployment.Deployment, bool)           {}
func (s *playbackSource) Description() deployment.Description           { return s.about }
func (s *playbackSource) URI() string                                   { return "mongodb://all" }
func (s *playbackSource) SingleURI() string                             { return "mongodb://single" }
func (s *playbackSource) DirectURI(address string) string               { return "mongodb://" + address }
func (s *playbackSource) Owned() bool                                   { return true }
func (s *playbackSource) Dead() error                                   { return nil }
func (s *playbackSource) Log(time.Time, time.Time) []deployment.LogLine { return nil }
