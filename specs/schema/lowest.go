package schema

import "github.com/unified-test-runner/utr/source"

// Lowest gives the lowest schemaVersion that a file may declare. Beyond what
// the JSON schemas tell, it knows which version brought which operation and
// operator. It is not ok if the file is valid at none.
func Lowest(root *source.Value) (version string, ok bool) {
	if root == nil {
		return "", false
	}
	w := walk{problems: new([]Problem)}
	suite.explain(w, root)
	for _, p := range *w.problems {
		if p.needs == 0 {
			return "", false
		}
	}
	// What is inside of arguments may be wrong in ways that no schema refuses.
	w.unseen(root)
	lowest := 0
	for _, p := range *w.problems {
		lowest = max(lowest, p.needs)
	}
	return versionString(lowest), true
}
