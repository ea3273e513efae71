package matrix

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/format/source"
)

// Adapter is an engine of an engines file: a driver in another process, behind an adapter.
type Adapter struct {
	Name         string
	Position     source.Position // of the name
	Command      []string        // a program and its arguments
	Environment  []string        // NAME=VALUE, added to the environment of utr; may contain secrets
	Directory    string          // working directory of the adapter
	KnownFailing string          // file with the engine's known failures, or ""
	StartTimeout time.Duration   // 0 for the caller's default
	Requires     []Requirement   // in the order of the file
	Runtime      string          // what the program of Command belongs to, such as Ruby, or ""
	Missing      string          // what the adapter prints if a requirement is not installed, or ""
	Elsewhere    string          // a sentence: how the adapter finds what is installed elsewhere, or ""
	Versions     []string        // that a matrix runs for NAME@*; may have latest and main
	versioned    *Adapter        // of a version that utr installs, with ${version} and ${folder}; nil without install
	install      Installation    // of versioned
}

// Installation is how utr installs a version of an engine.
type Installation struct {
	Command string            // for a shell; "" if utr installs nothing
	Moving  map[string]string // by latest or main, the command that prints the version
	Limit   time.Duration     // 0 for the caller's default
}

// Moves reports whether the meaning of a version changes: latest is the newest release, main a checkout.
func Moves(version string) bool { return slices.Contains(moving, version) }

// MovingVersions returns the versions that move.
func MovingVersions() []string { return slices.Clone(moving) }

var moving = []string{"latest", "main"}

// Installs reports whether At can be called.
func (a Adapter) Installs() bool { return a.versioned != nil }

// At returns how a version is installed into a folder, and the adapter that then runs it.
func (a Adapter) At(version, folder string) (Installation, Adapter) {
	known := strings.NewReplacer("${version}", version, "${folder}", folder)
	filled := func(all []string) (out []string) {
		for _, one := range all {
			out = append(out, known.Replace(one))
		}
		return out
	}
	at, how := *a.versioned, a.versioned.install
	at.Name, at.Position, at.Requires = a.Name+"@"+version, a.Position, nil
	at.Command, at.Environment = filled(at.Command), filled(at.Environment)
	how.Command = known.Replace(how.Command)
	return how, at
}

// Requirement is something that must be installed before an adapter can start.
type Requirement struct {
	Name    string
	Install string // the command that installs it, for people
}

// ParseAdapters parses an engines file. Paths are relative to its folder, and ${NAME} is a variable of the
// environment. The file must not define engines with the names in taken. The error lists all problems of the
// file. ParseAdapters is safe for concurrent use.
func ParseAdapters(name string, data []byte, getenv func(string) string, taken []string) (all []Adapter, err error) {
	root, err := source.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := &reader{variables: variables{getenv: getenv, used: map[string]bool{}}}
	if root = root.AsWritten(); root.Kind != source.Document {
		r.add(root.Position, "an engines file must be a document with a name and a document for each engine")
	}
	for _, f := range root.Fields {
		r.name(&source.Value{Kind: source.String, String: f.Key, Position: f.KeyPosition}, "an engine")
		if strings.Contains(f.Key, "@") {
			r.add(f.KeyPosition, "the name %q contains @, which separates an engine from its version", f.Key)
		}
		if slices.Contains(taken, f.Key) {
			r.add(f.KeyPosition, "%s is the name of a built-in engine: choose another name", f.Key)
		}
		a := r.adapter(f.Value, filepath.Dir(name))
		a.Name, a.Position = f.Key, f.KeyPosition
		all = append(all, a)
	}
	return all, r.err()
}

var (
	adapterKeys = []string{"command", "environment", "directory", "known-failing", "start-timeout", "requires", "missing",
		"elsewhere", "runtime"}
	installKeys = slices.Concat([]string{"install", "installed", "versions"}, moving, []string{"install-timeout"})
)

