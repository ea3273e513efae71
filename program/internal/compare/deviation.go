package compare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/result"
)

// Deviation is a known difference and the decision by the specification.
// deviations.yml explains the fields.
type Deviation struct {
	ID             string
	Engines        []string
	Fixed          map[string]string
	Title, Section string
	Permitted      bool
	Suite          string
	Code           map[string]string
	Test, Schedule condition // nil never holds
	Example        Schedule
}

// BySuite says what each suite of specs/deviations is about, by its name.
func BySuite() map[string]string {
	known := map[string]string{}
	for _, d := range Deviations() {
		if d.Suite != "" {
			known[d.Name()] = d.ID + ": " + d.Title + "; " + d.Section
		}
	}
	return known
}

// Name is the name of the suite that reproduces the deviation, "" without one.
func (d Deviation) Name() string { return strings.TrimSuffix(d.Suite, ".yml") }

// of reports whether an engine has the deviation.
func (d Deviation) of(engine string) bool {
	return d.Engines == nil || slices.Contains(d.Engines, engine)
}

// ofTest returns the deviation that explains the differences of a test, or nil.
// engines are the names of the left and right engines.
func ofTest(engines [2]string, id result.TestID, differences []Difference) *Deviation {
	topology, _, _ := strings.Cut(id.Deployment, " ")
	return explained(engines, shown{Schedule{Topology: topology}, differences},
		func(d *Deviation) condition { return d.Test })
}

// ofSchedule returns the deviation that explains the differences of a schedule, or nil.
func ofSchedule(engines [2]string, s Schedule, differences []Difference) *Deviation {
	return explained(engines, shown{s, differences}, func(d *Deviation) condition { return d.Schedule })
}

// explained returns the deviation that explains all differences. If each difference has an explanation of its own, it
// returns the first.
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

// oneOf returns the deviation that explains all differences, or nil. Conditions expect
// the engine that deviates on the right.
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
