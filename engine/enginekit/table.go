package enginekit

import (
	"slices"

	"github.com/unified-test-runner/utr/specs/operations"
)

// SchemaVersion is the newest version of the format whose features the engines
// serve.
const SchemaVersion = "1.28"

// Key names an operation.
type Key struct {
	Kind operations.Kind
	Name string
}

// Index makes a table of rows.
func Index[R any](rows []R, key func(R) Key) map[Key]R {
	table := make(map[Key]R, len(rows))
	for _, r := range rows {
		table[key(r)] = r
	}
	return table
}

// Names lists the operations of a table as a description does.
func Names[R any](table map[Key]R) []string {
	var names []string
	for k := range table {
		names = append(names, string(k.Kind)+"."+k.Name)
	}
	slices.Sort(names)
	return names
}

// Taken lists the arguments of the format's table that an engine accepts for an
// operation.
func Taken(k Key, accepts func(argument string) bool) []string {
	var taken []string
	known, _ := operations.Lookup(k.Kind, k.Name)
	for _, a := range known.Arguments {
		if accepts(a.Name) || a.Name == "callback" {
			taken = append(taken, a.Name)
		}
	}
	return taken
}
