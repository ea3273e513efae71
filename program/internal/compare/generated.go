package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/specs"
)

// batch is the number of schedules in a suite. Workers are idle at its end, until the last test has waited for the Go
// driver's heartbeats, and what all its tests did is in memory.
const batch = 1000

// Generated is the result of comparing generated schedules.
type Generated struct {
	Counts      Counts
	NotCompared map[string]int // by reason: a capability that an engine lacks
	Explained   map[string]int // by the id of the deviation
	Findings    []Finding
	// Flaky schedules differed once but not when repeated. They have the first pair.
	Flaky []Finding
}

// Finding is a schedule with an unexplained difference.
type Finding struct {
	Schedule Schedule // as generated
	Smallest Schedule // the smallest found that still differs
	Pair     Pair     // of Smallest
	Shrunk   bool     // false beyond the limit: Smallest is Schedule
}

// Storm runs n generated schedules through both sides. It repeats schedules with unexplained differences, and
// shrinks a schedule that differs again. It shrinks at most limit, since findings often have a common cause. progress
// receives the numbers of compared schedules and of findings. It may be nil.
func Storm(ctx context.Context, g *Generator, n, limit int, left, right Side,
	progress func(done, findings int)) (*Generated, error) {
	out := &Generated{NotCompared: map[string]int{}, Explained: map[string]int{}}
	for done := 0; done < n; {
		schedules := make([]Schedule, min(batch, n-done))
		for i := range schedules {
			schedules[i] = g.Next()
		}
		if err := out.compare(ctx, schedules, limit, left, right); err != nil {
			return nil, err
		}
		done += len(schedules)
		if progress != nil {
			progress(done, len(out.Findings))
		}
	}
	return out, nil
}

func (g *Generated) compare(ctx context.Context, schedules []Schedule, limit int, left, right Side) error {
	found, err := runSchedules(ctx, schedules, left, right, false)
	if err != nil {
		return err
	}
	var unexplained []Finding
	var repeated []Schedule
	for i, p := range found {
		kind := p.Kind()
		g.Counts[kind]++
		switch kind {
		case NotCompared:
			g.NotCompared[p.NotCompared]++
		case Explained:
			g.Explained[p.Deviation.ID]++
		case Different:
			unexplained = append(unexplained, Finding{Schedule: schedules[i], Smallest: schedules[i], Pair: p})
			repeated = append(repeated, schedules[i])
		}
	}
	if found, err = runSchedules(ctx, repeated, left, right, true); err != nil {
		return err
	}
	for i, f := range unexplained {
		if found[i].Kind() != Different {
			g.Flaky = append(g.Flaky, f)
			continue
		}
		f.Pair = found[i]
		if len(g.Findings) < limit {
			if err := f.shrink(ctx, left, right); err != nil {
				return err
			}
		}
		g.Findings = append(g.Findings, f)
	}
	return nil
}

// shrink repeatedly replaces the schedule by a simpler one that still differs.
func (f *Finding) shrink(ctx context.Context, left, right Side) error {
	f.Shrunk = true
	for {
		simpler := smaller(f.Smallest)
		found, err := runSchedules(ctx, simpler, left, right, true)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(found, func(p Pair) bool { return p.Kind() == Different })
		if i < 0 {
			return nil
		}
		f.Smallest, f.Pair = simpler[i], found[i]
	}
}

// Example returns a suite that uses the collections of all generated schedules.
func Example() (*specs.Suite, error) { return suiteOf(NewGenerator(0).Next()) }

func suiteOf(schedules ...Schedule) (*specs.Suite, error) {
	tests := make([]bson.D, len(schedules))
	for i, s := range schedules {
		tests[i] = s.test(fmt.Sprintf("%d: %s", i, s), nil)
	}
	root, err := parsed(suite("generated schedules", tests...))
	if err != nil {
		return nil, err
	}
	return specs.FromValue("generated", root)
}

// runSchedules runs schedules through both sides and returns their pairs in order. whole is true if a suite may be made
// of a pair.
func runSchedules(ctx context.Context, schedules []Schedule, left, right Side, whole bool) ([]Pair, error) {
	if len(schedules) == 0 {
		return nil, nil
	}
	generated, err := suiteOf(schedules...)
	if err != nil {
		return nil, err
	}
	found, problems, err := run(ctx, []*specs.Suite{generated}, left, right, mode{everywhere: true, whole: whole})
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	if len(found) != len(schedules) {
		return nil, fmt.Errorf("%s produced %s", plural.Of(len(schedules), "schedule"), plural.Of(len(found), "pair"))
	}
	out := make([]Pair, len(found))
	for _, p := range found {
		var i int
		if _, err := fmt.Sscanf(p.Test.Description, "%d:", &i); err != nil || i >= len(out) {
			return nil, fmt.Errorf("a verdict without a schedule: %q", p.Test.Description)
		}
		if len(p.Differences) > 0 {
			p.Deviation = ofSchedule(p.engines, schedules[i], p.Differences)
		}
		out[i] = p
	}
	return out, nil
}
