package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/unified-test-runner/utr/report"
)

// resultsFolder keeps the results of cells for --resume: the report NAME.json, the output NAME.log, and for a
// finished cell its identity in NAME.finished. Its methods may be called concurrently.
type resultsFolder struct {
	path  string
	lock  *os.File // of this process
	cells *os.File // of the processes of cells, which inherit it
}

const cellsPoll = 50 * time.Millisecond

var errLocked = errors.New("another utr is using it")

// openResults locks a folder. It waits for cells of a killed run, which clean up before they end.
func openResults(ctx context.Context, path string, note func(string)) (_ *resultsFolder, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot keep results: %w", err)
	}
	f := &resultsFolder{path: path}
	defer func() {
		if err != nil {
			f.close()
			err = fmt.Errorf("cannot keep results in %s: %w", path, err)
		}
	}()
	if f.lock, err = lockFile(filepath.Join(path, "lock")); err != nil {
		return nil, err
	}
	f.cells, err = lockCells(ctx, filepath.Join(path, "cells"), note)
	return f, err
}

// lockCells takes the lock that cells inherit, when no cell of a killed run holds it.
func lockCells(ctx context.Context, name string, note func(string)) (*os.File, error) {
	late := time.After(ChildGrace)
	for waits := false; ; waits = true {
		lock, err := lockFile(name)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if !waits {
			note("waiting for the cells of a killed run to clean up")
		}
		select {
		case <-ctx.Done():
			return nil, errInterrupted
		case <-late:
			return nil, fmt.Errorf("cells of a killed run are still running after %s", ChildGrace)
		case <-time.After(cellsPoll):
		}
	}
}

func (f *resultsFolder) close() {
	_ = f.lock.Close() // nil without flock
	_ = f.cells.Close()
}

func (f *resultsFolder) report(cell string) string   { return filepath.Join(f.path, cell+".json") }
func (f *resultsFolder) log(cell string) string      { return filepath.Join(f.path, cell+".log") }
func (f *resultsFolder) finished(cell string) string { return filepath.Join(f.path, cell+".finished") }

func (f *resultsFolder) isFinished(cell, identity string) bool {
	text, err := os.ReadFile(f.finished(cell))
	return err == nil && string(text) == identity
}

func (f *resultsFolder) remove(cell string) error {
	for _, name := range []string{f.finished(cell), f.report(cell), f.report(cell) + partial, f.log(cell)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// earlier reads the report of a cell, up to the last complete line. It returns nil without a report.
func (f *resultsFolder) earlier(cell string) (*report.SavedRun, error) {
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
