// Package ledger records what a run creates outside itself, so that utr clean can remove it after the run was killed.
// Each thing is one small file in a state folder that all runs of a user share. No file contains a secret.
package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/secret"
)

// EnvDir is the environment variable with the state folder.
const EnvDir = "UTR_STATE_DIR"

// EnvParent is the environment variable with the parent of the state folder. EnvDir takes precedence.
const EnvParent = "XDG_STATE_HOME"

// Dir returns the state folder: $UTR_STATE_DIR, or utr in $XDG_STATE_HOME, or utr in the user's cache folder.
// It may not exist yet.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	// A relative path must be ignored (XDG Base Directory Specification).
	if dir := getenv(EnvParent); filepath.IsAbs(dir) {
		return filepath.Join(dir, "utr"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot record what a run creates: set $%s to a folder", EnvDir), err)
	}
	return filepath.Join(dir, "utr"), nil
}

// Ledger gives a run access to the state folder. Methods may be called concurrently, and any number of runs may share
// the folder. A nil Ledger records nothing.
type Ledger struct {
	dir string
	run Run
}

// Open opens the ledger in a folder, which it creates if necessary. New entries belong to this process.
func Open(dir string) (*Ledger, error) {
	self, err := Self()
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	dir = filepath.Join(dir, "ledger")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &Ledger{dir: dir, run: self}, nil
}

// suffix ends the names of complete entries.
const suffix = ".json"

// Add records a thing. Call it before creating the thing, and done after removing it. done may be called repeatedly
// and concurrently. Add rejects entries that are incomplete or contain credentials.
func (l *Ledger) Add(e Entry) (done func() error, err error) {
	if l == nil {
		return func() error { return nil }, nil
	}
	if e.Kind == ChildProcess && e.Process.Started == "" {
		e.Process, err = ProcessOf(e.Process.PID)
	}
	if err := cmp.Or(err, e.check()); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	// Every entry can be marshaled.
	text, _ := json.MarshalIndent(Leftover{Run: l.run, At: time.Now().UTC().Truncate(time.Second), Entry: e}, "", "  ")
	name := filepath.Join(l.dir, rand.Text()+suffix)
	if err := write(name, append(text, '\n')); err != nil {
		return nil, fmt.Errorf("ledger: cannot record %s, so a crash would leave it behind: %w", e, err)
	}
	return func() error { return forget(name) }, nil
}

// write creates a file atomically.
func write(name string, text []byte) error {
	unfinished := strings.TrimSuffix(name, suffix) + ".new"
	err := os.WriteFile(unfinished, text, 0o600)
	if err == nil {
		err = os.Rename(unfinished, name)
	}
	if err != nil {
		_ = os.Remove(unfinished)
	}
	return err
}

func forget(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Leftover is the content of a file: an entry, and the run that made it. The run may have ended.
type Leftover struct {
	Run   Run       `json:"run"`
	At    time.Time `json:"at"` // creation time, in UTC
	Entry Entry     `json:"entry"`
	file  string
}

// Forget removes the entry from the ledger.
func (l Leftover) Forget() error { return forget(l.file) }

// Leftovers lists the entries of runs that have ended, in the order in which to remove them: processes before the
// folders that they write to, and older entries first. elsewhere lists entries of runs whose state cannot be
// determined from here: on another machine or in another container. The error reports unreadable files; the others
// are still listed.
func (l *Ledger) Leftovers() (dead, elsewhere []Leftover, err error) {
	if l == nil {
		return nil, nil, nil
	}
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("ledger: %w", err)
	}
	var errs []error
	for _, f := range files {
		if filepath.Ext(f.Name()) != suffix {
			continue
		}
		left, err := read(filepath.Join(l.dir, f.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("ledger: %w", err))
			continue
		}
		switch fate, err := left.Run.Fate(); {
		case err != nil:
			errs = append(errs, fmt.Errorf("ledger: %s: cannot tell whether its run has ended: %w", left.file, err))
		case fate == Ended:
			dead = append(dead, left)
		case fate == Unknown:
			elsewhere = append(elsewhere, left)
		}
	}
	for _, list := range [][]Leftover{dead, elsewhere} {
		slices.SortFunc(list, func(a, b Leftover) int {
			return cmp.Or(a.Entry.Kind.rank()-b.Entry.Kind.rank(), a.At.Compare(b.At), strings.Compare(a.file, b.file))
		})
	}
	return dead, elsewhere, errors.Join(errs...)
}

