package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/report"
)

// resultsFolder keeps the results of cells, so that an interrupted matrix can
// continue: for each cell NAME.json, its report, and NAME.log, its output; and one
// file that lists the finished cells. Its methods may be called concurrently.
type resultsFolder struct {
	path  string
	lock  *os.File // of this process
	cells *os.File // of the processes of cells, which inherit it

	mu       sync.Mutex
	finished map[string]string // identity by cell
}

// cellsPoll is the time between looks at whether cells have ended.
const cellsPoll = 50 * time.Millisecond

// finishedFile has no ending, so that NAME.json are the reports alone.
const finishedFile = "finished"

// errLocked means that another process has the lock.
var errLocked = errors.New("another utr is using it")

// openResults opens a folder, which no other process may have open. Cells of a killed
// night clean up before they end; openResults waits for them.
func openResults(ctx context.Context, path string, note func(string)) (_ *resultsFolder, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot keep results: %w", err)
	}
	f := &resultsFolder{path: path, finished: map[string]string{}}
	defer func() {
		if err != nil {
			f.close()
			err = fmt.Errorf("cannot keep results in %s: %w", path, err)
		}
	}()
	if f.lock, err = lockFile(filepath.Join(path, "lock")); err != nil {
		return nil, err
	}
	if f.cells, err = lockCells(ctx, filepath.Join(path, "cells"), note); err != nil {
		return nil, err
	}
	switch data, err := os.ReadFile(filepath.Join(path, finishedFile)); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("cannot read which cells are finished: %w", err)
	default:
		if json.Unmarshal(data, &f.finished) != nil {
			f.finished = map[string]string{} // nothing is, then
		}
	}
	return f, nil
}

// lockCells takes the lock that cells inherit, when none of a killed night is left.
func lockCells(ctx context.Context, name string, note func(string)) (*os.File, error) {
	var late time.Time // set when it begins to wait
	for {
		lock, err := lockFile(name)
		switch {
		case !errors.Is(err, errLocked):
			return lock, err
		case late.IsZero():
			late = time.Now().Add(ChildGrace)
			note("waiting for cells of a killed night, which are still cleaning up")
		case time.Now().After(late):
			return nil, fmt.Errorf("cells of a killed night are still running after %s", ChildGrace)
		}
		select {
		case <-ctx.Done():
			return nil, errInterrupted
		case <-time.After(cellsPoll):
		}
	}
}

func (f *resultsFolder) close() {
	_ = f.lock.Close() // nil without flock
	_ = f.cells.Close()
}

func (f *resultsFolder) report(cell string) string { return filepath.Join(f.path, cell+".json") }
func (f *resultsFolder) log(cell string) string    { return filepath.Join(f.path, cell+".log") }

// has reports whether a cell with this identity is finished.
func (f *resultsFolder) has(cell, identity string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.finished[cell] == identity
}

// forget removes the earlier results of a cell.
func (f *resultsFolder) forget(cell string) error {
	if err := f.note(cell, ""); err != nil {
		return err
	}
	for _, name := range []string{f.report(cell), f.report(cell) + partial, f.log(cell)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// past reads the report of a cell; nil means that it has none. The report of a cell
// that was killed is read up to its last complete line.
func (f *resultsFolder) past(cell string) (*report.Past, error) {
	name := f.report(cell)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(name + partial)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return report.Read(name, bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]))
}

// note lists a cell as finished, or without an identity as not finished. The file is
// replaced atomically.
func (f *resultsFolder) note(cell, identity string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finished[cell] == identity {
		return nil
	}
	if f.finished[cell] = identity; identity == "" {
		delete(f.finished, cell)
	}
	data, err := json.MarshalIndent(f.finished, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(f.path, finishedFile)
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
