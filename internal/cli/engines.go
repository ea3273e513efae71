package cli

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/process"
)

// engineNames lists the drivers under test that are part of the program.
func (c *call) engineNames() []string { return slices.Sorted(maps.Keys(c.program.Engines)) }

// The prefixes of engines in other processes.
const (
	engineCommand = "exec:"
	engineAddress = "tcp://"
)

// namesAdapter reports whether a name of an engine is that of an adapter.
func namesAdapter(name string) bool {
	return strings.HasPrefix(name, engineCommand) || strings.HasPrefix(name, engineAddress)
}

// engineNamed finds an engine: one of the program, or one behind an adapter.
func (c *call) engineNamed(name string) (NewEngine, error) {
	if known, found := c.program.Engines[name]; found {
		return known, nil
	}
	o := process.Options{Environment: inherited(os.Environ()), Runner: "utr " + c.program.Version}
	if command, ok := strings.CutPrefix(name, engineCommand); ok {
		o.Command = strings.Fields(command)
	} else if address, ok := strings.CutPrefix(name, engineAddress); ok {
		o.Address = address
	} else {
		return nil, usage("unknown engine %q: it must be one of %s, or %sCOMMAND or %sHOST:PORT", name,
			strings.Join(c.engineNames(), ", "), engineCommand, engineAddress)
	}
	return func(e EngineOptions) (engine.Engine, error) {
		if e.Policy != "" {
			return nil, errors.New("an engine in another process has no policies")
		}
		return process.New(o)
	}, nil
}
