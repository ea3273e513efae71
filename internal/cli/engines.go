package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/adapters"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/cache"
	"github.com/unified-test-runner/utr/internal/matrix"
	"github.com/unified-test-runner/utr/internal/meant"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

const enginesFile = "engines.yml"

func (f *flags) enginesFlag() {
	f.file(&f.call.engines, "engines", "file that names engines in other processes (default "+enginesFile+
		", if it exists), before the built-in adapters")
}

// adapters returns the engines of the engines file, whose environments' secrets it registers.
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

// builtInAdapters returns the adapters in this binary, which are in a folder, for some environment.
func builtInAdapters(folder string, getenv func(string) string) ([]matrix.Adapter, error) {
	data, err := adapters.FS.ReadFile(adapters.EnginesFile)
	if err != nil {
		return nil, err
	}
	return matrix.ParseAdapters(filepath.Join(folder, adapters.EnginesFile), data, getenv, nil)
}

// unpackAdapters writes the adapters in this binary into the cache folder, and returns them.
func (c *call) unpackAdapters() ([]matrix.Adapter, error) {
	dir, err := cache.Dir(c.env)
	if err != nil {
		return nil, err
	}
	folder, err := cache.Unpack(filepath.Join(dir, "adapters"), adapters.FS)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the adapters: %w", err)
	}
	return builtInAdapters(folder, func(name string) string {
		switch name {
		case cache.EnvDir:
			return dir
		case "UTR_ADAPTERS":
			return folder
		}
		return fromHere(c.env(name))
	})
}

// fromHere makes the path of an existing file absolute: adapters start elsewhere. It keeps names without a folder.
func fromHere(name string) string {
	if _, err := os.Stat(name); err != nil || !strings.ContainsAny(name, `/\`) {
		return name
	}
	if absolute, err := filepath.Abs(name); err == nil {
		return absolute
	}
	return name
}

// engineNames returns the names of all engines. Those in the engines file come before built-in adapters.
func (c *call) engineNames(own []matrix.Adapter) []string {
	built, _ := builtInAdapters("", func(string) string { return "x" }) // the file is valid
	names := slices.Collect(maps.Keys(c.program.Engines))
	for _, a := range slices.Concat(own, built) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *call) completeEngines() []string {
	own, _ := c.adapters() // a shell cannot show errors
	return c.engineNames(own)
}

type namedEngine struct {
	open    NewEngine
	adapter matrix.Adapter // of an engine in this process, only KnownFailing
}

// engineNamed finds an engine: one in this process, an adapter given by command or address, one of the engines file, or
// a built-in adapter, which it unpacks.
func (c *call) engineNamed(name string) (namedEngine, error) {
	if known, found := c.program.Engines[name]; found {
		return namedEngine{known, matrix.Adapter{KnownFailing: map[string]string{"driver": driverList}[name]}}, nil
	}
	if command, ok := strings.CutPrefix(name, engineCommand); ok {
		return c.viaAdapter(matrix.Adapter{Name: name, Command: strings.Fields(command)}, ""), nil
	}
	if address, ok := strings.CutPrefix(name, engineAddress); ok {
		return c.viaAdapter(matrix.Adapter{Name: name}, address), nil
	}
	own, err := c.adapters()
	if err != nil {
		return namedEngine{}, err
	}
	isNamed := func(a matrix.Adapter) bool { return a.Name == name }
	if i := slices.IndexFunc(own, isNamed); i >= 0 {
		return c.viaAdapter(own[i], ""), nil
	}
	if names := c.engineNames(own); !slices.Contains(names, name) {
		hint := meant.Hint(name, names)
		if len(own) == 0 {
			names = append(names, "an engine of "+cmp.Or(c.engines, enginesFile))
		}
		return namedEngine{}, usage("unknown engine %q: it must be one of %s, or %sCOMMAND or %sHOST:PORT%s", name,
			strings.Join(names, ", "), engineCommand, engineAddress, hint)
	}
	built, err := c.unpackAdapters()
	if err != nil {
		return namedEngine{}, err
	}
	return c.viaAdapter(built[slices.IndexFunc(built, isNamed)], ""), nil
}

func (c *call) viaAdapter(a matrix.Adapter, address string) namedEngine {
	o := process.Options{Command: a.Command, Address: address, Dir: a.Directory, StartLimit: a.StartTimeout, Requires: requirements(a),
		Environment: slices.Concat(childEnvironment(os.Environ()), a.Environment), Runner: c.runner(), Transcript: c.transcript}
	return namedEngine{withoutOptions(a.Name, func() (engine.Engine, error) {
		if _, err := os.Stat(o.Dir); o.Dir != "" && err != nil { // starting would report the program as missing
			return nil, fmt.Errorf("%s: directory: %w", a.Position, err)
		}
		return process.New(o)
	}), a}
}

// requirements says how to install what an adapter requires.
func requirements(a matrix.Adapter) string {
	return strings.Join(mapSlice(a.Requires, func(r matrix.Requirement) string {
		return fmt.Sprintf("the engine %s requires %s, which this command installs:\n    %s", a.Name, r.Name, r.Install)
	}), "\n")
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
	text, err := readList(name)
	if err != nil {
		return nil, invalid(fmt.Errorf("%s: %w", origin, err))
	}
	known, err := runner.ParseKnownFailing(name, bytes.NewReader(text))
	return known, invalid(err)
}

// driverList lists the known failures of the engine driver.
const driverList = "engine/driver/known-failing.txt"

// readList reads a list of known failures: a file, or else one of this project's, by its path in the repository.
func readList(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	path := filepath.ToSlash(name)
	if path == driverList {
		return driver.KnownFailing, nil
	}
	if built, missing := specs.KnownFailing.ReadFile(strings.TrimPrefix(path, "specs/")); missing == nil {
		return built, nil
	}
	return nil, err
}

// definition returns what decides how the adapter starts.
func (e namedEngine) definition() []string {
	a := e.adapter
	return slices.Concat(a.Command, a.Environment, []string{a.Directory, a.StartTimeout.String()})
}
