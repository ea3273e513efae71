package matrix

import (
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/source"
)

// A Cell is one run of a matrix: suites, through an engine, on a cluster, with
// options.
type Cell struct {
	// Name joins the names of the parts by _. It is a valid file name: letters,
	// digits, dots, plus and minus signs.
	Name string
	// Position is that of the cluster, or of the block that includes it.
	Position source.Position
	// Flags of utr run, in a fixed order. They may hold secrets.
	Flags []string
	// Paths name the suites.
	Paths []string
	// Timeout bounds the whole cell; 0 leaves that to the caller.
	Timeout time.Duration

	parts [axisCount]string // by name; that of the options may be ""
}

// Cluster is the name of the cell's cluster. Clusters at other positions may have the
// same name.
func (c *Cell) Cluster() string { return c.parts[clusters] }

// Args is the command line of utr run that the cell is, for a process or a person.
func (c *Cell) Args() []string {
	args := slices.Clone(c.Flags)
	if slices.ContainsFunc(c.Paths, func(p string) bool { return strings.HasPrefix(p, "-") }) {
		args = append(args, "--")
	}
	return append(args, c.Paths...)
}

// part is a value of one of the four axes: a cluster, an engine, suites or
// options.
type part struct {
	name     string
	at       source.Position
	settings []setting
	paths    []string
}

// setting is a key with the values of its flag: none for one that is false, an empty
// one for a flag without a value.
type setting struct {
	key    key
	at     source.Position
	values []string
}

// axes are the parts of cells in the order of their names.
const (
	clusters = iota
	engines
	suites
	options
	axisCount
)

// axisNames are the keys of the file.
func axisNames() [axisCount]string {
	return [axisCount]string{"clusters", "engines", "suites", "options"}
}

// singular are the keys under exclude.
func singular() [axisCount]string { return [axisCount]string{"cluster", "engine", "suites", "options"} }
