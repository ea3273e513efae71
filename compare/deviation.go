package compare

import (
	"slices"

	"github.com/unified-test-runner/utr/result"
)

// Deviation is a decided difference: what one engine does otherwise, and what
// the specification says.
type Deviation struct {
	ID     string // D1, D2, …
	Engine string // whose doing it is, with the version it was seen in, or anyEngine
	Title  string // what it does
	// Section is the specification and section that it departs from, or that
	// leaves the choice to drivers.
	Section string
	// Permitted is true where the specification leaves drivers the choice.
	Permitted bool
	// Suite reproduces it: a file of specs/deviations. Empty where it shows by
	// chance alone, or the format cannot tell the two apart.
	Suite string

	// test says whether it explains the differences of a suite's test. Nil: of
	// none.
	test func(id result.TestID, d []Difference) bool
	// example is the schedule of the suite.
	example Schedule
	// schedule says whether it explains the differences of a schedule.
	schedule func(Schedule, []Difference) bool
}

// Deviations is the table, in the order of the ids.
func Deviations() []Deviation { return deviations() }

// anyEngine is the Engine of what any engine may do.
const anyEngine = "either"

// driverName is the name by which the Go driver describes itself as an engine.
// Its version does not count: binaries do not always know it.
const driverName = "driver"

// OfTest finds the deviation that explains a differing test of a suite, nil if
// none does. engines are the names of the left engine and the right one.
func OfTest(engines [2]string, id result.TestID, differences []Difference) *Deviation {
	return explained(engines, differences, func(d *Deviation, differences []Difference) bool {
		return d.test != nil && d.test(id, differences)
	})
}

// OfSchedule finds the deviation that explains what differs in a schedule.
func OfSchedule(engines [2]string, s Schedule, differences []Difference) *Deviation {
	return explained(engines, differences, func(d *Deviation, differences []Difference) bool {
		return d.schedule != nil && d.schedule(s, differences)
	})
}

// explained asks the deviations of the two engines. They expect the engine that
// deviates on the right.
func explained(engines [2]string, differences []Difference, by func(*Deviation, []Difference) bool) *Deviation {
	if engines[0] == driverName && engines[1] != driverName {
		engines[0], engines[1] = engines[1], engines[0]
		differences = slices.Clone(differences)
		for i, d := range differences {
			differences[i].Left, differences[i].Right = d.Right, d.Left
		}
	}
	for _, d := range deviations() {
		if (d.Engine == anyEngine || engines[1] == driverName) && by(&d, differences) {
			return &d
		}
	}
	return nil
}
