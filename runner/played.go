package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Judge runs one test of a suite, whose expectations may have been changed, on
// what was recorded of the test with this name. The error says that it asked what the
// recorded test did not.
func (r *Recording) Judge(ctx context.Context, suite *specs.Suite, id result.TestID) (*result.Verdict, error) {
	p := &player{rec: r, tape: r.tapes[id].rewound()}
	verdict := &result.Verdict{}
	run, err := prepare(ctx, Config{Engine: playedEngine{p}, Reseed: ReseedAlways, Source: &still{r.sites[id.Deployment]}, Notify: func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdict = f.Verdict
		}
	}})
	if err != nil {
		return verdict, err
	}
	run.dial = func(deployment.Deployment) (commands, error) { return p, nil }
	if _, err = run.all(ctx, []*specs.Suite{suite}); err == nil {
		err = p.missed
	}
	return verdict, err
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
	rec  *Recording
	tape *tape

	mu     sync.Mutex
	missed error // the first question that was not asked when it was recorded
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
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.missed == nil {
			p.missed = fmt.Errorf("%s on %s is not recorded", op.Name, op.Object)
		}
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
		r.raw, r.err = bson.Marshal(bson.D{{Key: "ok", Value: 1}})
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
