package schema

import "github.com/unified-test-runner/utr/format/source"

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
//
// The JSON schema decides whether there are any, and the walk only explains them, so that `utr` and an editor
// that uses the same schema cannot disagree.
func Validate(version string, root *source.Value) ([]Problem, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return judge(minor, walk{declared: minor, granted: minor}, root)
}

func judge(minor int, w walk, root *source.Value) ([]Problem, error) {
	verdict, err := verdictOf(minor, root)
	if err != nil || verdict.Valid() {
		return nil, err
	}
	if problems := explain(w, root); problems != nil {
		return problems, nil
	}
	return located(verdict.Errors(), root), nil
}

// Lowest returns the lowest schemaVersion at which a file is valid, and the first place that requires it:
// nil for the oldest version. If the file is valid at no version, it returns the problems.
func Lowest(root *source.Value) (version string, because *Problem, wrong []Problem, err error) {
	if wrong, err = Validate(Newest, root); err != nil || wrong != nil {
		return "", nil, wrong, err
	}
	lowest := 0
	for _, p := range explain(walk{declared: undeclared}, root) {
		if p.needs > lowest {
			lowest, because = p.needs, &p
		}
	}
	return versionString(lowest), because, nil, nil
}

// A Problem is one thing that is wrong with a file.
type Problem struct {
	// Position of the invalid key or value, or of the object that lacks a key.
	Position source.Position
	Path     string // such as tests[0].operations[2].expectError; empty for the root
	Message  string // what is wrong and what was expected

	needs int // minor version that allows it; 0 if no version does
}
