// Package scaffold writes the first files for running suites through a driver of one's own: an adapter, the files that
// name it, and a workflow for CI.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/unified-test-runner/utr/adapters"
)

//go:embed files
var files embed.FS

// kind is an adapter to begin with.
type kind struct {
	From     string // its name
	folder   string // of its sources in package adapters
	Driver   string
	Main     string // its first file
	Command  string // how it starts, as elements of a YAML list
	Requires string
	Install  string // the command that installs that
	Missing  string // what the adapter prints without that, or ""
	Runtime  string // what runs the adapter, or ""
	Setup    string // the action that installs the language, and the key of its version
	Version  string
	Suites   string // that it runs
}

const retry = "retryable-reads retryable-writes client-backpressure"

// kinds are the adapters to begin with, the recommended one first.
func kinds() []kind {
	return []kind{
		{"pymongo", "pymongo", "PyMongo", "adapter.py", "python3, adapter.py", "PyMongo",
			"python3 -m pip install -r requirements.txt", "No module named", "Python",
			"actions/setup-python@v5", `python-version: "3.x"`, retry},
		{"node", "node", "the Node driver", "adapter.js", "node, adapter.js", "the Node driver",
			"npm install", "Cannot find module 'mongodb'", "Node.js",
			"actions/setup-node@v4", "node-version: lts/*", retry},
		{"java", "java", "the Java driver", "src/Adapter.java", "java, -jar, target/adapter.jar", "target/adapter.jar",
			"mvn -q package", "Unable to access jarfile", "Java",
			"actions/setup-java@v4", `distribution: temurin, java-version: "17"`, retry},
		{"rust", "rust", "the Rust driver", "src/main.rs", "bin/adapter", "bin/adapter",
			"cargo install --quiet --locked --path . --root .", "", "",
			"dtolnay/rust-toolchain@stable", "toolchain: stable", retry},
		{"ruby", "minimal-ruby", "the Ruby driver", "adapter.rb", "ruby, adapter.rb", "the Ruby driver",
			"gem install --user-install mongo", "cannot load such file -- mongo", "Ruby",
			"ruby/setup-ruby@v1", `ruby-version: "3.4"`, "all"},
	}
}

// Kinds returns the names of the adapters to begin with, the recommended one first.
func Kinds() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.From)
	}
	return names
}

// Write writes an adapter for the engine name, which begins as one of Kinds, into a folder, and a workflow into the
// folder .github/workflows of the repository around it. It returns the files. Unless it may overwrite, it writes
// nothing if one of them exists: the error is an *ExistsError. The workflow uses the GitHub action at a commit or tag,
// ref.
func Write(name, from, dir, ref string, overwrite bool) (written []string, err error) {
	dir = filepath.Clean(dir)
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.From == from })
	if i < 0 {
		return nil, fmt.Errorf("unknown adapter %q: it must be one of %s", from, strings.Join(Kinds(), ", "))
	}
	k := kinds()[i]
	root, err := repository(dir)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	workflow := filepath.Join(root, ".github", "workflows", "utr-"+name+".yml")
	shown, err := filepath.Rel(dir, workflow)
	if err != nil {
		return nil, err
	}
	texts, err := sources(k, dir)
	if err != nil {
		return nil, err
	}
	templates, err := template.ParseFS(files, "files/*")
	if err != nil {
		return nil, err
	}
	data := struct {
		kind
		Name, Ref, Folder, Workflow string
	}{k, name, ref, filepath.ToSlash(folder), filepath.ToSlash(shown)}
	for file, path := range map[string]string{
		"engines.yml":       filepath.Join(dir, "engines.yml"),
		"known-failing.txt": filepath.Join(dir, "known-failing.txt"),
		"README.md":         filepath.Join(dir, "README.md"),
		"workflow.yml":      workflow,
	} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, file, data); err != nil {
			return nil, err
		}
		texts[path] = text.Bytes()
	}
	written = slices.Sorted(maps.Keys(texts))
	return written, write(written, texts, overwrite)
}

// repository returns the nearest folder around dir, or dir itself, that is a repository of git, or else dir.
func repository(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at, up := absolute, dir; ; at, up = filepath.Dir(at), filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return up, nil
		}
		if at == filepath.Dir(at) {
			return dir, nil
		}
	}
}

// sources returns the files of an adapter in a folder, without its list of known failures.
func sources(k kind, dir string) (map[string][]byte, error) {
	texts := map[string][]byte{}
	program, err := fs.Sub(adapters.FS, k.folder)
	if err != nil {
		return nil, err
	}
	return texts, fs.WalkDir(program, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Base(name) == "known-failing.txt" {
			return err
		}
		texts[filepath.Join(dir, filepath.FromSlash(name))], err = fs.ReadFile(program, name)
		return err
	})
}

// ExistsError is the error of files that would be overwritten.
type ExistsError struct{ Files []string }

func (e *ExistsError) Error() string { return "it would overwrite " + strings.Join(e.Files, ", ") }

func write(names []string, texts map[string][]byte, overwrite bool) error {
	exist := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Lstat(name)
		return err != nil // writing reports all errors but a missing file
	})
	if len(exist) > 0 && !overwrite {
		return &ExistsError{exist}
	}
	for _, name := range names {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, texts[name], 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
