package cli

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/process/cache"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/night"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

//go:embed testdata/suite.yml
var suite string

// bench is a Program that connects to nothing and runs nothing. Its working directory contains only suite.yml.
type bench struct {
	Program
	out, err  bytes.Buffer
	t         testing.TB
	ctx       context.Context // of command lines
	interrupt context.CancelFunc
	env       map[string]string

	// Settings: what happens in a run.
	notes   []result.Note
	summary result.Summary
	fails   error
	foreign error // of Claim
	opening error // of the deployment
	closing error
	during  func()
	arrive  func() // called before the deployment opens
	version [3]int // of the servers

	// Results.
	ran      *runner.Config
	suites   []*specs.Suite
	opened   any    // the options of the deployment
	before   string // standard error when the run began
	keptLogs bool   // of local servers
	cutShort bool   // the run
	code     int    // of the last scene
}

type noEngine struct{ engine.Engine }

func (noEngine) Close() error { return nil }

// noSource offers one deployment that cannot be acquired.
type noSource struct{ *bench }

func (s noSource) Offers() []deployment.Description {
	return []deployment.Description{{Name: "replicaset 8.0", Topology: deployment.ReplicaSet, Version: s.version,
		Hosts: []string{"h1:1", "h2:2"}, Servers: []string{"h1:1", "h2:2"}}}
}
func (noSource) Acquire(context.Context, int) (deployment.Deployment, error) {
	return nil, errors.New("no deployment")
}
func (noSource) Release(deployment.Deployment, bool) {}
func (noSource) Repairs() bool                       { return false }
func (noSource) KeepLogs()                           {}
func (s noSource) Close() error                      { return s.closing }

type localSource struct{ noSource }

func (s localSource) KeepLogs() { s.keptLogs = true }

func newBench(t testing.TB) *bench {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "suite.yml", suite)
	b := &bench{t: t, ctx: t.Context(), env: map[string]string{ledger.EnvDir: t.TempDir(), cache.EnvDir: t.TempDir()},
		summary: result.Summary{Passed: 2}}
	open := func(_ context.Context, o any) (deployment.Source, error) {
		if b.arrive != nil {
			b.arrive()
		}
		b.opened = o
		if o, is := o.(deployment.OrchestrationOptions); is {
			for _, c := range o.Clusters {
				for _, secret := range c.Configuration.Secrets {
					o.Secret(secret)
				}
			}
		}
		if b.opening != nil {
			return nil, b.opening
		}
		if _, local := o.(deployment.LocalOptions); local {
			return localSource{noSource{b}}, nil
		}
		return noSource{b}, nil
	}
	newEngine := func(reference.Options) (engine.Engine, error) { return noEngine{}, nil }
	b.Program = Program{
		Stdin: strings.NewReader(suite), Stdout: &b.out, Stderr: &b.err,
		Getenv:   func(name string) string { return b.env[name] },
		Terminal: func() (int, bool) { return 0, false },
		Machine:  func() Machine { return Machine{Cores: 2} },
		Version:  "v0",
		Engines:  map[string]NewEngine{"reference": newEngine, "driver": newEngine},
		Open:     open,
		Serve:    func(context.Context, embedded.Options) (Server, error) { return nil, errors.New("port taken") },
		Build:    func() (string, error) { return "utr 1", nil },
		Claim:    func(context.Context, []*specs.Suite, runner.Config, bool) error { return b.foreign },
		Run: func(ctx context.Context, suites []*specs.Suite, cfg runner.Config) (result.Summary, error) {
			b.ran, b.suites, b.before = &cfg, suites, b.err.String()
			if b.during != nil {
				b.during()
			}
			for _, n := range b.notes {
				cfg.Notify(n)
			}
			s := b.summary
			if b.cutShort = ctx.Err() != nil; b.cutShort {
				s.Interrupt(runner.Interruption(ctx))
			}
			cfg.Notify(result.RunFinished{Summary: s})
			return s, b.fails
		},
	}
	return b
}

