package reference

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/operations"
)

// Arguments lists the arguments of the format's table that an operation is
// served with; false if the engine does not serve the operation.
func Arguments(kind operations.Kind, name string) ([]string, bool) {
	for _, r := range rows() {
		if r.kind != kind || r.name != name {
			continue
		}
		var taken []string
		known, _ := operations.Lookup(kind, name)
		for _, a := range known.Arguments {
			if slices.Contains(r.args, a.Name) || a.Name == "callback" {
				taken = append(taken, a.Name)
			}
		}
		return taken, true
	}
	return nil, false
}
