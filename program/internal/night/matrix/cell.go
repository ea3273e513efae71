package matrix

import (
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/format/source"
)

// A Cell is one run of a matrix: suites, through an engine, on a cluster, with options.
type Cell struct {
	// Name joins the names of the parts with _. It is a valid file name: letters, digits, dots, plus and minus signs.
	Name     string
	Position source.Position // of the cluster, or of the block that includes the cell
	Flags    []string        // of utr run, in a fixed order; may contain secrets
	Paths    []string        // of the suites
	Timeout  time.Duration   // of the whole cell; 0 for the caller's default

	parts [axisCount]string // names; the name of the options may be ""
}

// Cluster returns the name of the cell's cluster. Clusters at different positions may have the same name.
func (c *Cell) Cluster() string { return c.parts[clusters] }

// Args returns the arguments of utr run.
func (c *Cell) Args() []string {
	args := slices.Clone(c.Flags)
	if slices.ContainsFunc(c.Paths, func(p string) bool { return strings.HasPrefix(p, "-") }) {
		args = append(args, "--")
	}
	return append(args, c.Paths...)
}

// part is a value of one of the four axes: a cluster, an engine, suites or options.
type part struct {
	name     string
	at       source.Position
	settings []setting
	paths    []string
	invalid  bool // cells cannot have it
	misnamed bool // its name may be the invalid value
}

// partNames returns the names of the parts that may be the invalid value, or of the others.
func partNames(parts []part, misnamed bool) (names []string) {
	for _, p := range parts {
		if p.misnamed == misnamed {
			names = append(names, p.name)
		}
	}
	return names
}

// setting is a key with the values of its flag: none if it is false, an empty one for a flag without a value.
type setting struct {
	key    key
	at     source.Position
	values []string
}

// The axes, in the order of the parts of a cell's name.
const (
	clusters = iota
	engines
	suites
	options
	axisCount
)

var (
	axisNames = [axisCount]string{"clusters", "engines", "suites", "options"} // keys of the file
	singular  = [axisCount]string{"cluster", "engine", "suites", "options"}   // keys under exclude
)
