package compare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// Deviation is a difference with a decision: what one engine does differently,
// and what the specification says.
type Deviation struct {
	ID      string   // D1, D2, …
	Engines []string // those that deviate, by what they call themselves; nil is any engine
	Title   string   // what they do
	// Section is the specification and section that it departs from, or that
	// leaves the choice to drivers.
	Section string
	// Permitted is true where the specification leaves drivers the choice.
	Permitted bool
	// Suite reproduces it: a file of specs/deviations. Empty if it shows only by
	// chance, or if the format cannot express it.
	Suite string

	// test and schedule say when it explains what differs in a suite's test, and in a
	// schedule. Nil: never.
	test, schedule condition
	// example is the schedule of the suite.
	example Schedule
}

func by(engines ...string) []string { return engines }

// of reports whether an engine deviates like this.
func (d *Deviation) of(engine string) bool {
	return d.Engines == nil || slices.Contains(d.Engines, engine)
}

// ofTest finds the deviation that explains a differing test of a suite, nil if
// none does. engines are the names of the left engine and the right one.
func ofTest(engines [2]string, id result.TestID, differences []Difference) *Deviation {
	topology, _, _ := strings.Cut(id.Deployment, " ")
	return explained(engines, shown{Schedule{Topology: topology}, differences}, func(d *Deviation) condition { return d.test })
}

// ofSchedule finds the deviation that explains what differs in a schedule.
func ofSchedule(engines [2]string, s Schedule, differences []Difference) *Deviation {
	return explained(engines, shown{s, differences}, func(d *Deviation) condition { return d.schedule })
}

// explained asks the deviations of the two engines. If none explains everything, each
// difference must have an explanation of its own, of which it gives the first.
func explained(engines [2]string, s shown, by func(*Deviation) condition) *Deviation {
	if d := oneOf(engines, s, by); d != nil || len(s.differences) < 2 {
		return d
	}
	var first *Deviation
	for _, one := range s.differences {
		d := oneOf(engines, shown{s.Schedule, []Difference{one}}, by)
		if d == nil {
			return nil
		}
		first = cmp.Or(first, d)
	}
	return first
}

// oneOf finds a deviation that explains all differences. Deviations expect the engine that
// deviates on the right.
func oneOf(engines [2]string, s shown, by func(*Deviation) condition) *Deviation {
	turned := shown{s.Schedule, slices.Clone(s.differences)}
	for i, d := range s.differences {
		turned.differences[i].Left, turned.differences[i].Right = d.Right, d.Left
	}
	for _, d := range Deviations() {
		holds := by(&d)
		if holds != nil && (d.of(engines[1]) && holds(s) || d.of(engines[0]) && holds(turned)) {
			return &d
		}
	}
	return nil
}
