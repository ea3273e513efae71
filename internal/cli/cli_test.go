package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/embedded/process"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
	"go.mongodb.org/mongo-driver/v2/bson"
)

const suite = `description: "the suite"
schemaVersion: "1.0"
createEntities:
  - client: {id: client0}
  - database: {id: database0, client: client0, databaseName: db}
  - collection: {id: collection0, database: database0, collectionName: coll}
initialData:
  - {databaseName: db, collectionName: coll, documents: []}
tests:
  - description: "first (a+b)"
    operations: [{name: find, object: collection0, arguments: {filter: {}}}]
  - description: "second"
    operations: [{name: find, object: collection0, arguments: {filter: {}}}]
`

// bench is a Program whose world is made up: nothing connects, nothing runs.
type bench struct {
	Program
	out, err bytes.Buffer
	env      map[string]string
	ran      *runner.Config
	suites   []*specs.Suite
	cluster  deployment.ClusterOptions
	embedded deployment.EmbeddedOptions
	notes    []result.Note
	summary  result.Summary
	fails    error
	before   string // what standard error held when the run began
	during   func() // called in the run
}

type noEngine struct{ engine.Engine }

func (noEngine) Close() error { return nil }

type noSource struct{ offers []deployment.Description }

func (s noSource) Offers() []deployment.Description { return s.offers }
func (noSource) Acquire(context.Context, int) (deployment.Deployment, error) {
	return nil, errors.New("there is none")
}
func (noSource) Release(deployment.Deployment, bool) {}
func (noSource) Close() error                        { return nil }

func newBench() *bench {
	b := &bench{env: map[string]string{}, summary: result.Summary{Passed: 2}}
	b.Program = Program{
		Stdin: strings.NewReader(suite), Stdout: &b.out, Stderr: &b.err,
		Getenv:  func(name string) string { return b.env[name] },
		Version: "v0",
		Engines: map[string]NewEngine{"reference": func(o EngineOptions) (engine.Engine, error) {
			if o.Policy == "none" {
				return nil, errors.New("there is no such policy")
			}
			return noEngine{}, nil
		}},
		Embedded: func(_ context.Context, o deployment.EmbeddedOptions) (deployment.Source, error) {
			b.embedded = o
			return noSource{}, nil
		},
		Cluster: func(_ context.Context, o deployment.ClusterOptions) (deployment.Source, error) {
			b.cluster = o
			return noSource{[]deployment.Description{{Name: "replicaset 8.0", Hosts: []string{"h1:1", "h2:2"}}}}, nil
		},
		Run: func(ctx context.Context, suites []*specs.Suite, cfg runner.Config) (result.Summary, error) {
			b.ran, b.suites, b.before = &cfg, suites, b.err.String()
			if b.during != nil {
				b.during()
			}
			for _, n := range b.notes {
				cfg.Notify(n)
			}
			s := b.summary
			s.Interrupted = ctx.Err() != nil
			cfg.Notify(result.RunFinished{Summary: s})
			return s, b.fails
		},
	}
	return b
}

func suiteFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "suite.yml")
	write(t, path, suite)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestExitCodes(t *testing.T) {
	file := suiteFile(t)
	bad := filepath.Join(t.TempDir(), "bad.yml")
	write(t, bad, "description: x\nschemaVersion: \"1.0\"\ntests: 3\n")
	twin := filepath.Join(t.TempDir(), "suite.json")
	write(t, twin, `{"description": "x", "schemaVersion": "1.0", "tests": [{"description": "a", "operations": []}]}`)
	reasonless := filepath.Join(t.TempDir(), "known")
	write(t, reasonless, "pattern\n")
	for _, r := range []struct {
		reason string
		args   []string
		change func(*bench)
		code   int
		err    string // part of standard error
	}{
		{"all well", []string{"run", file}, nil, 0, ""},
		{"a test failed", []string{"run", file}, func(b *bench) { b.summary.Failed = 1 }, 1, ""},
		{"a problem of the run", []string{"run", file}, func(b *bench) { b.summary.Problems = []string{"x"} }, 1, ""},
		{"a test broke", []string{"run", file}, func(b *bench) { b.summary.Failed, b.summary.Broken = 1, 1 }, 3, ""},
		{"the run could not begin", []string{"run", file}, func(b *bench) { b.fails = errors.New("no test commands") }, 3, "no test commands"},
		{"the report cannot be written", []string{"run", "--json", filepath.Join(bad, "x"), file}, nil, 3, "report"},
		{"the deployment cannot be had", []string{"run", file}, func(b *bench) {
			b.Embedded = func(context.Context, deployment.EmbeddedOptions) (deployment.Source, error) {
				return nil, errors.New("no ports")
			}
		}, 3, "no ports"},
		{"no command", nil, nil, 2, "usage: utr"},
		{"unknown command", []string{"rum"}, nil, 2, `there is no command "rum"; did you mean run?`},
		{"nothing like a command", []string{"xyzzy"}, nil, 2, "there is no command \"xyzzy\"\n"},
		{"unknown flag", []string{"run", "--jbos", "2", file}, nil, 2, "run: there is no flag --jbos; did you mean --jobs?\nutr help run tells more"},
		{"a flag that nobody can guess", []string{"run", "--colour", file}, nil, 2, "run: there is no flag --colour\n"},
		{"a flag cut short", []string{"validate", "--js", file}, nil, 2, "did you mean --json?"},
		{"a switch with a value that is none", []string{"run", "--events=maybe", file}, nil, 2, "--events"},
		{"a seed that is no number", []string{"run", "--shuffle=abc", file}, nil, 2, "--shuffle \"abc\": it must be a number"},
		{"a flag without its value", []string{"run", file, "--jobs"}, nil, 2, "--jobs needs a value"},
		{"no jobs", []string{"run", "--jobs", "0", file}, nil, 2, "at least 1"},
		{"an unknown topology", []string{"run", "--topology", "ring", file}, nil, 2, "one of auto, all, single"},
		{"a bad version", []string{"run", "--server-version", "new", file}, nil, 2, "--server-version"},
		{"a bad pattern", []string{"run", "--run", "(", file}, nil, 2, "run"},
		{"a negative timeout", []string{"run", "--timeout", "-1s", file}, nil, 2, "--timeout \"-1s\": it must be longer than nothing"},
		{"a timeout that is over at once", []string{"run", "--timeout", "0s", file}, nil, 2, "longer than nothing"},
		{"a timeout without a unit", []string{"run", "--timeout", "5", file}, nil, 2, "a length of time such as 30s"},
		{"no repetitions", []string{"run", "--count", "0", file}, nil, 2, "--count \"0\": it must be at least 1"},
		{"more members than there can be", []string{"run", "--members", "51", file}, nil, 2, "--members \"51\": it must be at most 50"},
		{"more routers than there can be", []string{"serve", "--mongoses", "51"}, nil, 2, "at most 50"},
		{"a topology that came later", []string{"run", "--topology", "load-balanced", "--server-version", "4.2", file}, nil, 2, "came with 5.0"},
		{"two reports in one file", []string{"run", "--json", "r", "--junit", "r", file}, nil, 2, "same file"},
		{"two names for one report", []string{"run", "--json", "r", "--junit", "./r", file}, nil, 2, "same file"},
		{"a report without a name", []string{"run", "--json", "", file}, nil, 2, "--json \"\": it needs the name of a file"},
		{"a report on standard output, where the other is", []string{"run", "--junit", "-", file}, nil, 2, "- is none"},
		{"a suite taken for the name of a report", []string{"run", "--json", file, file}, nil, 2, "its name is that of a suite"},
		{"a report over a suite in JSON", []string{"run", "--json", twin, twin}, nil, 2, "written over the suite"},
		{"a path that is empty", []string{"run", ""}, nil, 2, "a path is empty"},
		{"a path that is empty, for validate", []string{"validate", file, ""}, nil, 2, "a path is empty"},
		{"a flag in the place of the command", []string{"--jobs", "2", "run", file}, nil, 2, "flags such as --jobs follow it"},
		{"a port too large", []string{"serve", "--port", "65536"}, nil, 2, "at most 65535"},
		{"ports that run over", []string{"serve", "--port", "65534"}, nil, 2, "there are no 3 ports from there to 65535"},
		{"a flag given twice", []string{"run", "--jobs", "0", "--jobs", "2", file}, nil, 2, "at least 1"},
		{"a connection string that is none", []string{"run", "--uri", "nonsense", file}, nil, 2, "--uri: connection string must start"},
		{"one of the environment", []string{"run", file}, func(b *bench) { b.env[envURI] = "nonsense" }, 2, "$UTR_URI: connection string must start"},
		{"options that exclude each other", []string{"run", "--uri", "mongodb://h/?loadBalanced=true&replicaSet=r", file}, nil, 2, "--uri: "},
		{"an empty connection string is no embedded deployment", []string{"run", "--uri", "", file}, nil, 2, "--uri is empty"},
		{"a load balancer without a deployment", []string{"run", "--single-uri", "mongodb://h/", file}, nil, 2, "goes with --uri"},
		{"a topology and a cluster of the environment", []string{"run", "--topology", "single", file}, func(b *bench) { b.env[envURI] = "mongodb://h/" }, 2, "$UTR_URI"},
		{"a dry run of nothing", []string{"run", "--dry-run", "--run", "nothing", file}, nil, 2, "the run pattern \"nothing\" matches no test"},
		{"a run of nothing", []string{"run", "--run", "nothing", file}, nil, 2, "the run pattern \"nothing\" matches no test"},
		{"a run of what is left out again", []string{"run", "--run", "first", "--skip", "first", file}, nil, 2, "leave no test to run"},
		{"a dry run with a pattern too many", []string{"run", "--dry-run", "--run", "first", "--run", "nothing", file}, nil, 1, "matches no test"},
		{"a dry run of what is left out again", []string{"run", "--dry-run", "--skip", ".", file}, nil, 2, "leave no test"},
		{"an unknown engine", []string{"run", "--engine", "steam", file}, nil, 2, `"steam"`},
		{"an unknown policy", []string{"run", "--policy", "none", file}, nil, 2, "no such policy"},
		{"no path", []string{"run"}, nil, 2, "name a suite"},
		{"a path that is not there", []string{"run", "nowhere.yml"}, nil, 2, "nowhere.yml"},
		{"an invalid suite", []string{"run", bad}, nil, 2, "bad.yml:3:8"},
		{"a topology for a cluster that has its own", []string{"run", "--uri", "mongodb://h/", "--topology", "single", file}, nil, 2, "--topology"},
		{"a known failure without a reason", []string{"run", "--known-failing", reasonless, file}, nil, 2, "reason"},
		{"a list of known failures that is not there", []string{"run", "--known-failing", "nowhere", file}, nil, 2, "nowhere"},
		{"valid suites", []string{"validate", file}, nil, 0, ""},
		{"an invalid suite is found by validate", []string{"validate", bad}, nil, 2, ""},
		{"validate with nothing", []string{"validate"}, nil, 2, "name a suite"},
		{"a schema", []string{"schema", "1.4"}, nil, 0, ""},
		{"a schema that is not known", []string{"schema", "1.99"}, nil, 2, "1.99"},
		{"two schemas", []string{"schema", "1.4", "1.5"}, nil, 2, "one version"},
		{"rules", []string{"explain"}, nil, 0, ""},
		{"a rule that is not there", []string{"explain", "R999"}, nil, 2, "R999"},
		{"a policy that is not there", []string{"explain", "--policy", "x"}, nil, 2, `"x"`},
		{"a story of unknown words", []string{"explain", "--try", "rain"}, nil, 2, "rain"},
		{"version", []string{"version"}, nil, 0, ""},
		{"--version as others spell it", []string{"--version"}, nil, 0, ""},
		{"version of what", []string{"version", "x"}, nil, 2, "no arguments"},
		{"help", []string{"help"}, nil, 0, ""},
		{"--help as others spell it", []string{"--help"}, nil, 0, ""},
		{"help for a command", []string{"help", "run"}, nil, 0, ""},
		{"help as a flag", []string{"run", "--help"}, nil, 0, ""},
		{"help for no command", []string{"help", "rum"}, nil, 2, `there is no command "rum"; did you mean run?`},
		{"help for two commands", []string{"help", "run", "serve"}, nil, 2, "one command at most"},
		{"completion", []string{"completion", "bash"}, nil, 0, ""},
		{"completion for no shell", []string{"completion", "dos"}, nil, 2, "bash"},
		{"serve on a port that is taken", []string{"serve"}, func(b *bench) {
			b.Serve = func(context.Context, embedded.Options) (Server, error) { return nil, errors.New("port taken") }
		}, 3, "port taken"},
		{"serve a certificate of nothing", []string{"serve", "--ca-file", "k"}, nil, 2, "needs --tls"},
		{"serve a version that nobody plays", []string{"serve", "--server-version", "3.0"}, nil, 2, "3.0"},
		{"serve with a user and no password", []string{"serve", "--user", "u"}, nil, 2, envPassword},
		{"standard output is closed", []string{"version"}, func(b *bench) { b.Stdout = closed{} }, 3, "standard output"},
		{"standard output breaks in a run", []string{"run", file}, func(b *bench) { b.Stdout = closed{} }, 3, "standard output"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			b := newBench()
			if r.change != nil {
				r.change(b)
			}
			if got := b.Main(context.Background(), r.args); got != r.code {
				t.Errorf("exit code %d, want %d\n%s", got, r.code, b.err.String())
			}
			if !strings.Contains(b.err.String(), r.err) {
				t.Errorf("standard error lacks %q:\n%s", r.err, b.err.String())
			}
			if r.code == ExitOK && b.err.Len() > 0 {
				t.Errorf("all is well, and yet: %s", b.err.String())
			}
		})
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestRunConfiguration(t *testing.T) {
	file := suiteFile(t)
	known := filepath.Join(t.TempDir(), "known")
	write(t, known, "first # a reason\n")
	b := newBench()
	// Flags stand before, between and after paths, with one dash and with two.
	code := b.Main(context.Background(), []string{"run", "-jobs=4", file, "--run", "fir", "--run", "sec", "--skip=b", "--fail-fast", "--timeout", "3s",
		"--shuffle", "42", "--count", "2", "--topology", "all", "--server-version", "4.2", "--members", "5", "--mongoses", "3",
		"--reseed", "always", "--known-failing", known, "--events", "-v"})
	if code != 0 {
		t.Fatal(b.err.String())
	}
	cfg := b.ran
	if cfg.Jobs != 4 || len(cfg.Filter.Run) != 2 || len(cfg.Filter.Skip) != 1 || !cfg.FailFast || cfg.Timeout != 3*time.Second ||
		*cfg.Shuffle != 42 || cfg.Count != 2 || !cfg.AllTopologies || cfg.Reseed != runner.ReseedAlways || len(cfg.KnownFailing) != 1 || !cfg.KeepEvents {
		t.Errorf("%+v", cfg)
	}
	want := deployment.EmbeddedOptions{Version: "4.2", Members: 5, Mongoses: 3}
	if diff := cmp.Diff(want, b.embedded); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	b = newBench()
	if b.Main(context.Background(), []string{"run", file}) != 0 || b.ran.Shuffle != nil || b.ran.AllTopologies || b.ran.KeepEvents || b.ran.Reseed != runner.ReseedAuto {
		t.Errorf("defaults: %+v", b.ran)
	}
	b = newBench()
	if b.Main(context.Background(), []string{"run", "--shuffle", file}) != 0 || b.ran.Shuffle == nil {
		t.Error("--shuffle alone draws a seed")
	}
	b = newBench()
	if b.Main(context.Background(), []string{"run", "--topology", "sharded", "-"}) != 0 || len(b.suites) != 1 || b.embedded.Topologies[0] != deployment.Sharded {
		t.Errorf("standard input: %v %s", b.suites, b.err.String())
	}
}

func TestFlagsEndAtTwoDashes(t *testing.T) {
	f := newFlags()
	v := f.toggle("v", "")
	paths, err := f.parse([]string{"a", "-v", "--", "-v", "--x"})
	if diff := cmp.Diff([]string{"a", "-v", "--x"}, paths); diff != "" || err != nil || !*v {
		t.Errorf("%v %v %s", err, *v, diff)
	}
	paths, err = newFlags().parse([]string{"-"})
	if len(paths) != 1 || paths[0] != "-" || err != nil {
		t.Errorf("%v %v", paths, err)
	}
}

// What is dropped is said before the run begins, and only for the suites that
// run; nothing is said of deployments of our own.
func TestAnnounceDrops(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", file})
	if want := "utr drops these collections of the deployment at h1:1,h2:2: db.coll\n"; b.before != want {
		t.Errorf("before the run: %q, want %q", b.before, want)
	}
	b = newBench()
	b.Main(context.Background(), []string{"run", "--uri", "mongodb://h1:1/", "--run", "nothing", file})
	if b.before != "" {
		t.Errorf("nothing runs, and yet %q", b.before)
	}
	b = newBench()
	b.Main(context.Background(), []string{"run", file})
	if b.before != "" {
		t.Errorf("our own deployment, and yet %q", b.before)
	}
	b = newBench()
	b.env[envURI] = "mongodb://h1:1/"
	b.Main(context.Background(), []string{"run", file})
	if b.cluster.URI != "mongodb://h1:1/" || b.before == "" {
		t.Errorf("the environment names the cluster: %+v", b.cluster)
	}
}

func TestDryRun(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	code := b.Main(context.Background(), []string{"run", "--dry-run", "--run", "second", "--uri", "mongodb://h/", file})
	want := "1 tests of 1 files would run, as far as their requirements are met:\n  " + file + ": second\nthese collections would be dropped:\n  db.coll\n"
	if diff := cmp.Diff(want, b.out.String()); code != 0 || diff != "" {
		t.Errorf("%d (-want +got)\n%s", code, diff)
	}
	if b.ran != nil || b.cluster.URI != "" {
		t.Error("a dry run touched something")
	}
}

// The command that a report gives for one test chooses exactly that test, on
// the same kind of deployment.
func TestRerun(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	b.Main(context.Background(), []string{"run", "--topology", "all", "--policy", "current", "--reseed", "always", "--members", "5", file})
	id := result.TestID{File: file, Suite: "the suite", Description: "first (a+b)", Deployment: "sharded 4.2"}
	again := b.ran.Rerun(id)
	want := []string{"utr", "run", "--policy", "current", "--reseed", "always", "--members", "5", "--topology", "sharded", "--server-version", "4.2"}
	if diff := cmp.Diff(want, again[:len(want)]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b = newBench()
	if code := b.Main(context.Background(), again[1:]); code != 0 {
		t.Fatalf("%v: %s", again, b.err.String())
	}
	var kept []string
	for _, s := range b.suites {
		for _, x := range s.Tests {
			if chooses(b.ran.Filter, s, x) {
				kept = append(kept, x.Description)
			}
		}
	}
	if diff := cmp.Diff([]string{"first (a+b)"}, kept); diff != "" {
		t.Errorf("chosen (-want +got)\n%s", diff)
	}
	if b.embedded.Topologies[0] != deployment.Sharded || b.embedded.Version != "4.2" || b.embedded.Members != 5 {
		t.Errorf("deployment %+v", b.embedded)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := newBench()
	b.during = cancel
	if code := b.Main(ctx, []string{"run", suiteFile(t)}); code != ExitBroken {
		t.Errorf("exit code %d", code)
	}
	want := "utr: interrupted: cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for 3s; a second signal quits at once\n"
	if b.err.String() != want {
		t.Errorf("standard error: %q", b.err.String())
	}
	if !strings.HasSuffix(b.out.String(), "interrupted: 0 of 0 tests ran\n2 passed, 0 failed, 0 skipped\n") {
		t.Error(b.out.String())
	}
}

// An interruption before anything runs says no more than that, whatever was
// waited for.
func TestInterruptEarly(t *testing.T) {
	endless, ends := io.Pipe()
	defer ends.Close()
	for _, r := range []struct {
		reason string
		args   []string
		change func(*bench, context.CancelFunc)
	}{
		{"run waits for standard input", []string{"run", "-"}, func(b *bench, cancel context.CancelFunc) { b.Stdin = reading{endless, cancel} }},
		{"validate waits for standard input", []string{"validate", "-"}, func(b *bench, cancel context.CancelFunc) { b.Stdin = reading{endless, cancel} }},
		{"the deployment does not answer", []string{"run", "--uri", "mongodb://h/", "-"}, func(b *bench, cancel context.CancelFunc) {
			b.Cluster = func(ctx context.Context, _ deployment.ClusterOptions) (deployment.Source, error) {
				cancel()
				<-ctx.Done()
				return nil, errors.New("server selection error: context canceled")
			}
		}},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		b := newBench()
		r.change(b, cancel)
		if code := b.Main(ctx, r.args); code != ExitBroken || b.err.String() != "utr: interrupted\n" {
			t.Errorf("%s: exit code %d, %q", r.reason, code, b.err.String())
		}
		cancel()
	}
}

// reading tells when it is read from.
type reading struct {
	io.Reader
	begun func()
}

func (r reading) Read(p []byte) (int, error) {
	r.begun()
	return r.Reader.Read(p)
}

// A reader that goes away ends the run, so that fail points do not stay on for
// a report that nobody sees; other commands end without a word.
func TestReaderGoesAway(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	b.Stdout = gone{}
	b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Failed}}}
	whole, ended := b.Run, false
	b.Run = func(ctx context.Context, suites []*specs.Suite, cfg runner.Config) (result.Summary, error) {
		s, err := whole(ctx, suites, cfg)
		ended = ctx.Err() != nil
		return s, err
	}
	if code := b.Main(context.Background(), []string{"run", file}); code != ExitBroken || !ended || !strings.Contains(b.err.String(), "the run was cut short") {
		t.Errorf("exit code %d, ended %v: %s", code, ended, b.err.String())
	}
	for _, command := range []string{"help", "version", "schema", "explain"} {
		b := newBench()
		b.Stdout = gone{}
		if code := b.Main(context.Background(), []string{command}); code != ExitBroken || b.err.Len() > 0 {
			t.Errorf("%s: exit code %d: %s", command, code, b.err.String())
		}
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

type server struct{ closed *bool }

func (s server) URI() string       { return "mongodb://user:hunter2@h:1,h:2/?replicaSet=rs" }
func (s server) SingleURI() string { return "mongodb://user:hunter2@h:1/" }
func (s server) CA() []byte        { return []byte("certificate") }
func (s server) Close() error      { *s.closed = true; return nil }

// A parameter that the server does not take is the caller's mistake.
func TestServeParameter(t *testing.T) {
	for _, row := range []struct {
		reason, parameter string
		code              int
	}{
		{"not in this version", "ingressRequestRateLimiterEnabled=true", ExitUsage},
		{"no value", "requireApiVersion", ExitUsage},
	} {
		b := newBench()
		b.Serve = func(ctx context.Context, o embedded.Options) (Server, error) { return embedded.Start(ctx, o) }
		if code := b.Main(context.Background(), []string{"serve", "--topology", "single", "--server-version", "8.0", "--set-parameter", row.parameter}); code != row.code {
			t.Errorf("%s: exit code %d: %s", row.reason, code, b.err.String())
		}
	}
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := newBench()
	b.env[envPassword] = "hunter2"
	closed, asked := false, embedded.Options{}
	b.Serve = func(_ context.Context, o embedded.Options) (Server, error) { asked = o; return server{&closed}, nil }
	ca, uri := filepath.Join(t.TempDir(), "a ca&100%.pem"), filepath.Join(t.TempDir(), "uri")
	named := "tlsCAFile=" + filepath.Dir(ca) + "/a%20ca%26100%25.pem"
	code := b.Main(ctx, []string{"serve", "--topology", "load-balanced", "--port", "27017", "--user", "user", "--server-version", "6.0",
		"--tls", "--ca-file", ca, "--uri-file", uri, "--set-parameter", "quiet=true", "--set-parameter", "logLevel=2",
		"--set-parameter", `ingressRequestRateLimiterApplicationExemptions={"appNames": ["a"]}`, "--set-parameter", "saslHostName=h=1"})
	if code != 0 || !closed {
		t.Fatalf("exit code %d, closed %v: %s", code, closed, b.err.String())
	}
	if want := "mongodb://***@h:1,h:2/?replicaSet=rs&" + named + "\nsingle mongodb://***@h:1/?" + named + "\n"; b.out.String() != want {
		t.Errorf("printed %q, want %q", b.out.String(), want)
	}
	if strings.Contains(b.err.String(), "hunter2") {
		t.Error(b.err.String())
	}
	want := embedded.Options{Topology: embedded.LoadBalanced, Version: "6.0", Members: 3, Mongoses: 2, Host: "127.0.0.1", TLS: true,
		Users: []embedded.User{{Name: "user", Password: "hunter2"}}, Ports: []int{27017, 27018, 27019, 27020},
		Parameters: bson.D{{Key: "quiet", Value: true}, {Key: "logLevel", Value: int32(2)},
			{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"a"}}}},
			{Key: "saslHostName", Value: "h=1"}}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for path, text := range map[string]string{ca: "certificate", uri: server{}.URI() + "&" + named + "\n"} {
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
}

// Without a file for it, no client can trust the certificate.
func TestServeCertificateOfNobody(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   []string
		want   bool
	}{
		{"TLS alone", []string{"--tls"}, true},
		{"TLS and a file", []string{"--tls", "--ca-file", filepath.Join(t.TempDir(), "ca")}, false},
		{"no TLS", nil, false},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b := newBench()
		closed := false
		b.Serve = func(context.Context, embedded.Options) (Server, error) { return server{&closed}, nil }
		code := b.Main(ctx, append([]string{"serve"}, r.args...))
		if told := strings.Contains(b.err.String(), "--ca-file FILE writes it"); code != 0 || told != r.want {
			t.Errorf("%s: exit code %d: %s", r.reason, code, b.err.String())
		}
	}
}

