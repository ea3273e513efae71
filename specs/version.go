package specs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a Version String of the format: major.minor.patch. Missing components are zero.
type Version struct{ Major, Minor, Patch int }

// ParseVersion parses one to three non-negative integers joined by dots.
func ParseVersion(s string) (Version, error) {
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return Version{}, fmt.Errorf("version %q has more than three components", s)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return Version{}, fmt.Errorf("version %q: component %q is not a non-negative integer", s, p)
		}
		n[i] = int(v)
	}
	return Version{n[0], n[1], n[2]}, nil
}

// Compare returns -1, 0 or 1.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch))
}

// String returns major.minor, or major.minor.patch if the patch is not zero.
func (v Version) String() string {
	if v.Patch != 0 {
		return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}
