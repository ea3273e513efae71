package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unified-test-runner/utr/adapters"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/internal/process/cache"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

const enginesFile = "engines.yml"

func (f *flags) enginesFlag() {
	f.file(&f.inv.engines, "engines", "file that names engines in other processes (default "+enginesFile+
		", if it exists), before the built-in adapters")
}

// adapters returns the engines of the engines file, whose environments' secrets it registers.
func (c *invocation) adapters() ([]matrix.Adapter, error) {
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

// builtInAdapters returns the adapters of this binary that are in a folder, for some environment.
func builtInAdapters(folder string, getenv func(string) string) ([]matrix.Adapter, error) {
	data, err := adapters.FS.ReadFile(adapters.EnginesFile)
	if err != nil {
		return nil, err
	}
	return matrix.ParseAdapters(filepath.Join(folder, adapters.EnginesFile), data, getenv, nil)
}

// unpackAdapters writes the adapters in this binary into the cache folder, and returns them.
func (c *invocation) unpackAdapters() ([]matrix.Adapter, error) {
	dir, err := cache.Dir(c.env)
	if err != nil {
		return nil, err
	}
	folder, err := cache.Unpack(filepath.Join(dir, "adapters"), adapters.FS)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the adapters: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return builtInAdapters(folder, func(name string) string {
		switch name {
		case cache.EnvDir:
			return dir
		case "UTR_ADAPTERS":
			return folder
		case "UTR_SOURCE":
			return cmp.Or(c.env(name), here)
		case "UTR_NODE_PATH":
			if folder := c.env(name); filepath.IsAbs(folder) {
				return folder
			}
			return filepath.Join(here, cmp.Or(c.env(name), "node_modules"))
		case "UTR_PYTHON":
			return cmp.Or(fromHere(c.env(name)), c.pythonHere(here))
		case "UTR_VERSION":
			return c.program.Version
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

// withBuiltIn adds the built-in adapters. They are not unpacked: only their names and versions are known.
func withBuiltIn(own []matrix.Adapter) []matrix.Adapter {
	built, _ := builtInAdapters("", func(string) string { return "x" }) // the file is valid
	return slices.Concat(own, built)
}

// engineNames returns the names of all engines. Those in the engines file come before built-in adapters.
func (c *invocation) engineNames(own []matrix.Adapter) []string {
	names := slices.Collect(maps.Keys(c.program.Engines))
	for _, a := range withBuiltIn(own) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// versions returns the versions that an engine's entry names.
func (c *invocation) versions(engine string) []string {
	own, _ := c.adapters() // running a cell reports the error
	all := withBuiltIn(own)
	if i := slices.IndexFunc(all, func(a matrix.Adapter) bool { return a.Name == engine }); i >= 0 {
		return all[i].Versions
	}
	return nil
}

func (c *invocation) completeEngines() []string {
	own, _ := c.adapters() // a shell cannot show errors
	names := c.engineNames(own)
	for _, name := range names {
		for _, version := range c.versions(name) {
			names = append(names, name+"@"+version)
		}
	}
	return names
}

type namedEngine struct {
	open    NewEngine
	adapter matrix.Adapter // of an engine in this process, only KnownFailing
	install string         // the command that installs its version, or ""
}

// engineNamed finds an engine: one in this process, an adapter given by command or address, one of the engines file, or
// a built-in adapter. It is unpacked. NAME@VERSION is an adapter at a version that utr installs.
func (c *invocation) engineNamed(name string) (namedEngine, error) {
	if known, found := c.program.Engines[name]; found {
		return namedEngine{open: known, adapter: matrix.Adapter{KnownFailing: listOf(name)}}, nil
	}
	if command, ok := strings.CutPrefix(name, engineCommand); ok {
		if strings.TrimSpace(command) == "" {
			return namedEngine{}, usage("the engine %s requires a command, such as 'exec:ruby adapter.rb'", name)
		}
		return c.viaProcess(matrix.Adapter{Name: name, Command: strings.Fields(command)}, process.Options{}), nil
	}
	if address, ok := strings.CutPrefix(name, engineAddress); ok {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return namedEngine{}, usage("the engine %s requires a host and a port, such as tcp://localhost:9000", name)
		}
		return c.viaProcess(matrix.Adapter{Name: name}, process.Options{Address: address}), nil
	}
	own, err := c.adapters()
	if err != nil {
		return namedEngine{}, err
	}
	base, version, versioned := strings.Cut(name, "@")
	at := func(a matrix.Adapter) (namedEngine, error) {
		if versioned {
			return c.viaVersion(a, version)
		}
		return c.viaProcess(a, process.Options{}), nil
	}
	isNamed := func(a matrix.Adapter) bool { return a.Name == base }
	if i := slices.IndexFunc(own, isNamed); i >= 0 {
		return at(own[i])
	}
	if names := c.engineNames(own); !slices.Contains(names, base) {
		hint := suggest.Hint(base, names)
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
	if i := slices.IndexFunc(built, isNamed); i >= 0 {
		named, err := at(built[i])
		named.adapter.KnownFailing = cmp.Or(listOf(base), named.adapter.KnownFailing)
		return named, err
	}
	return namedEngine{}, usage("the engine %s is part of utr and has no other version", base)
}

func (c *invocation) viaProcess(a matrix.Adapter, o process.Options) namedEngine {
	o = process.Options{Install: o.Install, Command: a.Command, Address: o.Address, Dir: a.Directory,
		StartLimit: a.StartTimeout, Unavailable: func(err error) error { return c.unavailable(a, err) },
		Environment: slices.Concat(childEnvironment(os.Environ()),
			a.Environment), Runner: c.runner(), Transcript: c.transcript}
	return namedEngine{open: withoutOptions(a.Name, func() (engine.Engine, error) {
		if _, err := os.Stat(o.Dir); o.Dir != "" && err != nil { // starting would report the program as missing
			return nil, fmt.Errorf("%s: directory: %w", a.Position, err)
		}
		return process.New(o)
	}), adapter: a}
}

func (c *invocation) runner() string { return "utr " + c.program.Version }

// lists returns the lists of known failures of a flag, or else the list of the engine.
func (e namedEngine) lists(flag []string) []string {
	if len(flag) == 0 && e.adapter.KnownFailing != "" {
		return []string{e.adapter.KnownFailing}
	}
	return flag
}

// knownFailing reads the lists. The error of a missing file names its origin.
func (e namedEngine) knownFailing(flag []string) (known []runner.KnownFailure, err error) {
	origin := "--known-failing"
	if len(flag) == 0 {
		origin = e.adapter.Position.String() + ": known-failing"
	}
	for _, name := range e.lists(flag) {
		text, err := readList(name)
		if err != nil {
			return nil, invalid(fmt.Errorf("%s: %w", origin, err))
		}
		more, err := runner.ParseKnownFailing(name, bytes.NewReader(text))
		if err == nil {
			known, err = runner.Unite(known, more)
		}
		if err != nil {
			return nil, invalid(err)
		}
	}
	return known, nil
}

// driverList lists the known failures of the engine driver.
const driverList = "engine/driver/known-failing.txt"

// listOf returns the list of an engine that is part of utr, or "".
func listOf(engine string) string {
	if engine == "driver" {
		return driverList
	}
	return ""
}

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
	return slices.Concat(a.Command, a.Environment, []string{a.Directory, a.StartTimeout.String(), a.Name, e.install})
}
