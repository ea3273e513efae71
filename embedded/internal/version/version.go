// Package version has the server versions that an embedded deployment can report.
package version

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Version is a server version.
type Version struct {
	Name    string // "8.0"
	Numbers [3]int
	Wire    int // maxWireVersion
	Has     Features
}

// Default is the default version.
const Default = "8.0"

// all are the versions, oldest first. 4.9 is the development version of the recordings.
var all = []Version{
	{Name: "4.2", Numbers: [3]int{4, 2, 25}},
	{Name: "4.4", Numbers: [3]int{4, 4, 29}},
	{Name: "4.9", Numbers: [3]int{4, 9, 0}},
	{Name: "5.0", Numbers: [3]int{5, 0, 31}},
	{Name: "6.0", Numbers: [3]int{6, 0, 25}},
	{Name: "7.0", Numbers: [3]int{7, 0, 22}},
	{Name: "8.0", Numbers: [3]int{8, 0, 12}},
	{Name: "8.2", Numbers: [3]int{8, 2, 1}},
	{Name: "9.0", Numbers: [3]int{9, 0, 0}},
}

// Names lists the names of the versions, oldest first.
func Names() []string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.Name
	}
	return names
}

// Named returns a version by its name; "" means the default.
func Named(name string) (*Version, error) {
	i := slices.Index(Names(), cmp.Or(name, Default))
	if i < 0 {
		return nil, fmt.Errorf("unknown server version %q: supported versions are %v", name, Names())
	}
	v := all[i]
	v.Wire = wires[v.Name]
	v.Has = Of(v.Wire)
	return &v, nil
}

// Text returns the full version, such as "4.9.0".
func (v *Version) Text() string {
	return fmt.Sprintf("%d.%d.%d", v.Numbers[0], v.Numbers[1], v.Numbers[2])
}

// wires are the wire versions of releases.
var wires = map[string]int{"4.2": 8, "4.4": 9, "4.9": 12, "5.0": 13, "5.1": 14, "5.3": 16, "6.0": 17, "6.1": 18,
	"7.0": 21, "8.0": 25, "8.1": 26, "8.2": 27, "9.0": 29}

// Range is a range of releases. It includes both. An empty one has no limit.
type Range struct{ Since, Until string }

// Has reports whether a wire version is in the range. Wire version 0 is the latest.
func (r Range) Has(wire int) bool {
	wire = cmp.Or(wire, math.MaxInt)
	return wire >= wires[r.Since] && (r.Until == "" || wire <= wires[r.Until])
}
