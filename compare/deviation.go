package compare

import (
	"github.com/unified-test-runner/utr/result"
)

// Deviation is a decided difference: what one engine does otherwise, and what
// the specification says.
type Deviation struct {
	ID     string // D1, D2, …
	Engine string // whose doing it is, with the version it was seen in
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

// OfTest finds the deviation that explains a differing test of a suite, nil if
// none does.
func OfTest(id result.TestID, differences []Difference) *Deviation {
	return explained(func(d *Deviation) bool {
		return d.test != nil && d.test(id, differences)
	})
}

// OfSchedule finds the deviation that explains what differs in a schedule.
func OfSchedule(s Schedule, differences []Difference) *Deviation {
	return explained(func(d *Deviation) bool { return d.schedule != nil && d.schedule(s, differences) })
}

func explained(by func(*Deviation) bool) *Deviation {
	for _, d := range deviations() {
		if by(&d) {
			return &d
		}
	}
	return nil
}
