package compare

import (
	"context"
	"errors"
	"fmt"

	"github.com/unified-test-runner/utr/specs"
)

// batch is how many schedules one suite holds.
const batch = 100

// Generated is what became of generated schedules.
type Generated struct {
	Schedules   int
	Same        int
	NotCompared map[string]int // by reason: a capability that one engine lacks
	Explained   map[string]int // by the id of the deviation
	Findings    []Finding
	// Flaky differed once and not again. They are as they were the first time.
	Flaky []Finding
}

// Finding is a schedule that nothing explains.
type Finding struct {
	Schedule Schedule // as it was generated
	Smallest Schedule // that differs still
	Pair     Pair     // of the smallest
	// Suite expects of the smallest what the left engine shows: the left one
	// passes it, the right one does not, unless what differs is nothing that a
	// suite can express.
	Suite string
}

// Progress is how far a run of schedules has come.
type Progress struct{ Done, Total, Findings int }

// Storm runs n generated schedules through both sides. What differs is run
// again; what differs then and is not explained is shrunk. At most limit
// findings are shrunk, since they have often one cause; the rest only counts as
// findings. progress may be nil.
func Storm(ctx context.Context, g *Generator, n, limit int, left, right Side, progress func(Progress)) (*Generated, error) {
	out := &Generated{NotCompared: map[string]int{}, Explained: map[string]int{}}
	for out.Schedules < n {
		var schedules []Schedule
		for range min(batch, n-out.Schedules) {
			schedules = append(schedules, g.Next())
		}
		doubtful, err := out.look(ctx, schedules, left, right)
		if err != nil {
			return nil, err
		}
		if err := out.again(ctx, doubtful, limit, left, right); err != nil {
			return nil, err
		}
		out.Schedules += len(schedules)
		if progress != nil {
			progress(Progress{Done: out.Schedules, Total: n, Findings: len(out.Findings)})
		}
	}
	return out, nil
}

// look counts what is the same, explained or not compared, and gives the rest.
func (g *Generated) look(ctx context.Context, schedules []Schedule, left, right Side) (doubtful []Finding, err error) {
	found, err := runSchedules(ctx, schedules, left, right)
	if err != nil {
		return nil, err
	}
	for i, p := range found {
		switch {
		case p.NotCompared != "":
			g.NotCompared[p.NotCompared]++
		case len(p.Differences) == 0:
			g.Same++
		case p.Deviation != nil:
			g.Explained[p.Deviation.ID]++
		default:
			doubtful = append(doubtful, Finding{Schedule: schedules[i], Smallest: schedules[i], Pair: p})
		}
	}
	return doubtful, nil
}

// again runs doubtful schedules a second time, and shrinks what differs still.
func (g *Generated) again(ctx context.Context, doubtful []Finding, limit int, left, right Side) error {
	if len(doubtful) == 0 {
		return nil
	}
	var schedules []Schedule
	for _, f := range doubtful {
		schedules = append(schedules, f.Schedule)
	}
	found, err := runSchedules(ctx, schedules, left, right)
	if err != nil {
		return err
	}
	for i, p := range found {
		if !unexplained(p) {
			g.Flaky = append(g.Flaky, doubtful[i])
			continue
		}
		f := doubtful[i]
		f.Pair = p
		if len(g.Findings) < limit {
			if err := f.shrink(ctx, left, right); err != nil {
				return err
			}
		}
		g.Findings = append(g.Findings, f)
	}
	return nil
}

func unexplained(p Pair) bool {
	return p.NotCompared == "" && len(p.Differences) > 0 && p.Deviation == nil
}

// shrink replaces the schedule by a simpler one that still differs, as long as
// there is one, and writes its suite.
func (f *Finding) shrink(ctx context.Context, left, right Side) error {
	for {
		simpler := smaller(f.Smallest)
		if len(simpler) == 0 {
			break
		}
		found, err := runSchedules(ctx, simpler, left, right)
		if err != nil {
			return err
		}
		shrunk := false
		for i, p := range found {
			if unexplained(p) {
				f.Smallest, f.Pair, shrunk = simpler[i], p, true
				break
			}
		}
		if !shrunk {
			break
		}
	}
	text, err := Reproduction(f.Smallest, f.Pair, f.Smallest.String(), nil)
	f.Suite = text
	return err
}

// Reproduction is a suite that expects of a schedule what the left side of the
// pair showed. comments open the file.
func Reproduction(s Schedule, p Pair, description string, comments []string) (string, error) {
	e, err := expect(s, p.verdict)
	if err != nil {
		return "", err
	}
	test, err := s.test(description, e)
	if err != nil {
		return "", err
	}
	return head(description, comments) + test, nil
}

// runSchedules runs schedules through both sides: a pair for each, in their
// order.
func runSchedules(ctx context.Context, schedules []Schedule, left, right Side) ([]Pair, error) {
	suite, err := Suite("generated.yml", schedules)
	if err != nil {
		return nil, err
	}
	found, problems, err := run(ctx, []*specs.Suite{suite}, left, right, true)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	if len(found) != len(schedules) {
		return nil, fmt.Errorf("%d schedules gave %d pairs", len(schedules), len(found))
	}
	out := make([]Pair, len(found))
	for _, p := range found {
		var i int
		if _, err := fmt.Sscanf(p.Test.Description, "%d:", &i); err != nil || i >= len(out) {
			return nil, fmt.Errorf("a verdict of no schedule: %q", p.Test.Description)
		}
		if len(p.Differences) > 0 {
			p.Deviation = OfSchedule(p.engines, schedules[i], p.Differences)
		}
		out[i] = p
	}
	return out, nil
}