// adapter reads an engine as it is, and again as one whose versions utr installs, if it has install: there, the
// variables under installed win over variables of the environment, and the adapter gets them as well.
func (r *reader) adapter(v *source.Value, folder string) Adapter {
	if !r.document(v, "an engine", slices.Concat(adapterKeys, installKeys)) {
		return Adapter{}
	}
	plain := *v
	plain.Fields = slices.DeleteFunc(slices.Clone(v.Fields),
		func(f source.Field) bool { return slices.Contains(installKeys, f.Key) })
	a := r.process(r.replace(&plain), folder)
	if v.Get("install") == nil {
		for _, f := range v.Fields {
			if slices.Contains(installKeys, f.Key) {
				r.add(f.KeyPosition, "%s requires install", f.Key)
			}
		}
		return a
	}
	r.set = map[string]string{"version": "${version}", "folder": "${folder}"}
	defer func() { r.set = nil }()
	installed := v.Get("installed")
	if installed != nil {
		installed = r.replace(installed)
	}
	own := r.pairs(installed, "installed", `{PYTHONPATH: "${folder}"}`)
	for _, pair := range own {
		name, value, _ := strings.Cut(pair, "=")
		r.set[name] = value
	}
	with := r.replace(v)
	at := r.process(with, folder)
	at.Environment = append(at.Environment, own...)
	at.install.Command, _ = r.text(with.Get("install"), "install")
	at.install.Moving = map[string]string{}
	for _, name := range moving {
		at.install.Moving[name], _ = r.text(with.Get(name), name)
	}
	if text, ok := r.text(with.Get("install-timeout"), "install-timeout"); ok {
		at.install.Limit = r.duration(with.Get("install-timeout").Position, "install-timeout", text)
	}
	if !strings.Contains(at.install.Command, "${version}") || !strings.Contains(at.install.Command, "${folder}") {
		r.add(with.Get("install").Position, "install must be a command that contains ${version} and ${folder}")
	}
	a.versioned = &at
	for _, one := range r.list(with.Get("versions"), "versions") {
		version, _ := r.text(one, "versions")
		if !ValidName(version) {
			r.add(one.Position, "the version %q cannot be part of a file name", version)
		}
		if Moves(version) && at.install.Moving[version] == "" {
			r.add(one.Position, "the version %s requires %s, a command that prints the version", version, version)
		}
		a.Versions = append(a.Versions, version)
	}
	return a
}

// process reads how the process of an adapter starts.
func (r *reader) process(v *source.Value, folder string) Adapter {
	a := Adapter{Directory: folder}
	switch c := v.Get("command"); {
	case c == nil:
		r.add(v.Position, "an engine needs a command")
	case c.Kind != source.String:
		a.Command = r.texts(c, "command")
	default:
		if a.Command = strings.Fields(c.String); len(a.Command) == 0 {
			r.add(c.Position, "command is empty")
		}
	}
	a.Environment = r.pairs(v.Get("environment"), "environment", "{LANG: C}")
	for _, pair := range r.pairs(v.Get("requires"), "requires", "{PyMongo: pip install pymongo}") {
		name, install, _ := strings.Cut(pair, "=")
		a.Requires = append(a.Requires, Requirement{name, install})
	}
	a.Runtime, _ = r.text(v.Get("runtime"), "runtime")
	a.Missing, _ = r.text(v.Get("missing"), "missing")
	a.Elsewhere, _ = r.text(v.Get("elsewhere"), "elsewhere")
	r.path(v, "directory", folder, &a.Directory)
	r.path(v, "known-failing", folder, &a.KnownFailing)
	if text, ok := r.text(v.Get("start-timeout"), "start-timeout"); ok {
		a.StartTimeout = r.duration(v.Get("start-timeout").Position, "start-timeout", text)
	}
	return a
}

func (r *reader) path(in *source.Value, key, folder string, to *string) {
	p, ok := r.text(in.Get(key), key)
	switch {
	case ok && filepath.IsAbs(p):
		*to = p
	case ok:
		*to = filepath.Join(folder, p)
	}
}