// realBench is a bench with the real engines and deployments. Cells of a matrix run in this process.
func realBench(t testing.TB) *bench {
	b := newBench(t)
	streams := b.Program
	b.Program = *New()
	b.Stdin, b.Stdout, b.Stderr, b.Getenv, b.Terminal = streams.Stdin, streams.Stdout, streams.Stderr, streams.Getenv, streams.Terminal
	b.Child = func(ctx context.Context, c night.Child) (int, int, error) {
		cell := b.Program
		cell.Stdin, cell.Stdout, cell.Stderr = strings.NewReader(jsonLines(c.More)), c.Output, c.Output
		return 0, cell.Main(ctx, c.Args), nil
	}
	return b
}

// assignment is an environment variable before a command.
var assignment = regexp.MustCompile(`^([A-Z_]+)=(.*)$`)

// utr runs a command line, quoted as for a shell, and returns the exit code.
func (b *bench) utr(line string) int {
	args, err := split(line)
	if err != nil {
		panic(line)
	}
	return b.play(args)
}

// play runs a command line, and returns the exit code.
func (b *bench) play(args []string) int {
	for len(args) > 0 && assignment.MatchString(args[0]) {
		m := assignment.FindStringSubmatch(args[0])
		b.env[m[1]], args = m[2], args[1:]
	}
	b.out.Reset()
	b.err.Reset()
	b.ran, b.suites, b.opened, b.before, b.keptLogs, b.cutShort = nil, nil, nil, "", false, false
	return b.Main(b.ctx, args)
}

// expect runs a command line and checks its exit code, and its output with says.
func (b *bench) expect(t testing.TB, reason, line string, code int, want string) {
	t.Helper()
	if got := b.utr(line); got != code || !says(b.out.String()+b.err.String(), want) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s%s", reason, got, code, want, b.out.String(), b.err.String())
	}
}

// says reports whether a text contains the parts of a pattern, separated by " … ", in order.
func says(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, " … ") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// split splits a command line as a shell does, up to the end of the command.
func split(line string) (out []string, err error) {
	word, has, quote := "", false, rune(0)
	for _, c := range line + " " {
		switch {
		case quote != 0 && c != quote:
			word += string(c)
		case c == quote:
			quote = 0
		case c == '\'' || c == '"':
			quote, has = c, true
		case strings.ContainsRune(" \t|;&<>()", c) || c == '#' && !has:
			if has {
				out = append(out, word)
			}
			if word, has = "", false; c != ' ' && c != '\t' {
				return out, nil
			}
		default:
			word, has = word+string(c), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	return out, nil
}

// fields prints the fields of a structure that are set, functions by their names.
func fields(of any) string {
	v := reflect.Indirect(reflect.ValueOf(of))
	if v.Kind() != reflect.Struct {
		return ""
	}
	var out []string
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || f.IsZero() || f.Kind() == reflect.Interface {
			continue
		}
		switch f = reflect.Indirect(f); f.Kind() {
		case reflect.Func:
			out = append(out, name)
		case reflect.Struct:
			out = append(out, name+"={"+fields(f.Interface())+"}")
		default:
			out = append(out, fmt.Sprintf("%s=%v", name, f.Interface()))
		}
	}
	return strings.Join(out, " ")
}

func write(t testing.TB, path, text string) {
	t.Helper()
	testkit.Check(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

func lacks(t testing.TB, reason, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: %q is in: %s", reason, part, text)
		}
	}
}

func contentsOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Check(t, err)
	texts := map[string]string{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			texts[e.Name()] = testkit.Read(t, filepath.Join(dir, e.Name()))
		}
	}
	return texts
}

// ledger returns the entries of the ledger by file name.
func (b *bench) ledger(t testing.TB) map[string]string {
	t.Helper()
	dir := filepath.Join(b.env[ledger.EnvDir], "ledger")
	testkit.Check(t, os.MkdirAll(dir, 0o755))
	return contentsOf(t, dir)
}

func finished(name string, status result.Status) result.TestFinished {
	return result.TestFinished{Verdict: &result.Verdict{Status: status, Duration: time.Second,
		Test: result.TestID{File: "f.yml", Suite: "s", Description: name}}}
}

func jsonReport(notes ...result.Note) string {
	var text strings.Builder
	_ = report.Write("memory", report.JSON(), &text, notes...)
	return text.String()
}
