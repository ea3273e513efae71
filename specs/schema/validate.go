package schema

import "github.com/unified-test-runner/utr/specs/source"

// JSON returns the schema of a version as indented JSON, or an error if the version is not supported.
func JSON(version string) ([]byte, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return derive(minor)
}

// Validate returns the problems of a file according to the schema of a version, in the order of the
// file. The file may declare another version. The error reports that the version is not supported.
func Validate(version string, root *source.Value) ([]Problem, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return explain(walk{declared: minor, granted: minor}, root), nil
}

// Lowest returns the lowest schemaVersion at which a file is valid, and the first place that requires it:
// nil for the oldest version. If the file is valid at no version, it returns the problems.
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

// A Problem is one thing that is wrong with a file.
type Problem struct {
	// Position of the invalid key or value, or of the object that lacks a key.
	Position source.Position
	Path     string // such as tests[0].operations[2].expectError; empty for the root
	Message  string // what is wrong and what was expected

	needs int // minor version that allows it; 0 if no version does
}
