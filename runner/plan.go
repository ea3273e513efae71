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
