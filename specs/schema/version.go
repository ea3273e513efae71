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

// A VersionError says why a schemaVersion cannot be validated against.
type VersionError struct {
	Version   string // as the file has it
	Malformed bool   // it is not two or three numbers joined by dots
	reason    string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("schemaVersion %q is %s", e.Version, e.reason)
}

// Check says whether a schemaVersion can be validated against: nil, or a
// *[VersionError]. A patch component is accepted and makes no difference, as
// section "Schema Version" has one schema for each minor version; but a patch of
// Newest is newer than it ("Test Runner Support").
func Check(version string) error {
	_, err := minorOf(version)
	return err
}

// minorOf gives the minor version of a known version, or a *VersionError.
func minorOf(version string) (int, error) {
	if !isVersion.MatchString(version) {
		return 0, &VersionError{version, true, fmt.Sprintf("not a version: two or three numbers joined by dots, such as %q", Newest)}
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
		return 0, &VersionError{version, false, "of another major version; known are 1.0 to " + Newest}
	case minor > newest, minor == newest && len(parts) == 3 && number(parts[2]) > 0:
		return 0, &VersionError{version, false, "newer than " + Newest + ", the newest that is known"}
	default:
		return minor, nil
	}
}

func versionString(minor int) string {
	return fmt.Sprintf("%d.%d", major, minor)
}
