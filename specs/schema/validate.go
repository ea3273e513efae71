package schema

import "github.com/unified-test-runner/utr/source"

// JSON gives the schema of a version as indented JSON, or says why the version is
// not known.
func JSON(version string) ([]byte, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return derive(minor)
}

// Validate gives what is wrong with a file according to the schema of a
// version, in the order of the file; nothing if it is valid. The version is
// the one that the file declares, or another to try the file against. The error
// says why the version is not known.
func Validate(version string, root *source.Value) ([]Problem, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return explain(walk{declared: minor, granted: minor}, root), nil
}

// Lowest gives the lowest schemaVersion whose JSON schema a file fits, and the first
// place that needs it: nil if the file fits the oldest. If no version fits, it gives
// what is wrong with the file whatever it declares.
func Lowest(root *source.Value) (version string, because *Problem, wrong []Problem) {
	if wrong = explain(walk{declared: newest, granted: newest}, root); wrong != nil {
		return "", nil, wrong
	}
	lowest := 0
	for _, p := range explain(walk{declared: undeclared}, root) {
		if p.needs > lowest {
			lowest, because = p.needs, &p
		}
	}
	return versionString(lowest), because, nil
}
