package compare

import (
	"slices"

	"github.com/unified-test-runner/utr/result"
)

// Deviation is a difference with a decision: what one engine does differently,
// and what the specification says.
type Deviation struct {
	ID     string // D1, D2, …
	Engine string // the one that deviates, with its version, or anyEngine
	Title  string // what it does
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

// anyEngine is the Engine of what any engine may do.
const anyEngine = "either"

// driverName is what the Go driver calls itself as an engine. Its version is not
// compared: binaries do not always know it.
const driverName = "driver"

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
	for _, d := range Deviations() {
		if (d.Engine == anyEngine || engines[1] == driverName) && by(&d, differences) {
			return &d
		}
	}
	return nil
}
