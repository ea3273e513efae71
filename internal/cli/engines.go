package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/matrix"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
)

// referenceEngine is the default engine, and the only one with policies and backoff delays.
const referenceEngine = "reference"

const (
	engineCommand = "exec:"
	engineAddress = "tcp://"
)

// AddEngine adds a driver under test to the built-in ones. It returns an error if the name is taken or not valid.
func (p *Program) AddEngine(name string, open func() (engine.Engine, error)) error {
	switch _, taken := p.Engines[name]; {
	case taken:
		return fmt.Errorf("there is already an engine %q", name)
	case open == nil:
		return fmt.Errorf("the engine %q has no New", name)
	case !matrix.ValidName(name):
		return fmt.Errorf("the name of the engine %q must consist of letters, digits, and between them dots, plus and minus signs", name)
	}
	p.Engines[name] = withoutOptions(name, open)
	return nil
}

// withoutOptions returns a NewEngine of a driver without policies and backoff delays.
func withoutOptions(name string, open func() (engine.Engine, error)) NewEngine {
	return func(o reference.Options) (engine.Engine, error) {
		switch {
		case o.Policy != "":
			return nil, fmt.Errorf("policies are for the engine %s, not for %s", referenceEngine, name)
		case o.Backoff == reference.BackoffNone:
			return nil, fmt.Errorf("--backoff none is for the engine %s, not for %s", referenceEngine, name)
		}
		return open()
	}
}

const enginesFile = "engines.yml"

func (f *flags) enginesFlag() {
	f.file(&f.call.engines, "engines", "file that names engines in other processes (default "+enginesFile+", if it exists)")
}

// adapters reads the engines file, and registers the secrets of its environments.
func (c *call) adapters() ([]matrix.Adapter, error) {
	name := cmp.Or(c.engines, enginesFile)
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.engines == "":
		return nil, nil
	case err != nil:
		return nil, invalid(fmt.Errorf("--engines: %w", err))
	}
	all, err := matrix.ParseAdapters(name, data, c.env, slices.Collect(maps.Keys(c.program.Engines)))
	if err != nil {
		return nil, invalid(err)
	}
	for _, a := range all {
		c.secrets.Read(a.Environment...)
	}
	return all, nil
}

func (c *call) engineNames(adapters []matrix.Adapter) []string {
	names := mapSlice(adapters, func(a matrix.Adapter) string { return a.Name })
	return slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(c.program.Engines))))
}

func (c *call) completeEngines() []string {
	adapters, _ := c.adapters() // a shell cannot show errors
	return c.engineNames(adapters)
}

type namedEngine struct {
	open    NewEngine
	adapter matrix.Adapter // zero for a built-in engine
}

// engineNamed finds an engine: a built-in one, an adapter given by command or address, or one of the engines file.
func (c *call) engineNamed(name string) (namedEngine, error) {
	if known, found := c.program.Engines[name]; found {
		return namedEngine{open: known}, nil
	}
	if command, ok := strings.CutPrefix(name, engineCommand); ok {
		return c.viaAdapter(matrix.Adapter{Name: name, Command: strings.Fields(command)}, ""), nil
	}
	if address, ok := strings.CutPrefix(name, engineAddress); ok {
		return c.viaAdapter(matrix.Adapter{Name: name}, address), nil
	}
	adapters, err := c.adapters()
	if err != nil {
		return namedEngine{}, err
	}
	i := slices.IndexFunc(adapters, func(a matrix.Adapter) bool { return a.Name == name })
	if i >= 0 {
		return c.viaAdapter(adapters[i], ""), nil
	}
	names := c.engineNames(adapters)
	if len(adapters) == 0 {
		names = append(names, "an engine of "+cmp.Or(c.engines, enginesFile))
	}
	return namedEngine{}, usage("unknown engine %q: it must be one of %s, or %sCOMMAND or %sHOST:PORT", name,
		strings.Join(names, ", "), engineCommand, engineAddress)
}

func (c *call) viaAdapter(a matrix.Adapter, address string) namedEngine {
	o := process.Options{Command: a.Command, Address: address, Dir: a.Directory, StartLimit: a.StartTimeout,
		Environment: slices.Concat(childEnvironment(os.Environ()), a.Environment), Runner: c.runner(), Transcript: c.transcript}
	return namedEngine{withoutOptions(a.Name, func() (engine.Engine, error) {
		if _, err := os.Stat(o.Dir); o.Dir != "" && err != nil { // starting would report the program as missing
			return nil, fmt.Errorf("%s: directory: %w", a.Position, err)
		}
		return process.New(o)
	}), a}
}

func (c *call) runner() string { return "utr " + c.program.Version }

// knownFailing reads the file of a flag, or else of the engine. The error of a missing file names its origin.
func (e namedEngine) knownFailing(flag string) ([]runner.KnownFailure, error) {
	name, origin := flag, "--known-failing"
	if flag == "" && e.adapter.KnownFailing != "" {
		name, origin = e.adapter.KnownFailing, e.adapter.Position.String()+": known-failing"
	}
	if name == "" {
		return nil, nil
	}
	known, err := fromFile(name, runner.ParseKnownFailing)
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
		err = fmt.Errorf("%s: %w", origin, err)
	}
	return known, invalid(err)
}

// definition returns what decides how the adapter starts.
func (e namedEngine) definition() []string {
	a := e.adapter
	return slices.Concat(a.Command, a.Environment, []string{a.Directory, a.StartTimeout.String()})
}
