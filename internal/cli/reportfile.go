package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// reportOutput is a report that gets its name once it is complete: until then, and if a
// write fails, an earlier file of that name is unchanged. Devices and pipes are
// written directly.
type reportOutput struct {
	file    *os.File
	name    string // as it was asked for
	target  string // what it will be called; "" if it has its name already
	written bool
	err     error // of the first write that failed
}

// partial is the suffix of a report that is being written. After a run that was killed
// it shows how far the run got.
const partial = ".partial"

// openReport opens a report.
func openReport(name string) (*reportOutput, error) {
	f, err := createReport(name)
	if err != nil {
		return nil, fmt.Errorf("cannot write a report: %w", err)
	}
	return f, nil
}

func createReport(name string) (*reportOutput, error) {
	target, mode := name, fs.FileMode(0o666)
	switch about, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !about.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &reportOutput{file: f, name: name}, err
	default:
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		mode = about.Mode().Perm()
		f, err := os.OpenFile(target, os.O_WRONLY, 0) // one that may not be written is not replaced
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(target+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Create(name) // the file may be written, its folder may not
		target = ""
	}
	return &reportOutput{file: f, name: name, target: target}, err
}

// Write remembers the first error.
func (f *reportOutput) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.file.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// Close gives the report its name. An incomplete report is removed, and so is that of a
// run that never began.
func (f *reportOutput) Close() error {
	err := cmp.Or(f.file.Close(), f.err)
	if f.target != "" && err == nil && f.written {
		err = os.Rename(f.target+partial, f.target)
	}
	if f.target != "" && (err != nil || !f.written) {
		_ = os.Remove(f.target + partial)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing the report to %s: %w", f.name, err)
	if _, there := os.Stat(f.name); f.target != "" && there == nil {
		err = fmt.Errorf("%w; the earlier report is unchanged", err)
	}
	return err
}

// writeFile writes a report, if a file is named.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := openReport(name)
	if err != nil {
		return err
	}
	failed := write(f)
	return cmp.Or(f.Close(), failed)
}

// sameFile reports whether two names refer to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	one, noPath := filepath.Abs(a)
	other, noOther := filepath.Abs(b)
	if noPath == nil && noOther == nil && one == other {
		return true
	}
	file, missing := os.Stat(a)
	another, gone := os.Stat(b)
	return missing == nil && gone == nil && os.SameFile(file, another)
}

// content writes a text to a file.
func content[T string | []byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, string(text))
		return err
	}
}
