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

// Lowest gives the lowest schemaVersion whose JSON schema a file fits. It is not ok
// if there is none.
func Lowest(root *source.Value) (version string, ok bool) {
	lowest := 0
	for _, p := range explain(walk{}, root) {
		if p.needs == 0 {
			return "", false
		}
		lowest = max(lowest, p.needs)
	}
	return versionString(lowest), true
}
