// Command mutate checks the tests: it makes one change of the program at a time, from a committed list, and expects a
// test to fail. It does not modify the tree: each changed file is an overlay for the compiler.
//
//	mutate [-match REGEXP] [-jobs N]                       run the list
//	mutate -sample N [-seed S] [-jobs N] PACKAGE...        propose new rows
//
// It exits with 1 if a mutation survives or does not fit the code.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	match := flag.String("match", "", "run only rows whose name, file or reason matches this `regexp`")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many mutations run in parallel")
	sample := flag.Int("sample", 0, "propose this many new rows for each package, with their verdicts")
	seed := flag.Uint64("seed", 1, "the seed of the sample")
	flag.Parse()
	if *sample > 0 {
		return propose(ctx, flag.Args(), *sample, *seed, *jobs)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	rows, err := readList(*match)
	if err != nil {
		return err
	}
	start := time.Now()
	count := map[verdict]int{}
	tryAll(ctx, rows, *jobs, func(m Mutation, v verdict, err error) {
		count[v]++
		if v != killed {
			fmt.Printf("%s: %s\n  - %s\n  + %s\n  %s\n", v, m.File, m.Old, m.New, m.Why)
		}
		if err != nil {
			fmt.Printf("  %v\n", err)
		}
	})
	fmt.Printf("%d mutations in %s: %d killed, %d survived, %d do not fit the code\n", len(rows),
		time.Since(start).Round(time.Second), count[killed], count[survived], count[unfit])
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if count[killed] < len(rows) {
		return errors.New("not every mutation was killed")
	}
	return nil
}

// readList reads the rows that match. A duplicate row and a pattern without a match are errors.
func readList(match string) ([]Mutation, error) {
	const name = "internal/mutate/list.yml"
	pattern, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all, rows []Mutation
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	seen := map[string]bool{}
	for _, m := range all {
		key := m.File + "\n" + m.Old + "\n" + m.New
		if seen[key] {
			return nil, fmt.Errorf("%s: %s: the change of %q to %q is listed twice", name, m.File, m.Old, m.New)
		}
		seen[key] = true
		if pattern.MatchString(m.Name) || pattern.MatchString(m.File) || pattern.MatchString(m.Why) {
			rows = append(rows, m)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no row matches %q", name, match)
	}
	return rows, nil
}

// tryAll tries mutations in parallel and reports them one at a time. A cancelled context ends it early.
func tryAll(ctx context.Context, rows []Mutation, jobs int, report func(Mutation, verdict, error)) {
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(max(1, jobs))
	for _, m := range rows {
		all.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			v, err := m.try(ctx)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil {
				report(m, v, err)
			}
			return nil
		})
	}
	_ = all.Wait()
}

// Mutation is one change of the program that a test must detect.
type Mutation struct {
	// Name is set if a page of docs/seeds cites the mutation.
	Name string `yaml:"name,omitempty"`
	File string `yaml:"file"`
	Old  string `yaml:"old"` // occurs in the file exactly once
	New  string `yaml:"new"`
	// Tests are packages of which one must have a failing test, in the order to try them; by default the package
	// of the file.
	Tests []string `yaml:"tests,omitempty,flow"`
	// Run is the name of the test that must fail, with those of its subtests after slashes; by default any test.
	Run string `yaml:"run,omitempty"`
	Why string `yaml:"why,omitempty"` // what the change breaks
}

// verdict is the result of a mutation.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	unfit    verdict = "does not fit the code"
)

// limit is the timeout of the tests of one package. A mutation that makes them hang is killed.
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
	tests := m.Tests
	if len(tests) == 0 {
		tests = []string{"./" + filepath.ToSlash(filepath.Dir(m.File))}
	}
	for _, pkg := range tests {
		if v, err := test(ctx, overlay, pkg, m.Run); v != survived {
			return v, err
		}
	}
	return survived, nil
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
	// -count disables the cache, which would have the result of the unchanged program for tests that build a program.
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-count", "1",
		"-timeout", limit.String(), "-run", run, pkg)
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
