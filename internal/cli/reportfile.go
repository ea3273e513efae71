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

// reportOutput is a report file that gets its name when it is complete: until then, and if a write fails, an
// earlier file of that name is unchanged. Devices and pipes are written directly.
type reportOutput struct {
	file    *os.File
	name    string // from the command line
	target  string // its final name; "" if it is written directly
	written bool
	err     error // of the first failed write
}

// partial is the suffix of a report that is being written. After a killed run it shows how far the run got.
const partial = ".partial"

func openReport(name string) (_ *reportOutput, err error) {
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
		return &reportOutput{file: f, name: name}, err
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
	f, err := os.OpenFile(target+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Create(name) // the file is writable, its folder is not
		target = ""
	}
	return &reportOutput{file: f, name: name, target: target}, err
}

// Write keeps the first error.
func (f *reportOutput) Write(p []byte) (int, error) {
	f.written = true
	n, err := f.file.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// Close renames the report to its name. It removes an incomplete report, and that of a run that never began.
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
	if _, missing := os.Stat(f.name); f.target != "" && missing == nil {
		err = fmt.Errorf("%w; the earlier report is unchanged", err)
	}
	return err
}

// writeFile writes a report file, unless the name is "".
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

func writeText[T string | []byte](text T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, string(text))
		return err
	}
}
