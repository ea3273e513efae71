package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// Newest is the newest schemaVersion that is known.
const Newest = "1.28"

const (
	newest = 28 // the minor version of Newest
	major  = 1  // the one major version that there is
)

// Versions gives every known version in ascending order: 1.0, 1.1, …, Newest.
func Versions() []string {
	versions := make([]string, newest+1)
	for minor := range versions {
		versions[minor] = versionString(minor)
	}
	return versions
}

// minorOf gives the minor version of a known version. A patch component is
// accepted and makes no difference, as section "Schema Version" has one schema for
// each minor version; but a patch of Newest is newer than it ("Test Runner
// Support").
func minorOf(version string) (int, error) {
	if !isVersion.MatchString(version) {
		return 0, fmt.Errorf("schemaVersion %q is not a version: two or three numbers joined by dots, such as %q", version, Newest)
	}
	parts := strings.Split(version, ".")
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil { // too large for an int: larger than any that is known
			return newest + 1
		}
		return n
	}
	switch minor := number(parts[1]); {
	case number(parts[0]) != major:
		return 0, fmt.Errorf("schemaVersion %q is of another major version; known are 1.0 to %s", version, Newest)
	case minor > newest, minor == newest && len(parts) == 3 && number(parts[2]) > 0:
		return 0, fmt.Errorf("schemaVersion %q is newer than %s, the newest that is known", version, Newest)
	default:
		return minor, nil
	}
}

func versionString(minor int) string {
	return fmt.Sprintf("%d.%d", major, minor)
}
