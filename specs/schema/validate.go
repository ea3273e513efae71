package schema

import "github.com/unified-test-runner/utr/source"

// JSON gives the schema of a version as indented JSON. The error is a
// *[VersionError].
func JSON(version string) ([]byte, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	return derive(minor)
}

// Validate gives what is wrong with a file according to the schema of a
// version, in the order of the file; nothing if it is valid. The version is
// the one that the file declares, or another to try the file against. One
// that [Check] refuses is the only problem then, at the file's schemaVersion.
func Validate(version string, root *source.Value) []Problem {
	minor, err := minorOf(version)
	if err != nil {
		at := source.Position{}
		if v := root.Get("schemaVersion"); v != nil {
			at = v.Position
		} else if root != nil {
			at = root.Position
		}
		return []Problem{{Position: at, Path: "schemaVersion", Message: err.Error()}}
	}
	return explain(minor, root)
}