func TestValidateSortsAndSpeaksJSON(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yml"), "description: x\nschemaVersion: \"1.0\"\ntests: 3\n")
	write(t, filepath.Join(dir, "a.yml"), "description: 1\nschemaVersion: \"1.0\"\ntests: 3\n")
	b := newBench()
	if code := b.Main(context.Background(), []string{"validate", dir}); code != ExitUsage {
		t.Errorf("exit code %d", code)
	}
	var places []string
	for _, line := range strings.Split(strings.TrimSpace(b.out.String()), "\n") {
		places = append(places, strings.TrimPrefix(strings.SplitN(line, ": ", 2)[0], dir+string(filepath.Separator)))
	}
	if diff := cmp.Diff([]string{"a.yml:1:14", "a.yml:3:8", "b.yml:3:8", "0 valid, 2 invalid"}, places); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b = newBench()
	b.Main(context.Background(), []string{"validate", "--json", dir})
	lines := strings.Split(strings.TrimSpace(b.out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"line":1,"column":14`) || !strings.Contains(lines[0], `"severity":"error"`) {
		t.Error(b.out.String())
	}
}

func TestTerminal(t *testing.T) {
	file := suiteFile(t)
	for _, r := range []struct {
		reason            string
		terminal          bool
		noColor, kind     string
		progress, colored bool
	}{
		{"a pipe is quiet and plain", false, "", "xterm", false, false},
		{"a terminal has both", true, "", "xterm", true, true},
		{"NO_COLOR leaves the status line", true, "1", "xterm", true, false},
		{"a terminal that knows no sequences has neither", true, "", "dumb", false, false},
	} {
		b := newBench()
		b.env[envNoColor], b.env[envTerminal] = r.noColor, r.kind
		b.Terminal = func() (int, bool) { return 80, r.terminal }
		id := result.TestID{File: file, Description: "first"}
		b.notes = []result.Note{
			result.RunStarted{Total: 1},
			result.TestStarted{Test: id},
			result.TestFinished{Verdict: &result.Verdict{Test: id, Status: result.Failed}},
		}
		b.Main(context.Background(), []string{"run", file})
		out := b.out.String()
		if strings.Contains(out, "\r\x1b[K") != r.progress || strings.Contains(out, "\x1b[31m") != r.colored {
			t.Errorf("%s: %q", r.reason, out)
		}
	}
}

func TestReportFiles(t *testing.T) {
	file := suiteFile(t)
	b := newBench()
	b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Passed}}}
	records, units := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "r.xml")
	if code := b.Main(context.Background(), []string{"run", "--json", records, "--junit", units, file}); code != 0 {
		t.Fatal(b.err.String())
	}
	for path, part := range map[string]string{records: `"status":"passed"`, units: "<testsuites"} {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%v: %s", err, text)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		b = newBench()
		b.notes = []result.Note{result.TestFinished{Verdict: &result.Verdict{Status: result.Passed}}}
		if code := b.Main(context.Background(), []string{"run", "--json", "/dev/full", file}); code != ExitBroken {
			t.Errorf("a full disk gives exit code %d: %s", code, b.err.String())
		}
	}
}

// secretsRun lets every kind of note carry the secret.
func secretsRun(secret string) []result.Note {
	doc, _ := bson.Marshal(bson.D{{Key: "saslStart", Value: secret}, {Key: "deep", Value: bson.A{bson.D{{Key: secret, Value: bson.Binary{Data: []byte(secret)}}}}}})
	failure := &result.Error{Message: "auth with " + secret, CodeName: secret, Labels: []string{secret}, Server: secret, Kind: secret,
		Response: doc, WriteErrors: map[int]bson.Raw{0: doc}, WriteConcernErrors: []bson.Raw{doc}, Partial: bson.Raw(doc).Lookup("deep")}
	return []result.Note{
		result.DeploymentReady{Name: "d", Info: "mongodb://user:" + secret + "@h/"},
		result.TestFinished{Verdict: &result.Verdict{
			Status: result.Failed, Reason: "cannot reach mongodb://user:" + secret + "@h/",
			Mismatches: []result.Mismatch{{Path: "p", Message: secret, Want: secret, Got: secret, Diff: secret}},
			Operations: []result.OperationLog{{Name: "find", Outcome: result.Outcome{Err: failure, Server: secret, Value: bson.Raw(doc).Lookup("deep"),
				Decisions: []result.Decision{{Action: "send", Server: secret, Reason: secret, Deprioritized: []string{secret}}}}}},
			Clients: []result.ClientLog{{Client: "c", Events: []result.Event{
				{Type: result.CommandStarted, Command: &result.CommandEvent{Command: doc}},
				{Type: result.CommandFailed, Command: &result.CommandEvent{Failure: failure, Reply: doc}},
				{Type: result.PoolCleared, Pool: &result.PoolEvent{Err: secret}},
				{Type: result.ServerHeartbeatFailed, SDAM: &result.SDAMEvent{Err: secret, New: &result.TopologyState{Type: secret, Servers: []result.ServerState{{Address: secret}}}}},
			}}},
		}},
	}
}

// No output of any command holds a secret of a connection string, wherever it
// stands and whatever goes wrong.
func TestSecretsStayInside(t *testing.T) {
	file := suiteFile(t)
	uris := map[string]string{
		"password":       "mongodb://user:s3cr3t-pw@h:1/?replicaSet=rs",
		"escaped":        "mongodb://user:s3cr3t%2Fpw@h:1/",
		"srv":            "mongodb+srv://user:s3cr3t-pw@h/",
		"token":          "mongodb://h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:s3cr3t-pw",
		"key file":       "mongodb://h/?tlsCertificateKeyFilePassword=s3cr3t-pw",
		"proxy":          "mongodb://h/?proxyHost=p&proxyPassword=s3cr3t-pw",
		"an at sign":     "mongodb://user:s3cr3t@pw@h/",
		"an odd bracket": "mongodb://user:s3cr3t<pw>@h/",
	}
	for name, uri := range uris {
		t.Run(name, func(t *testing.T) {
			plain := "s3cr3t-pw"
			if p, ok := map[string]string{"escaped": "s3cr3t/pw", "an at sign": "s3cr3t@pw", "an odd bracket": "s3cr3t<pw>"}[name]; ok {
				plain = p
			}
			records, units := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "r.xml")
			var outputs []string
			collect := func(b *bench) {
				outputs = append(outputs, b.out.String(), b.err.String())
				for _, path := range []string{records, units} {
					if text, err := os.ReadFile(path); err == nil {
						outputs = append(outputs, string(text))
					}
				}
			}
			for _, args := range [][]string{
				{"run", "--uri", uri, "--single-uri", uri, "-v", "--events", "--json", records, "--junit", units, file},
				{"run", "--uri=" + uri, file},
				{"run", "--dry-run", "--uri", uri, file},
				{"run", "--jobs", uri, file},
				{"run", "--timeout", uri, file},
				{"run", "--uri", uri, "--topology", "single", file},
				{"run", "--engine", uri, file},
				{"run", uri}, {"validate", uri}, {"validate", "--json", uri}, {"explain", uri}, {"schema", uri}, {uri}, {"help", uri},
				{"run", "--" + uri, file},
			} {
				b := newBench()
				b.notes = secretsRun(plain)
				b.Main(context.Background(), args)
				collect(b)
			}
			b := newBench()
			b.env[envURI], b.env[envSingleURI] = uri, uri
			b.fails = errors.New("cannot reach " + uri + ": wrong password " + plain)
			b.Main(context.Background(), []string{"run", file})
			collect(b)
			b.Cluster = func(context.Context, deployment.ClusterOptions) (deployment.Source, error) {
				return nil, errors.New("bad: " + uri)
			}
			b.Main(context.Background(), []string{"run", file})
			collect(b)
			refused := name == "an at sign" || name == "token" // as connection strings that no driver takes
			if (b.ran == nil) != refused {
				t.Fatalf("refused: %v", b.ran == nil)
			}
			if b.ran != nil {
				outputs = append(outputs, strings.Join(b.ran.Rerun(result.TestID{File: file}), " "))
			}
			for _, o := range outputs {
				if i := strings.Index(o, "s3cr3t"); i >= 0 {
					t.Errorf("a secret is out: …%s…", o[max(0, i-60):min(len(o), i+40)])
				}
			}
		})
	}
}

func TestConnectionStringCannotBePrinted(t *testing.T) {
	c := connectionString{"mongodb://user:s3cr3t@h/"}
	text, _ := c.MarshalText()
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		b.WriteString(strings.ReplaceAll(fmt.Sprintf(verb, c), "\n", " "))
		b.WriteString(fmt.Sprintf(verb, []any{&c, map[string]any{"x": c}}))
	}
	if all := b.String() + string(text); strings.Contains(all, "s3cr3t") {
		t.Error(all)
	}
	if c.reveal() != "mongodb://user:s3cr3t@h/" {
		t.Error("it cannot be used either")
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("pw", "before ", " after")
	f.Add("p@w:/?", "mongodb://", "@h")
	f.Add("%41", "A", "A")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if secret == "" || strings.ContainsAny(secret, "?*") {
			t.Skip("no password, or one that ends a connection string or looks like our mark")
		}
		r := newRedactor("mongodb://user:" + secret + "@host/")
		if got := r.text(before + secret + after); strings.Contains(got, secret) && !strings.Contains(redactedFree(before, after), secret) {
			// The parts around may join with the mark to the secret again only
			// if the secret holds part of them.
			if !overlaps(secret, before, after) {
				t.Errorf("%q is in %q", secret, got)
			}
		}
	})
}

func redactedFree(parts ...string) string { return strings.Join(parts, "\x00") }

func overlaps(secret, before, after string) bool {
	return len(before) > 0 && strings.HasPrefix(secret, before[len(before)-1:]) || len(after) > 0 && strings.HasSuffix(secret, after[:1])
}

// docs/commands.md is made from the table; this test tells when it is stale.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), Markdown()); diff != "" {
		t.Errorf("docs/commands.md is stale: make generate (-page +table)\n%s", diff)
	}
}

func TestEveryCommandAndFlagIsExplained(t *testing.T) {
	for _, c := range commands() {
		if c.summary == "" || strings.HasSuffix(c.summary, ".") {
			t.Errorf("summary of %s: %q", c.name, c.summary)
		}
		f := newFlags()
		c.declare(f)
		shown := map[string]bool{}
		for _, r := range f.declared {
			shown[r.name] = true
			if r.summary == "" {
				t.Errorf("utr %s --%s has no summary", c.name, r.name)
			}
		}
		n := 0
		f.set.VisitAll(func(g *flag.Flag) {
			n++
			if !shown[g.Name] {
				t.Errorf("utr %s --%s is in no usage", c.name, g.Name)
			}
		})
		if n != len(f.declared) {
			t.Errorf("utr %s: %d flags, %d rows", c.name, n, len(f.declared))
		}
	}
}

// The examples of the table are command lines that parse.
func TestExamplesParse(t *testing.T) {
	for _, c := range commands() {
		for _, e := range c.examples {
			words := strings.Fields(strings.Split(strings.ReplaceAll(e.line, "'", ""), " >")[0])
			if words[0] != "utr" {
				continue
			}
			f := newFlags()
			command := find(words[1])
			command.declare(f)
			_, err := f.parse(words[2:])
			if command.verbatim {
				_, err = process.Parse(command.name == "mongos", words[2:], "")
			}
			if err != nil {
				t.Errorf("%s: %v", e.line, err)
			}
		}
	}
}

// The completion scripts name every command and flag, and shells can read
// them.
func TestCompletion(t *testing.T) {
	for shell, script := range map[string]string{"bash": bashCompletion(), "zsh": zshCompletion(), "fish": fishCompletion()} {
		for _, c := range commands() {
			for _, r := range c.rows() {
				spelled := r.long()
				if shell == "fish" {
					spelled = "-l " + r.name
					if len(r.name) == 1 {
						spelled = "-s " + r.name
					}
				}
				if !strings.Contains(script, spelled) {
					t.Errorf("%s: utr %s %s is missing", shell, c.name, spelled)
				}
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its script is not read", shell)
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s cannot read its script: %v\n%s", shell, err, out)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	ask := exec.Command(bash, "-c", bashCompletion()+"\nCOMP_WORDS=(utr run --topology ''); COMP_CWORD=3; _utr; printf '%s ' \"${COMPREPLY[@]}\"")
	out, err := ask.CombinedOutput()
	if string(out) != "auto all single replicaset sharded load-balanced " || err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestExplain(t *testing.T) {
	for _, r := range []struct {
		reason string
		args   []string
		want   []string
	}{
		{"all rules of the current policy", nil, []string{"R1 ", "W10 ", "B6 ", "R51 "}},
		{"a rule by its number", []string{"R40"}, []string{"In a sharded cluster the server that failed is deprioritized."}},
		{"the policies", []string{"--list"}, []string{"retryable-reads@2024"}},
		{"a story that ends well", []string{"--topology", "sharded", "--try", "network", "--try", "ok"},
			[]string{"select, deprioritized a", "return result [R6]"}},
		{"a story that ends badly", []string{"--try", "91", "--try", "11600"}, []string{"return error of attempt 2: server error 11600"}},
		{"retries switched off", []string{"--no-retry", "--try", "network"}, []string{"return error of attempt 1: network error", "R30"}},
		{"no server for the retry", []string{"--try", "network", "--try", "selection"}, []string{"return error of attempt 1: network error", "R3]"}},
		{"a broken handshake", []string{"--try", "handshake,91", "--try", "ok"}, []string{"R13", "return result"}},
		{"an overloaded server", []string{"--try", "462,SystemOverloadedError,RetryableError", "--try", "ok"}, []string{"back off", "return result"}},
		{"a token bucket", []string{"--policy", "client-backpressure@2025-12", "--try", "462,SystemOverloadedError,RetryableError", "--try", "ok"},
			[]string{"back off 50ms, 999 tokens left", "return result, 1000 tokens left"}},
		{"the first revision", []string{"--policy", "retryable-writes@2018-03-14", "--operation", "insert", "--try", "64", "--try", "ok"},
			[]string{"W12", "return result"}},
		{"more tries than attempts", []string{"--try", "ok", "--try", "ok"}, []string{"1 more --try"}},
		{"fewer tries than attempts", []string{"--try", "network"}, []string{"the story ends here"}},
	} {
		b := newBench()
		if code := b.Main(context.Background(), append([]string{"explain"}, r.args...)); code != 0 {
			t.Errorf("%s: %s", r.reason, b.err.String())
		}
		for _, w := range r.want {
			if !strings.Contains(b.out.String(), w) {
				t.Errorf("%s: %q is missing in\n%s", r.reason, w, b.out.String())
			}
		}
	}
}
