package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
)

// Side is one of two engines and the deployments that it runs on. Both sides run
// at once, so that their sources must not share a cluster.
type Side struct {
	Name   string
	Config runner.Config // its engine, source, jobs, filter, …
}

// Pair is what both engines did in one test on one deployment.
type Pair struct {
	Test     result.TestID
	Position source.Position
	// NotCompared is why an engine did not run the test, "" if both did.
	NotCompared string
	Differences []Difference
	// Known is the reason of a known failure of one engine, else "".
	Known string
	// Deviation explains the differences, nil if nothing does.
	Deviation *Deviation

	verdict *result.Verdict // the left one
	engines [2]string       // the names of the left engine and the right one
}

// Run runs suites through both sides at once, and gives the pairs in the order
// in which the left side finished them. It calls the Notify functions of both
// sides, possibly at the same time. Problems are faults of a run that leave its
// pairs valid, such as a known failure that passed. The error is one of the run as
// a whole: a deployment or an engine that does not work, or the end of ctx.
func Run(ctx context.Context, suites []*specs.Suite, left, right Side) (found []Pair, problems []string, err error) {
	return run(ctx, suites, left, right, false)
}

func run(ctx context.Context, suites []*specs.Suite, left, right Side, everywhere bool) (found []Pair, problems []string, err error) {
	sides := [2]Side{left, right}
	var engines [2]string
	for i, side := range sides {
		about, err := side.Config.Engine.Describe(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		engines[i] = about.Name
	}
	var verdicts [2][]*result.Verdict
	var faults [2][]string
	var errs [2]error
	var work sync.WaitGroup
	for i, side := range sides {
		config := side.Config
		config.KeepEvents, config.Limits = true, result.NoLimits()
		notify := config.Notify
		config.Notify = func(n result.Note) {
			if f, ok := n.(result.TestFinished); ok {
				verdicts[i] = append(verdicts[i], f.Verdict)
			}
			if notify != nil {
				notify(n)
			}
		}
		work.Go(func() {
			summary, err := runner.Run(ctx, suites, config)
			switch {
			case err != nil:
				errs[i] = fmt.Errorf("%s: %w", side.Name, err)
			case summary.Interrupted:
				errs[i] = fmt.Errorf("%s: interrupted: %w", side.Name, cmp.Or(context.Cause(ctx), errCutShort))
			}
			for _, p := range summary.Problems {
				faults[i] = append(faults[i], side.Name+": "+p)
			}
		})
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, nil, err
		}
	}
	return pairs(engines, verdicts[0], verdicts[1], everywhere, threaded(suites)), append(faults[0], faults[1]...), nil
}

// errCutShort is why a run ended early although nobody interrupted it.
var errCutShort = errors.New("a test was cut short")

// threaded finds the tests that run operations on threads.
func threaded(suites []*specs.Suite) func(result.TestID) bool {
	type name struct{ file, description string }
	found := map[name]bool{}
	for _, s := range suites {
		for _, t := range s.Tests {
			if slices.ContainsFunc(t.Operations, func(op specs.Operation) bool { return op.Name == "runOnThread" }) {
				found[name{s.File, t.Description}] = true
			}
		}
	}
	return func(id result.TestID) bool { return found[name{id.File, id.Description}] }
}

// pairs matches the verdicts of both sides. A test that only one side has is a
// pair with an empty observation, which differs from any other. everywhere says that
// faults strike whichever server an attempt goes to; threads reports whether a test
// runs operations at the same time.
func pairs(engines [2]string, left, right []*result.Verdict, everywhere bool, threads func(result.TestID) bool) []Pair {
	pair := func(left, right *result.Verdict) Pair {
		one := cmp.Or(left, right)
		p := Pair{Test: one.Test, Position: one.Position, verdict: left, engines: engines}
		l, r := observe(left), observe(right)
		for _, o := range []observation{l, r} {
			switch o.Status {
			case result.Skipped:
				p.NotCompared = cmp.Or(p.NotCompared, o.Reason)
			case result.KnownFailing:
				p.Known = cmp.Or(p.Known, o.Reason)
			}
		}
		if p.NotCompared != "" || p.Known != "" {
			return p
		}
		chance := l.concurrent || r.concurrent || threads(one.Test) ||
			!everywhere && max(l.mongoses, r.mongoses) > 1 // which mongos has the fault
		if p.Differences = differ(l, r, chance); len(p.Differences) > 0 {
			p.Deviation = ofTest(engines, one.Test, p.Differences)
		}
		return p
	}
	others := map[result.TestID]*result.Verdict{}
	for _, v := range right {
		others[v.Test] = v
	}
	var out []Pair
	for _, v := range left {
		out = append(out, pair(v, others[v.Test]))
		delete(others, v.Test)
	}
	for _, v := range right {
		if others[v.Test] != nil {
			out = append(out, pair(nil, v))
		}
	}
	return out
}
