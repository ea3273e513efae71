package matrix

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/specs/source"
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
	if root = r.replace(root.AsWritten()); root.Kind != source.Document {
		r.add(root.Position, "an engines file must be a document with a name and a document for each engine")
	}
	for _, f := range root.Fields {
		r.name(&source.Value{Kind: source.String, String: f.Key, Position: f.KeyPosition}, "an engine")
		if slices.Contains(taken, f.Key) {
			r.add(f.KeyPosition, "%s is the name of a built-in engine: choose another name", f.Key)
		}
		a := r.adapter(f.Value, filepath.Dir(name))
		a.Name, a.Position = f.Key, f.KeyPosition
		all = append(all, a)
	}
	return all, r.err()
}

func (r *reader) adapter(v *source.Value, folder string) Adapter {
	a := Adapter{Directory: folder}
	if !r.document(v, "an engine", []string{"command", "environment", "directory", "known-failing", "start-timeout", "requires"}) {
		return a
	}
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
