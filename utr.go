// Package utr is the command utr as a function, for Go drivers in other repositories. A program that passes an engine
// to Main has all commands of utr, which run suites against that engine, check it, and report the results. Package
// engine defines what an engine does; docs/your-driver.md in the repository leads from nothing to a first verdict.
package utr

import (
	"os"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/program"
)

// Engine is an additional driver under test.
type Engine struct {
	// Name is the name for --engine and matrix files: letters and digits, with dots,
	// plus and minus signs between them. The names reference and driver are reserved.
	Name string
	// New creates the engine. A run creates one and closes it at the end; utr compare and utr matrix can create
	// several concurrently. New should not connect to servers: the clients of tests do. An error ends the command
	// with the exit code for bad usage.
	New func() (engine.Engine, error)
}

// Main runs the command line of the process, with additional engines, and exits with the exit code of the command. It
// handles signals, and starts its own program again for the cells of a matrix, so func main should do nothing else.
// An invalid name of an engine is bad usage.
func Main(engines ...Engine) {
	added := make([]program.Engine, len(engines))
	for i, e := range engines {
		added[i] = program.Engine(e)
	}
	os.Exit(program.Main(added...))
}
