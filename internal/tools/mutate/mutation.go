package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Mutation is one change of the program that a test must detect.
type Mutation struct {
	Title string // a name that a page of docs/seeds cites, what the mutation breaks, or why it survives
	File  string
	Old   string // occurs in the file exactly once
	New   string
	Run   string   // the test that must fail, with its subtests after slashes; by default any test
	Tests []string // packages; a test in one of them must fail; by default the package of the file

	found bool // by [mutationsIn]
}

// verdict is the result of a mutation.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	unfit    verdict = "does not fit the code"
)

// limit is the timeout of the tests of one package. If a mutation makes them hang, it counts as detected.
const limit = 3 * time.Minute

// try runs the tests on the changed program, package by package until one fails.
func (m Mutation) try(ctx context.Context) (verdict, error) {
	text, err := os.ReadFile(m.File)
	if err != nil {
		return unfit, err
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return unfit, fmt.Errorf("the old text occurs in the file %d times, want once", n)
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return unfit, err
	}
	defer os.RemoveAll(dir)
	overlay, err := overlayOf(dir, m.File, strings.Replace(string(text), m.Old, m.New, 1))
	if err != nil {
		return unfit, err
	}
	for _, pkg := range m.packages() {
		if v, err := test(ctx, overlay, pkg, m.Run); v != survived {
			return v, err
		}
	}
	return survived, nil
}

// packages returns the packages of the tests.
func (m Mutation) packages() []string {
	if len(m.Tests) > 0 {
		return m.Tests
	}
	return []string{"./" + filepath.ToSlash(filepath.Dir(m.File))}
}

// overlayOf writes the changed file and its overlay to a folder.
func overlayOf(dir, file, text string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(file))
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, data, 0o600))
}

func test(ctx context.Context, overlay, pkg, run string) (verdict, error) {
	if run != "" {
		run = "^" + strings.ReplaceAll(run, "/", "$/^") + "$"
	}
	// -count disables the cache. For tests that build a program, the cache has the result of the unchanged program.
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-ldflags=-w", "-failfast",
		"-count", "1", "-timeout", limit.String(), "-run", run, pkg)
	// The change also applies to programs that tests build, such as the command utr.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, "UTR_TEST_COMMAND=")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test stops its children
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case !errors.As(err, &exit):
		return unfit, err
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return unfit, fmt.Errorf("does not build:\n%s", out)
	default:
		return killed, nil
	}
}
