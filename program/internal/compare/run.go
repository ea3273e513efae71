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
	"github.com/unified-test-runner/utr/specs"
)

// Side is an engine and its deployments. Both sides run at the same time unless they share a cluster.
type Side struct {
	Name   string
	Config runner.Config // its engine, source, jobs, filter, …
	Shared bool          // the other side has the same cluster: the left side runs first, then the right one
}

// Pair is the result of both engines in one test on one deployment.
type Pair struct {
	Test     result.TestID
	Position result.Position
	// NotCompared is why an engine did not run the test, "" if both did.
	NotCompared string
	Differences []Difference
	// Known is the reason of a known failure of one engine, or "".
	Known string
	// Deviation explains the differences, nil if they are unexplained.
	Deviation *Deviation

	verdict *result.Verdict // of the left engine, if a suite may be made of it
	engines [2]string       // the names of the left and right engines
}

// seen is what remains of a verdict: the events of all tests would fill the memory.
type seen struct {
	test     result.TestID
	position result.Position
	behavior observation
	verdict  *result.Verdict // nil unless a suite may be made of it
}

// Run runs suites through both sides and returns the pairs in the order in which the left side finished them. It may
// call the Notify functions of both sides concurrently. Problems leave the pairs valid, such as a known failure that
// passed. The error is from a deployment, an engine, or ctx.
func Run(ctx context.Context, suites []*specs.Suite, left, right Side) (found []Pair, problems []string, err error) {
	return run(ctx, suites, left, right, mode{})
}

// mode is what a comparison does with its suites.
type mode struct {
	everywhere bool // faults apply to all servers
	whole      bool // a suite may be made of a pair
}

func run(ctx context.Context, suites []*specs.Suite, left, right Side, m mode) (found []Pair, problems []string,
	err error) {
	sides := [2]Side{left, right}
	var engines [2]string
	for i, side := range sides {
		description, err := side.Config.Engine.Describe(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		engines[i] = description.Name
	}
	var verdicts [2][]*seen
	var faults [2][]string
	var errs [2]error
	var work sync.WaitGroup
	for i, side := range sides {
		config := side.Config
		config.KeepEvents, config.Untrimmed = true, true
		notify := config.Notify
		config.Notify = func(n result.Note) {
			if f, ok := n.(result.TestFinished); ok {
				verdicts[i] = append(verdicts[i], see(f.Verdict, m.whole))
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
		if !side.Shared {
			continue
		} else if work.Wait(); errs[i] != nil {
			break
		}
	}
	work.Wait()
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, nil, err
	}
	return pairs(engines, verdicts[0], verdicts[1], m.everywhere, threaded(suites)), append(faults[0], faults[1]...), nil
}

func see(v *result.Verdict, whole bool) *seen {
	one := &seen{test: v.Test, position: v.Position, behavior: observe(v)}
	if whole {
		one.verdict = v
	}
	return one
}

// errCutShort is the cause of an interrupted run whose context has not ended.
var errCutShort = errors.New("a test was cut short")

// threaded returns a function that reports whether a test runs operations on threads.
func threaded(suites []*specs.Suite) func(result.TestID) bool {
	found := map[[2]string]bool{} // by file and description
	for _, s := range suites {
		for _, t := range s.Tests {
			if slices.ContainsFunc(t.Operations, func(op specs.Operation) bool { return op.Name == "runOnThread" }) {
				found[[2]string{s.File, t.Description}] = true
			}
		}
	}
	return func(id result.TestID) bool { return found[[2]string{id.File, id.Description}] }
}

// pairs matches the verdicts of both sides. A test that only one side ran is a pair with an empty observation. It
// differs from any other. everywhere is a field of mode. threads reports whether a test runs operations concurrently.
func pairs(engines [2]string, left, right []*seen, everywhere bool, threads func(result.TestID) bool) []Pair {
	pair := func(left, right *seen) Pair {
		one, nothing := cmp.Or(left, right), &seen{}
		left, right = cmp.Or(left, nothing), cmp.Or(right, nothing)
		p := Pair{Test: one.test, Position: one.position, verdict: left.verdict, engines: engines}
		l, r := left.behavior, right.behavior
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
		chance := l.concurrent || r.concurrent || threads(one.test) ||
			!everywhere && max(l.mongoses, r.mongoses) > 1 // which mongos has the fault
		if p.Differences = differ(l, r, chance); len(p.Differences) > 0 {
			p.Deviation = ofTest(engines, one.test, p.Differences)
		}
		return p
	}
	others := map[result.TestID]*seen{}
	places := map[result.TestID]result.TestID{} // by the test without its deployment
	nowhere := func(id result.TestID) result.TestID { id.Deployment = ""; return id }
	for _, v := range right {
		others[v.test], places[nowhere(v.test)] = v, v.test
	}
	var out []Pair
	for _, v := range left {
		id := v.test
		for _, other := range []result.TestID{nowhere(id), places[id]} { // a skipped test may have no deployment
			if others[id] == nil {
				id = other
			}
		}
		out = append(out, pair(v, others[id]))
		delete(others, id)
	}
	for _, v := range right {
		if others[v.test] != nil {
			out = append(out, pair(nil, v))
		}
	}
	return out
}
