package schema

import "github.com/unified-test-runner/utr/source"

// Lowest gives the lowest schemaVersion whose JSON schema a file fits. It is not ok
// if there is none.
func Lowest(root *source.Value) (version string, ok bool) {
	if root == nil {
		return "", false
	}
	w := walk{problems: new([]Problem)}
	suite.explain(w, root)
	lowest := 0
	for _, p := range *w.problems {
		if p.needs == 0 {
			return "", false
		}
		lowest = max(lowest, p.needs)
	}
	return versionString(lowest), true
}
