package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unified-test-runner/utr/engine/process"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
)

// pythonHere returns the Python of a virtual environment in a folder that has PyMongo, or "". An active virtual
// environment takes precedence.
func (c *invocation) pythonHere(folder string) string {
	if c.env("VIRTUAL_ENV") != "" {
		return ""
	}
	for _, p := range []struct{ driver, python string }{
		{"lib/python3*/site-packages/pymongo", "bin/python"},
		{"Lib/site-packages/pymongo", "Scripts/python.exe"}, // on Windows
	} {
		for _, environment := range []string{".venv", "venv"} {
			in := filepath.Join(folder, environment)
			if found, _ := filepath.Glob(filepath.Join(in, p.driver)); len(found) > 0 { // the pattern is valid
				return filepath.Join(in, p.python)
			}
		}
	}
	return ""
}

// unavailable says in one sentence why an adapter that never replied cannot be used, if that is known, and what to do.
func (c *invocation) unavailable(a matrix.Adapter, err error) error {
	start := (*process.StartError)(nil)
	notStarted := errors.As(err, &start)
	switch {
	case notStarted && a.Runtime != "" && errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s is not installed: %w", a.Runtime, start)
	case len(a.Requires) == 0:
		return err
	case notStarted && a.Runtime == "" && errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s is not installed: %w", a.Requires[0].Name, start)
		return withAdvice(err, append(installations(a), a.Elsewhere)...)
	case a.Missing != "" && strings.Contains(err.Error(), a.Missing):
		more := "utr run -v shows what the adapter printed."
		if c.verbose {
			more = err.Error()
		}
		err = fmt.Errorf("%s is not installed", a.Requires[0].Name)
		return withAdvice(err, append(installations(a), a.Elsewhere, more)...)
	case a.Missing == "" && !notStarted:
		return withAdvice(err, installations(a)...)
	}
	return err
}

// installations says how to install what an adapter requires.
func installations(a matrix.Adapter) []string {
	all := mapSlice(a.Requires, func(r matrix.Requirement) string {
		return fmt.Sprintf("The engine %s requires %s. This command installs it:\n    %s", a.Name, r.Name, r.Install)
	})
	if a.Installs() {
		if how, at := a.At("latest", ""); how.Moving["latest"] != "" {
			all = append(all, fmt.Sprintf("The engine %s installs the newest release itself.", at.Name))
		}
	}
	return all
}

func withAdvice(err error, lines ...string) error {
	for _, line := range lines {
		if line != "" {
			err = fmt.Errorf("%w\n%s", err, line)
		}
	}
	return err
}
