package cli

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/unified-test-runner/utr/internal/process/cache"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night/matrix"
)

// Runs that need the same version at the same time install it once, and all get the complete folder. A folder that a
// killed run left is replaced.
func TestInstallAtTheSameTime(t *testing.T) {
	b := newBench(t)
	all, err := matrix.ParseAdapters("engines.yml",
		[]byte(`py: {command: "${folder:-.}/py", install: "echo ${version} >> installed; echo half > ${folder}/py; sleep 0.3; echo whole > ${folder}/py"}`), b.Getenv, nil)
	testkit.Check(t, err)
	errors := &whole{new(sync.Mutex), &b.err}
	install := func() string {
		c := &invocation{program: &b.Program, errors: errors}
		at, err := c.install(t.Context(), all[0], "1.2")
		if err != nil {
			return err.Error()
		}
		return at.Command[0]
	}
	first := install()
	folder := filepath.Dir(first)
	testkit.Check(t, os.RemoveAll(folder))
	testkit.Check(t, os.Mkdir(folder+".new", 0o755))
	write(t, filepath.Join(folder+".new", "left"), "")
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			if at := install(); at != first {
				t.Errorf("installed in %s, want %s", at, first)
			} else if text, err := os.ReadFile(at); string(text) != "whole\n" {
				t.Errorf("a run got a folder with %q, %v", text, err)
			}
		})
	}
	running.Wait()
	testkit.Equal(t, "installations", testkit.Read(t, "installed"), "1.2\n1.2\n")
	left, err := filepath.Glob(filepath.Join(b.env[cache.EnvDir], "versions", "*.new"))
	testkit.Check(t, err)
	testkit.Equal(t, "unfinished folders", len(left), 0)
	_, err = os.Stat(filepath.Join(folder, "left"))
	testkit.Equal(t, "the file of the killed run is gone", os.IsNotExist(err), true)
}

// A terminal shows the last line of an installer, and removes it at the end.
func TestInstallOnATerminal(t *testing.T) {
	b := newBench(t)
	b.Terminal = func() (int, bool) { return 80, true }
	all, err := matrix.ParseAdapters("engines.yml",
		[]byte(`py: {command: py, install: "echo collecting ${version}; touch ${folder}/py; sleep 0.6"}`), b.Getenv, nil)
	testkit.Check(t, err)
	c := &invocation{program: &b.Program, errors: &b.err}
	_, err = c.install(t.Context(), all[0], "1.2")
	testkit.Check(t, err)
	testkit.Contains(t, b.out.String(), "installing py@1.2: ", " collecting 1.2\r\x1b[K")
	testkit.Equal(t, "at the end", strings.HasSuffix(b.out.String(), "\r\x1b[K"), true)
}
