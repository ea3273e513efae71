// Package ledger remembers what a run makes outside itself, so that utr clean
// can take it away after a run that was killed: one small file for each thing,
// in a state directory that all runs of a user share. No file holds a secret.
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
)

// EnvDir names the environment variable that chooses the state directory.
const EnvDir = "UTR_STATE_DIR"

// EnvParent names the variable with the parent of the state directory, if EnvDir chooses none.
const EnvParent = "XDG_STATE_HOME"

// Dir gives the state directory of utr: $UTR_STATE_DIR, else utr in
// $XDG_STATE_HOME, else utr in the user's cache directory. It need not be there.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	// A relative one is to be ignored (XDG Base Directory Specification).
	if dir := getenv(EnvParent); filepath.IsAbs(dir) {
		return filepath.Join(dir, "utr"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot record what a run creates: set $%s to a folder", EnvDir), err)
	}
	return filepath.Join(dir, "utr"), nil
}

// Ledger is the state directory as one run sees it. Methods may be called
// concurrently, and any number of runs may share the directory. A nil Ledger
// remembers nothing.
type Ledger struct {
	dir string
	run Run
}

// Open gives the ledger in a directory, which is made if it is not there. Its
// entries belong to the run that is this process.
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

// suffix of the files that are entries; others are being written.
const suffix = ".json"

// Add remembers a thing. Call it before the thing is made, and done once it is
// gone: done may be called many times, also concurrently. An entry that lacks
// something, or that holds credentials, is refused.
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
	text, err := json.MarshalIndent(Leftover{Run: l.run, At: time.Now().UTC().Truncate(time.Second), Entry: e}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	name := filepath.Join(l.dir, rand.Text()+suffix)
	if err := write(name, append(text, '\n')); err != nil {
		return nil, fmt.Errorf("ledger: cannot remember %s, which a crash would leave behind: %w", e, err)
	}
	return func() error { return forget(name) }, nil
}

// write makes a file appear whole or not at all.
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

// Leftover is what a file holds: an entry, and which run made it, which may be gone.
type Leftover struct {
	Run   Run       `json:"run"`
	At    time.Time `json:"at"` // when it was made, in UTC
	Entry Entry     `json:"entry"`
	file  string
}

// Forget takes the entry out of the ledger, once the thing is gone.
func (l Leftover) Forget() error { return forget(l.file) }

// Leftovers lists the entries of runs that are no more, in the order in which
// they are best removed: processes before the folders that they write to,
// and older ones first. Entries of runs that cannot be judged from here, those of
// another machine or of another container, are in elsewhere. The error reports files
// that cannot be read; the others are listed all the same.
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
		case errors.Is(err, fs.ErrNotExist): // done in the meantime
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("ledger: %w", err))
			continue
		}
		switch fate, err := left.Run.Fate(); {
		case err != nil:
			errs = append(errs, fmt.Errorf("ledger: %s: whether its run is still there: %w", left.file, err))
		case fate == Gone:
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
		err = errors.New("it does not say which run made it")
	}
	if err != nil {
		return l, fmt.Errorf("%s is not an entry: %w", name, err)
	}
	return l, nil
}

// TempFolder is a temporary folder that is remembered.
type TempFolder struct {
	Path string
	// Forget removes its entry, not the folder.
	Forget func() error
}

// MakeFolder makes a temporary folder, which is remembered before it is there.
// Its name says the purpose; parent is where, "" for the system's place.
func (l *Ledger) MakeFolder(parent, purpose string) (*TempFolder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
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

// Close removes the folder and its entry.
func (f *TempFolder) Close(context.Context) error {
	if err := os.RemoveAll(f.Path); err != nil {
		return err
	}
	return f.Forget()
}
