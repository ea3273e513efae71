// Package reportfile reads and writes files of reports. A file gets its name when it is complete, so that no reader
// takes half a report for a whole one.
package reportfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// File is a report file that gets its name when it is complete. Devices and pipes are written directly.
type File struct {
	file    *os.File
	name    string // from the command line
	target  string // its final name; "" if it is written directly
	mode    fs.FileMode
	state   string // of the file with its final name until then
	written bool
	err     error // of the first failed write
}

// Partial is the suffix of a report that is being written. After a killed run it shows how far the run got.
const Partial = ".partial"

// Open opens a report. Its final name appears when it is closed.
func Open(name string) (_ *File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write a report: %w", err)
		}
	}()
	target, mode := name, fs.FileMode(0o666)
	switch about, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !about.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{file: f, name: name}, err
	default:
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
		mode = about.Mode().Perm()
		f, err := os.OpenFile(target, os.O_WRONLY, 0) // do not replace a read-only file
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(target+Partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Create(name) // the file is writable, its folder is not
		target = ""
	}
	return &File{file: f, name: name, target: target, mode: mode, state: "the earlier report is unchanged"}, err
}

// Replace replaces an earlier report, so that nobody takes it for the report of this run, however the run ends.
func (f *File) Replace(text []byte) (err error) {
	if f.target == "" {
		return nil
	}
	_, failed := f.file.Write(text)
	if err = cmp.Or(f.file.Close(), failed); err == nil {
		err = os.Rename(f.target+Partial, f.target)
	}
	if err == nil {
		f.state = "it says that the run has not finished"
		f.file, err = os.OpenFile(f.target+Partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, f.mode)
	}
	if err != nil {
		_ = os.Remove(f.target + Partial)
		err = fmt.Errorf("cannot write a report: %w", err)
	}
	return err
}

// Write keeps the first error.
func (f *File) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.file.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// Close renames the report to its name. It removes an incomplete report, and the report of a run that never began.
func (f *File) Close() error {
	err := cmp.Or(f.file.Close(), f.err)
	if f.target != "" && err == nil && f.written {
		err = os.Rename(f.target+Partial, f.target)
	}
	if f.target != "" && (err != nil || !f.written) {
		_ = os.Remove(f.target + Partial)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("writing the report to %s: %w", f.name, err)
	if _, missing := os.Stat(f.name); f.target != "" && missing == nil {
		err = fmt.Errorf("%w; %s", err, f.state)
	}
	return err
}

// Write writes a report file, unless the name is "".
func Write(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := Open(name)
	if err != nil {
		return err
	}
	failed := write(f)
	return cmp.Or(f.Close(), failed)
}

// Same reports whether two names refer to one file. It need not exist.
func Same(a, b string) bool {
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

// Among reports whether a name refers to one of some files.
func Among(name string, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool { return Same(name, file) })
}

// Text returns a function for Write that writes a text.
func Text[T string | []byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, string(text))
		return err
	}
}

// In returns a file itself, or *.json in a folder.
func In(name string) []string {
	if about, err := os.Stat(name); err != nil || !about.IsDir() {
		return []string{name}
	}
	inside, _ := fs.Glob(os.DirFS(name), "*.json") // fails only for a malformed pattern
	for i, file := range inside {
		inside[i] = filepath.Join(name, file)
	}
	return inside
}

// Read reads a file with a function.
func Read[T any](name string, read func(name string, from io.Reader) (T, error)) (value T, err error) {
	f, err := os.Open(name)
	if err != nil {
		return value, err
	}
	defer func() { _ = f.Close() }()
	return read(name, f)
}

// ReadWritten reads a file with a function that also requires the time at which the file was written.
func ReadWritten[T any](name string, read func(name string, from io.Reader, written time.Time) (T, error)) (T, error) {
	return Read(name, func(name string, from io.Reader) (value T, err error) {
		about, err := os.Stat(name)
		if err != nil {
			return value, err
		}
		return read(name, from, about.ModTime())
	})
}
