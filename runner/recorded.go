package runner

import (
	"context"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
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

// Record runs suites as Run does, but one test at a time and each with its initial data
// written again, and keeps what they heard.
func Record(ctx context.Context, suites []*specs.Suite, cfg Config) (*Recording, result.Summary, error) {
	rec := &Recording{map[result.TestID]source.Position{}, map[result.TestID]source.Position{},
		engine.Description{}, map[string]deployment.Description{}, map[result.TestID]*tape{}}
	var now *tape // of the one test that runs
	cfg.Engine, cfg.Jobs, cfg.Reseed = taped{cfg.Engine, &now}, 1, ReseedAlways
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
		return &tapedCommands{c, &now}, err
	}
	summary, err := r.all(ctx, suites)
	return rec, summary, err
}

// Judge runs one test of a suite, whose expectations may have been changed, on
// what was recorded of the test with this name. The error says that it asked what the
// recorded test did not.
func (r *Recording) Judge(ctx context.Context, suite *specs.Suite, id result.TestID) (*result.Verdict, error) {
	t := r.tapes[id].rewound()
	verdict := &result.Verdict{}
	notify := func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdict = f.Verdict
		}
	}
	run, err := prepare(ctx, Config{Engine: taped{silentEngine{r.engine}, &t}, Reseed: ReseedAlways,
		Source: &still{r.sites[id.Deployment]}, Notify: notify})
	if err != nil {
		return verdict, err
	}
	run.dial = func(deployment.Deployment) (commands, error) { return &tapedCommands{silentCommands{}, &t}, nil }
	if _, err = run.all(ctx, []*specs.Suite{suite}); err == nil {
		err = t.missed
	}
	return verdict, err
}
