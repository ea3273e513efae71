package schema

import (
	"cmp"
	"slices"

	"github.com/unified-test-runner/utr/source"
)

// A Demand is a place in a file that needs a schemaVersion later than 1.0.
type Demand struct {
	Position source.Position
	Path     string
	What     string // such as: "errorResponse", operation runOnThread
	Version  string
	minor    int
}

// Lowest gives the lowest schemaVersion that a file may declare. It is not ok
// if the file is valid at none.
func Lowest(root *source.Value) (version string, ok bool) {
	version, _, ok = LowestFor(root)
	return version, ok
}

// LowestFor gives the lowest schemaVersion that a file may declare, and every
// place that needs a version later than 1.0, the most demanding first: the
// leading ones, of that very version, are why it cannot be lower. Beyond what
// the JSON schemas tell, it knows which version brought which operation and
// operator. It is not ok if the file is valid at no version; the demands are
// those that were found nevertheless.
func LowestFor(root *source.Value) (version string, demands []Demand, ok bool) {
	if root == nil {
		return "", nil, false
	}
	w := walk{problems: new([]Problem)}
	suite.explain(w, root)
	ok = true
	for _, p := range *w.problems {
		ok = ok && p.needs > 0
	}
	// What is inside of arguments may be wrong in ways that no schema refuses.
	w.unseen(root)
	lowest := 0
	for _, p := range *w.problems {
		if p.needs == 0 {
			continue
		}
		demands = append(demands, Demand{p.Position, p.Path, p.what, versionString(p.needs), p.needs})
		lowest = max(lowest, p.needs)
	}
	slices.SortStableFunc(demands, func(a, b Demand) int {
		return cmp.Or(cmp.Compare(b.minor, a.minor), comparePositions(a.Position, b.Position))
	})
	if !ok {
		return "", demands, false
	}
	return versionString(lowest), demands, true
}