func read(name string) (Leftover, error) {
	l := Leftover{file: name}
	text, err := os.ReadFile(name)
	if err != nil {
		return l, err
	}
	if err = json.Unmarshal(text, &l); err == nil {
		err = l.Entry.check()
	}
	if err == nil && (l.Run.PID <= 0 || l.Run.Started == "") {
		err = errors.New("it does not name its run")
	}
	if err != nil {
		return l, fmt.Errorf("%s is not an entry: %w", name, err)
	}
	return l, nil
}

// TempFolder is a temporary folder with an entry in the ledger.
type TempFolder struct {
	Path string
	// Forget removes the entry, not the folder.
	Forget func() error
}

// MakeFolder records and then creates a temporary folder. purpose is part of its name.
func (l *Ledger) MakeFolder(purpose string) (*TempFolder, error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, FolderPrefix+purpose+"-"+strings.ToLower(rand.Text()[:10]))
	forget, err := l.Add(Entry{Kind: Folder, Path: path})
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("a temporary folder: %w", err), forget())
	}
	return &TempFolder{path, forget}, nil
}

// Close removes the folder, then its entry.
func (f *TempFolder) Close(context.Context) error {
	if err := os.RemoveAll(f.Path); err != nil {
		return err
	}
	return f.Forget()
}

// Kind is the type of an entry.
type Kind string

// The kinds, in the order in which leftovers are removed.
const (
	Cluster      Kind = "cluster" // of an orchestration service
	ChildProcess Kind = "process" // such as a mongod
	Folder       Kind = "folder"  // temporary
	Lock         Kind = "lock"    // the lock document of a deployment that is not ours; its fail points may be on, too
)

var kinds = []Kind{Cluster, ChildProcess, Folder, Lock}

func (k Kind) rank() int { return slices.Index(kinds, k) }

// Entry is one thing that a run creates outside itself. Which fields apply depends on the kind.
type Entry struct {
	Kind Kind `json:"kind"`

	// URL is the URL of an orchestration service, with the version of its API but without credentials. Resource is
	// servers, replica_sets or sharded_clusters, and ID the cluster's id.
	URL      string `json:"url,omitempty"`
	Resource string `json:"resource,omitempty"`
	ID       string `json:"id,omitempty"`
	// Making reports whether the service has been asked to create the cluster and has not answered yet: the cluster
	// can still appear.
	Making bool `json:"making,omitempty"`
	// Hosts are host:port of the cluster's servers. Once it is removed, they no longer accept connections.
	Hosts []string `json:"hosts,omitempty"`

	// Process is a child process; Add looks up its start time. Command is printed: omit arguments that contain secrets.
	Process Process `json:"process,omitzero"`
	Command string  `json:"command,omitempty"`

	// Path is the absolute path of a temporary folder. Its last element begins with FolderPrefix, so that nothing
	// else is ever removed.
	Path string `json:"path,omitempty"`

	// URI is the connection string, without credentials, of the deployment with the lock document; Name is the
	// document's namespace.
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// FolderPrefix begins the name of every temporary folder in the ledger.
const FolderPrefix = "utr-"

// String describes the entry.
func (e Entry) String() string {
	switch e.Kind {
	case Cluster:
		return fmt.Sprintf("cluster %s of %s (%s)", e.ID, e.URL, e.Resource)
	case ChildProcess:
		return fmt.Sprintf("process %d (%s)", e.Process.PID, e.Command)
	case Folder:
		return "folder " + e.Path
	default:
		return fmt.Sprintf("lock document in %s of %s", e.Name, e.URI)
	}
}

// check rejects an entry that could not be removed later, or that must not be written.
func (e Entry) check() error {
	need := map[string]string{}
	switch e.Kind {
	case Cluster:
		need = map[string]string{"url": e.URL, "resource": e.Resource, "id": e.ID}
	case ChildProcess:
		need = map[string]string{"command": e.Command, "start time": e.Process.Started}
		if e.Process.PID <= 1 {
			return fmt.Errorf("%d is not the id of a child process", e.Process.PID)
		}
	case Folder:
		if !filepath.IsAbs(e.Path) || filepath.Clean(e.Path) != e.Path ||
			!strings.HasPrefix(filepath.Base(e.Path), FolderPrefix) {
			return fmt.Errorf("%q is not a temporary folder of utr: it must be absolute, and its name must begin with %s",
				e.Path, FolderPrefix)
		}
	case Lock:
		need = map[string]string{"uri": e.URI, "name": e.Name}
	default:
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
	for what, value := range need {
		if value == "" {
			return fmt.Errorf("an entry of kind %s needs its %s", e.Kind, what)
		}
	}
	for _, text := range []string{e.URL, e.URI, e.Command} {
		if secret.Redact(text) != text {
			return errors.New("the entry contains credentials")
		}
	}
	return nil
}
