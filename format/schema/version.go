package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Newest is the newest supported schemaVersion.
const Newest = "1.28"

const (
	newest = 28 // the minor version of Newest
	major  = 1  // the only major version
)

// Versions returns all supported versions in ascending order: 1.0, 1.1, …, Newest.
func Versions() []string {
	versions := make([]string, newest+1)
	for minor := range versions {
		versions[minor] = versionString(minor)
	}
	return versions
}

// minorOf returns the minor version of a supported version. It ignores the patch component, because section "Schema
// Version" has one schema for each minor version; but a patch of Newest is newer than Newest ("Test Runner Support").
func minorOf(version string) (int, error) {
	if !isVersion.MatchString(version) {
		return 0, fmt.Errorf("schemaVersion %q is not a version: two or three numbers joined by dots, such as %q",
			version, Newest)
	}
	parts := strings.Split(version, ".")
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil { // too large for an int
			return newest + 1
		}
		return n
	}
	switch minor := number(parts[1]); {
	case number(parts[0]) != major:
		return 0, fmt.Errorf("schemaVersion %q has an unsupported major version; supported are 1.0 to %s", version, Newest)
	case minor > newest, minor == newest && len(parts) == 3 && number(parts[2]) > 0:
		return 0, fmt.Errorf("schemaVersion %q is newer than %s, the newest supported version", version, Newest)
	default:
		return minor, nil
	}
}

func versionString(minor int) string {
	return fmt.Sprintf("%d.%d", major, minor)
}
