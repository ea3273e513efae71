package cli

import "runtime/debug"

// modulePath is that of this project.
const modulePath = "github.com/unified-test-runner/utr"

// Version is the version of utr that the binary was built from, or one that names the
// commit if it was built in a checkout. A program of another module has utr as a
// dependency.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == modulePath {
			return dependency.Version
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel"
}
