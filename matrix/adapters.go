package matrix

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/source"
)

// Adapter is an engine of an engines file: a driver in another process, behind an
// adapter.
type Adapter struct {
	Name     string
	Position source.Position // of the name
	// Command is a program and its arguments. There is at least the program.
	Command []string
	// Environment is added to that of utr, as NAME=VALUE. It may hold secrets.
	Environment []string
	// Directory is where the adapter starts.
	Directory string
	// KnownFailing names the list of the engine's known failures, "" if it has none.
	KnownFailing string
	// StartTimeout bounds the start; 0 leaves that to the caller.
	StartTimeout time.Duration
}

// ParseAdapters reads an engines file. Paths in it are relative to its folder, and
// ${NAME} stands for a variable of the environment. The file must not use the names
// that are taken. The error lists everything that is wrong with it. It may be called
// concurrently.
func ParseAdapters(name string, data []byte, getenv func(string) string, taken []string) (all []Adapter, err error) {
	root, err := source.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	v := &variables{problems: &r.problems, getenv: getenv, used: map[string]bool{}}
	if root = v.replace(root); root.Kind != source.Document {
		r.add(root.Position, "an engines file must be a document with a name and a document for each engine")
	}
	for _, f := range root.Fields {
		r.name(&source.Value{Kind: source.String, String: f.Key, Position: f.KeyPosition}, "an engine")
		if slices.Contains(taken, f.Key) {
			r.add(f.KeyPosition, "utr itself has an engine %s: choose another name", f.Key)
		}
		a := r.adapter(f.Value, filepath.Dir(name))
		a.Name, a.Position = f.Key, f.KeyPosition
		all = append(all, a)
	}
	return all, r.err()
}

// adapter reads an engine of an engines file, which is in a folder.
func (r *reader) adapter(v *source.Value, folder string) Adapter {
	a := Adapter{Directory: folder}
	if !r.document(v, "an engine", []string{"command", "environment", "directory", "known-failing", "start-timeout"}) {
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
	r.path(v, "directory", folder, &a.Directory)
	r.path(v, "known-failing", folder, &a.KnownFailing)
	if t := v.Get("start-timeout"); t != nil {
		if text, ok := r.text(t, "start-timeout"); ok {
			a.StartTimeout = r.duration(t.Position, "start-timeout", text)
		}
	}
	return a
}

// path reads a path that is relative to a folder, if the key is there.
func (r *reader) path(in *source.Value, key, folder string, to *string) {
	v := in.Get(key)
	if v == nil {
		return
	}
	p, ok := r.text(v, key)
	if *to = p; ok && !filepath.IsAbs(p) {
		*to = filepath.Join(folder, p)
	}
}
