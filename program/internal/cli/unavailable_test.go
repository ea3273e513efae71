package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
)

// The built-in adapters find a driver in the working directory.
func TestDriversHere(t *testing.T) {
	for _, r := range []struct{ reason, files, environment, python, node string }{
		{"nothing is installed", "", "", "python3", "HERE/node_modules"},
		{"a virtual environment has PyMongo", ".venv/lib/python3.13/site-packages/pymongo", "", "HERE/.venv/bin/python", "HERE/node_modules"},
		{"so has one with another name", "venv/lib/python3.9/site-packages/pymongo", "", "HERE/venv/bin/python", "HERE/node_modules"},
		{"so has one on Windows", ".venv/Lib/site-packages/pymongo", "", "HERE/.venv/Scripts/python.exe", "HERE/node_modules"},
		{"one without PyMongo is for something else", ".venv/lib/python3.13/site-packages/flask", "", "python3", "HERE/node_modules"},
		{"an active one takes precedence", ".venv/lib/python3.13/site-packages/pymongo", "VIRTUAL_ENV=/active", "python3", "HERE/node_modules"},
		{"a variable takes precedence", ".venv/lib/python3.13/site-packages/pymongo", "UTR_PYTHON=pypy3", "pypy3", "HERE/node_modules"},
		{"a folder is relative to the working directory", "", "UTR_NODE_PATH=mine", "python3", "HERE/mine"},
		{"an absolute folder", "", "UTR_NODE_PATH=/mine", "python3", "/mine"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench(t)
			testkit.Check(t, os.MkdirAll(filepath.FromSlash(r.files+"/."), 0o755))
			name, value, _ := strings.Cut(r.environment, "=")
			b.env[name] = value
			all, err := (&invocation{program: &b.Program}).unpackAdapters()
			testkit.Check(t, err)
			here, err := os.Getwd()
			testkit.Check(t, err)
			of := func(name string) matrix.Adapter {
				return all[slices.IndexFunc(all, func(a matrix.Adapter) bool { return a.Name == name })]
			}
			testkit.Equal(t, "the Python", of("pymongo").Command[0], strings.Replace(r.python, "HERE", here, 1))
			testkit.Equal(t, "the folder of Node", of("node").Environment[0],
				"UTR_NODE_PATH="+strings.Replace(r.node, "HERE", here, 1))
		})
	}
}
