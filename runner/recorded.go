package runner

import (
	"context"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// Recording holds the responses of an engine and a deployment to tests. With it, suites with changed expectations can
// be judged without engine and deployment. Its methods may be called concurrently.
type Recording struct {
	// Passed and Racing hold the positions of tests that passed. The tests of Racing
	// cannot be judged: their threads sent equal requests concurrently.
	Passed, Racing map[result.TestID]result.Position

	engine engine.Description
	sites  map[string]deployment.Description // by name
	tapes  map[result.TestID]*tape
}

// Record runs suites like Run, but one test at a time and with ReseedAlways, and records them.
func Record(ctx context.Context, suites []*specs.Suite, cfg Config) (*Recording, result.Summary, error) {
	rec := &Recording{map[result.TestID]result.Position{}, map[result.TestID]result.Position{},
		engine.Description{}, map[string]deployment.Description{}, map[result.TestID]*tape{}}
	var current *tape
	cfg.Engine, cfg.Jobs, cfg.Reseed = tapedEngine{cfg.Engine, &current}, 1, ReseedAlways
	notify := cfg.Notify
	cfg.Notify = func(n result.Note) {
		switch n := n.(type) {
		case result.TestStarted:
			current = newTape()
			rec.tapes[n.Test] = current
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
		return &tapedCommands{c, &current}, err
	}
	summary, err := r.all(ctx, suites)
	return rec, summary, err
}

// Judge runs a suite of one test, with changed expectations, on the recording of a
// test. It returns an error if the test performs an operation that is not recorded.
func (r *Recording) Judge(ctx context.Context, suite *specs.Suite, id result.TestID) (*result.Verdict, error) {
	t := r.tapes[id].rewound()
	verdict := &result.Verdict{}
	notify := func(n result.Note) {
		if f, ok := n.(result.TestFinished); ok {
			verdict = f.Verdict
		}
	}
	run, err := prepare(ctx, Config{Engine: tapedEngine{playbackEngine{r.engine}, &t}, Reseed: ReseedAlways,
		Source: &playbackSource{about: r.sites[id.Deployment]}, Notify: notify})
	if err != nil {
		return verdict, err
	}
	run.dial = func(deployment.Deployment) (commands, error) { return &tapedCommands{playbackCommands{}, &t}, nil }
	if _, err = run.all(ctx, []*specs.Suite{suite}); err == nil {
		err = t.missed
	}
	return verdict, err
}
