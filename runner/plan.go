package runner

import (
	"slices"

	"github.com/unified-test-runner/utr/specs"
)

// DropPlan lists, sorted and without repetition, the namespaces
// ("database.collection") that running the suites drops: those of
// initialData. (The enxcol_ collections beside each are dropped too.)
func DropPlan(suites []*specs.Suite) []string {
	var namespaces []string
	for _, s := range suites {
		for _, data := range s.InitialData {
			namespaces = append(namespaces, data.DatabaseName+"."+data.CollectionName)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// FailPoints lists, sorted and without repetition, the fail points that the
// suites set.
func FailPoints(suites []*specs.Suite) []string {
	var names []string
	for _, s := range suites {
		for _, t := range s.Tests {
			for _, op := range everyOperation(t.Operations) {
				if name := textOf(op.Arguments.Get("failPoint").Get("configureFailPoint")); op.Object == testRunner && name != "" {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
