// Package night runs the processes of the cells of a matrix, and keeps what they leave: their results, and what
// explains their end.
package night

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/unified-test-runner/utr/internal/process/filelock"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
)

// Results keeps the results of cells for --resume: the report NAME.json, the output NAME.log, and for a
// finished cell its identity in NAME.finished. Its methods may be called concurrently.
type Results struct {
	Path  string
	lock  *os.File // of this process
	Cells *os.File // of the processes of cells; they inherit it
}

// OpenResults locks a folder. It waits until cells of a killed run have cleaned up, for at most a limit.
func OpenResults(ctx context.Context, path string, limit time.Duration, note func(string)) (_ *Results, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot keep results: %w", err)
	}
	r := &Results{Path: path}
	defer func() {
		if err != nil {
			r.Close()
			err = fmt.Errorf("cannot keep results in %s: %w", path, err)
		}
	}()
	if r.lock, err = filelock.Lock(filepath.Join(path, "lock")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("cells of a killed run are still running after %s",
		limit))
	defer cancel()
	r.Cells, err = filelock.Wait(ctx, filepath.Join(path, "cells"), func() {
		note("waiting for the cells of a killed run to clean up")
	})
	return r, err
}

// Close unlocks the folder.
func (r *Results) Close() {
	_ = r.lock.Close() // nil without flock
	_ = r.Cells.Close()
}

// Report, Log and Finished return the names of the files of a cell.
func (r *Results) Report(cell string) string   { return filepath.Join(r.Path, cell+".json") }
func (r *Results) Log(cell string) string      { return filepath.Join(r.Path, cell+".log") }
func (r *Results) Finished(cell string) string { return filepath.Join(r.Path, cell+".finished") }

// Remove removes the files of a cell.
func (r *Results) Remove(cell string) error {
	for _, name := range []string{r.Finished(cell), r.Report(cell), r.Report(cell) + reportfile.Partial, r.Log(cell)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Earlier reads the report of a cell, up to the last complete line. If its process was killed, that is the partial one.
// It returns nil without a report.
func (r *Results) Earlier(cell string) (*report.SavedRun, error) {
	name := r.Report(cell)
	data, err := os.ReadFile(name + reportfile.Partial)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return report.Read(name, bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]))
}
