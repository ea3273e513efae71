package compare

import (
	"cmp"
	"slices"

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

	// test reports whether it explains the differences of a suite's test. Nil: never.
	test func(id result.TestID, d []Difference) bool
	// example is the schedule of the suite.
	example Schedule
	// schedule reports whether it explains the differences of a schedule. Nil: never.
	schedule func(Schedule, []Difference) bool
}

func by(engines ...string) []string { return engines }

// of reports whether an engine deviates like this.
func (d *Deviation) of(engine string) bool {
	return d.Engines == nil || slices.Contains(d.Engines, engine)
}

// ofTest finds the deviation that explains a differing test of a suite, nil if
// none does. engines are the names of the left engine and the right one.
func ofTest(engines [2]string, id result.TestID, differences []Difference) *Deviation {
	return explained(engines, differences, func(d *Deviation, differences []Difference) bool {
		return d.test != nil && d.test(id, differences)
	})
}

// ofSchedule finds the deviation that explains what differs in a schedule.
func ofSchedule(engines [2]string, s Schedule, differences []Difference) *Deviation {
	return explained(engines, differences, func(d *Deviation, differences []Difference) bool {
		return d.schedule != nil && d.schedule(s, differences)
	})
}

// explained asks the deviations of the two engines. If none explains everything, each
// difference must have an explanation of its own, of which it gives the first.
func explained(engines [2]string, differences []Difference, by func(*Deviation, []Difference) bool) *Deviation {
	if d := oneOf(engines, differences, by); d != nil || len(differences) < 2 {
		return d
	}
	var first *Deviation
	for i := range differences {
		d := oneOf(engines, differences[i:i+1], by)
		if d == nil {
			return nil
		}
		first = cmp.Or(first, d)
	}
	return first
}

// oneOf finds a deviation that explains all differences. Deviations expect the engine that
// deviates on the right.
func oneOf(engines [2]string, differences []Difference, by func(*Deviation, []Difference) bool) *Deviation {
	turned := slices.Clone(differences)
	for i, d := range differences {
		turned[i].Left, turned[i].Right = d.Right, d.Left
	}
	for _, d := range Deviations() {
		if d.of(engines[1]) && by(&d, differences) || d.of(engines[0]) && by(&d, turned) {
			return &d
		}
	}
	return nil
}
