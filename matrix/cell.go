package matrix

import (
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/secret"
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
	// Cluster, Engine, Suites and Options name the parts; Options may be "".
	Cluster, Engine, Suites, Options string
	// Flags are those of utr run, in a fixed order. They may hold secrets.
	Flags []string
	// Paths name the suites.
	Paths []string
	// URI and SingleURI are the connection strings of a cluster that has them,
	// else empty.
	URI, SingleURI secret.Text
	// Timeout bounds the whole cell; 0 leaves that to the caller.
	Timeout time.Duration
}

// Args is the command line of utr run that the cell is, without connection
// strings.
func (c *Cell) Args() []string {
	args := slices.Clone(c.Flags)
	for _, p := range c.Paths {
		if strings.HasPrefix(p, "-") {
			return slices.Concat(args, []string{"--"}, c.Paths)
		}
	}
	return append(args, c.Paths...)
}

// same reports whether two cells are the same run, ignoring their names.
func (c *Cell) same(o *Cell) bool {
	return slices.Equal(c.Flags, o.Flags) && slices.Equal(c.Paths, o.Paths) && c.URI == o.URI && c.SingleURI == o.SingleURI
}

// separator stands between the names of the parts of a cell.
const separator = "_"

// part is a value of one of the four axes: a cluster, an engine, suites or
// options.
type part struct {
	name           string
	at             source.Position
	settings       []setting
	paths          []string
	uri, singleURI secret.Text
}

// setting is a key with its values, ready to be flags.
type setting struct {
	key    key
	at     source.Position
	values []string
}

// flags gives the words of a setting on a command line.
func (s setting) flags() (words []string) {
	if s.key.name == cellTimeout {
		return nil
	}
	for _, v := range s.values {
		switch {
		case s.key.shape != toggle:
			words = append(words, "--"+s.key.flagName(), v)
		case v == "true":
			words = append(words, "--"+s.key.flagName())
		}
	}
	return words
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
