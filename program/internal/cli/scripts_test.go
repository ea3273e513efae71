package cli

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/engine/driver"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/program/internal/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

//go:embed testdata/kinds.yml
var kinds string

//go:embed testdata/gone.yml
var gone string

//go:embed testdata/on.yml
var on string

// testFiles are the files of the scripts, besides those in their archives.
var testFiles = map[string]string{
	"bad.yml":   "description: x\nschemaVersion: \"1.0\"\ntests: 3\n",
	"only.yml":  `{description: x, schemaVersion: "1.0", tests: [{description: only, operations: []}]}`,
	"twin.json": `{"description": "x", "schemaVersion": "1.0", "tests": [{"description": "a", "operations": []}]}`,
	"asking.yml": strings.NewReplacer(`"1.0"`, `"1.1"`, "tests:\n",
		"runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n").Replace(suite),
	"armed.yml": `{description: x, schemaVersion: "1.0", createEntities: [{client: {id: c}}], tests: [{description: a, operations: [
		{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: hangSomewhere, mode: "off"}}}]}]}`,
	"known.txt":   "first # a reason\n",
	"bare.txt":    "pattern\n",
	"good.json":   jsonReport(result.RunStarted{}, finished("a", result.Passed), result.RunFinished{}),
	"failed.json": jsonReport(result.RunStarted{}, finished("a", result.Failed), result.RunFinished{}),
	"other.json":  jsonReport(result.RunStarted{}, finished("b", result.Passed), result.RunFinished{}),
	"stopped.json": jsonReport(result.RunStarted{}, notRun("a"),
		result.RunFinished{Summary: result.Summary{Skipped: 1, Interrupted: true,
			Breaks: []result.Break{{Reason: "interrupted"}}}}),
	"unfinished.json": string(report.Unfinished(report.JSON(), result.RunStarted{})),
	"shard.json":      jsonReport(result.RunStarted{Shard: "1/2"}, finished("a", result.Passed), result.RunFinished{}),
	"past.json": jsonReport(result.RunStarted{}, finished("a", result.Passed), finished("b", result.Skipped),
		result.RunFinished{}),
	"none.xml":     "<testsuites/>\n",
	"earlier.json": "<xml>",
	"mine.json":    minimal,
	"half.json":    `{"password": "hunter22"}`,
	"secure.json":  `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`,
	"failing.yml": strings.NewReplacer("MODE", "{times: 1}", "ERROR",
		"errorCode: 50, errorLabels: [RetryableWriteError]").Replace(failing),
	"kinds.yml": kinds, "gone.yml": gone, "on.yml": on,
	"night.yml": "clusters: [{embedded: single}]\nsuites: suite.yml\n",
}

// conditions are the settings of a run: "when …".
var conditions = map[string]func(*bench){
	"a test fails":                     func(b *bench) { b.summary.Failed = 1 },
	"a test is flaky":                  func(b *bench) { b.summary.Flaky = 1 },
	"a test breaks":                    func(b *bench) { b.summary.Broken = 1 },
	"the run has a problem":            func(b *bench) { b.summary.Problems = []string{"x"} },
	"the run cannot begin":             func(b *bench) { b.fails = errors.New("no test commands") },
	"the deployment cannot be opened":  func(b *bench) { b.opening = errors.New("no mongod") },
	"the deployment cannot be stopped": func(b *bench) { b.closing = errors.New("stuck") },
	"another run has the deployment": func(b *bench) {
		b.opening = &lock.HeldError{Hosts: []string{"h1:1"},
			Holder: far}
	},
	"standard output is closed": func(b *bench) { b.Stdout = broken{errors.New("closed")} },
	"the reader closes standard output": func(b *bench) {
		b.Stdout, b.notes = broken{syscall.EPIPE},
			[]result.Note{finished("a", result.Failed)}
	},
	"the command is interrupted":        func(b *bench) { b.interrupt() },
	"the run is interrupted":            func(b *bench) { b.during = b.interrupt },
	"nothing arrives on standard input": func(b *bench) { b.Stdin = reading{b} },
	"the deployment does not answer": func(b *bench) {
		b.arrive, b.opening = b.interrupt,
			errors.New("server selection error")
	},
	"the service reports a secret": func(b *bench) {
		b.during = func() {
			b.opened.(deployment.OrchestrationOptions).Note("mongodb://bob:hunter22@h is out, hunter22 and s3cret as well")
		}
	},
	"a report has a failure": func(b *bench) { b.notes = failureNotes() },
	"a report has a failure, on a terminal": func(b *bench) {
		b.notes, b.Terminal = failureNotes(),
			func() (int, bool) { return 80, true }
	},
	"an earlier run left a cluster": func(b *bench) {
		b.addLeftovers(b.t, ledger.Entry{Kind: ledger.Cluster, URL: "http://127.0.0.1:1/v1", Resource: "servers",
			ID: "utr-x"})
	},
	"a collection contains documents of others": func(b *bench) {
		b.foreign = &runner.ForeignError{Hosts: []string{"h1:1"}, Namespaces: []string{"db.coll"}}
	},
	"a test passes": func(b *bench) { b.notes = []result.Note{finished("a", result.Passed)} },
	"the server is killed during a test": func(b *bench) {
		d, err := embedded.Start(b.t.Context(), embedded.Options{})
		testkit.Check(b.t, err)
		b.at(d.URI())
		run := b.Run
		b.Run = func(ctx context.Context, suites []*specs.Suite, cfg runner.Config) (result.Summary, error) {
			notify := cfg.Notify
			cfg.Notify = func(n result.Note) {
				if _, started := n.(result.TestStarted); started {
					time.AfterFunc(time.Second, func() { _ = d.Close() })
				}
				notify(n)
			}
			return run(ctx, suites, cfg)
		}
	},
	"a replica set runs at h1:1": func(b *bench) { b.serve() },
	"a replica set with documents of a user runs at h1:1": func(b *bench) {
		_, client := b.serve()
		for _, name := range []string{"db.coll", "utr-prose.documents"} {
			database, collection, _ := strings.Cut(name, ".")
			_, err := client.Database(database).Collection(collection).InsertOne(b.t.Context(), bson.D{{Key: "_id", Value: "mine"}})
			testkit.Check(b.t, err)
		}
	},
	"a replica set that another run uses runs at h1:1": func(b *bench) {
		d, _ := b.serve()
		held, err := deployment.OpenCluster(b.t.Context(),
			deployment.ClusterOptions{URI: d.URI(), Lock: &lock.Options{Name: "another run"}, Note: func(string) {}})
		testkit.Check(b.t, err)
		b.t.Cleanup(func() { testkit.Check(b.t, held.Close()) })
	},
	"a replica set whose user may only read runs at h1:1": func(b *bench) {
		d, client := b.serve(embedded.User{Name: "root", Password: "pw"})
		testkit.Check(b.t, client.Database("admin").RunCommand(b.t.Context(), bson.D{{Key: "createUser", Value: "ann"},
			{Key: "pwd", Value: "pw"}, {Key: "roles", Value: bson.A{"readAnyDatabase", "clusterMonitor"}}}).Err())
		b.at(strings.Replace(d.URI(), "root:", "ann:", 1))
	},
	"a terminal has 78 columns": func(b *bench) { b.Terminal = func() (int, bool) { return 78, true } },
	"the servers are newer":     func(b *bench) { b.version = [3]int{8, 0, 5} },
	"the servers do not answer": func(b *bench) { b.opening = errors.New("no answer") },
	"utr was updated":           func(b *bench) { b.Build = func() (string, error) { return "utr 2", nil } },
	"an engine that only finds is poor": func(b *bench) {
		testkit.Check(b.t, b.AddEngine("poor", func() (engine.Engine, error) { return limitedEngine{driver.New()}, nil }))
	},
	"the lock is lost": func(b *bench) {
		b.during = func() {
			b.opened.(deployment.ClusterOptions).Lock.Lost(&lock.LostError{Hosts: []string{"h1:1"}, Holder: &far})
		}
	},
}

// serve starts a replica set that takes the place of each existing deployment, and returns a client of it.
func (b *bench) serve(users ...embedded.User) (*embedded.Deployment, *mongo.Client) {
	b.t.Helper()
	d := embedded.StartT(b.t, embedded.Options{Topology: embedded.ReplicaSet, Members: 1, Users: users})
	b.at(d.URI())
	client, err := mongo.Connect(options.Client().ApplyURI(d.URI()))
	testkit.Check(b.t, err)
	b.t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return d, client
}

// at replaces the connection string of each existing deployment.
func (b *bench) at(uri string) {
	open := New().Open
	b.Open = func(ctx context.Context, options any) (deployment.Source, error) {
		o := options.(deployment.ClusterOptions)
		o.URI = uri
		return open(ctx, o)
	}
}

func notRun(name string) result.TestFinished {
	n := finished(name, result.Skipped)
	n.Verdict.SkipKind, n.Verdict.Reason = result.SkipNotRun, "interrupted"
	return n
}

var far = lock.Holder{Host: "far", PID: 7}

func failureNotes() []result.Note {
	failed := finished("first", result.Failed)
	failed.Verdict.Position = result.Position{File: "f.yml", Line: 3, Column: 4}
	return []result.Note{result.RunStarted{Total: 1}, result.TestStarted{Test: failed.Verdict.Test}, failed}
}

// limitedEngine is an engine that only supports find, and lists it twice.
type limitedEngine struct{ engine.Engine }

func (limitedEngine) Describe(context.Context) (engine.Description, error) {
	return engine.Description{Name: "poor", Version: "1", SchemaVersion: "1.4",
		Operations: []string{"collection.find", "collection.find"}}, nil
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// reading is an input without data.
type reading struct{ *bench }

func (r reading) Read([]byte) (int, error) {
	r.interrupt()
	<-r.t.Context().Done()
	return 0, io.EOF
}

func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// serial plays scripts one after another, because each has its own working directory.
type serial struct {
	*testing.T
	bubble bool // time passes only while all goroutines wait
}

func (serial) Parallel()     {}
func (serial) Verbose() bool { return testing.Verbose() }
func (s serial) Run(name string, play func(testscript.T)) {
	one := func(t *testing.T) { play(serial{T: t}) }
	s.T.Run(name, func(t *testing.T) {
		if s.bubble {
			synctest.Test(t, one)
		} else {
			one(t)
		}
	})
}

// Scripts are command lines and their results, in the form of testscript, in a folder for each topic. They have these
// commands more. All but when add to the file output, which is compared with the file want: lines on standard error
// begin with "!", and the exit code is 0 unless it is shown. In flags, output also has the fields that reach the runner
// and the deployment. UTR_UPDATE=1 updates the files want that cmp compares.
//
//	utr ARGUMENT...     run utr. "! utr" expects that it fails. "< FILE" is its standard input
//	when CONDITION      a setting of the run
//	cat FILE, ls        print a file, or the names of those that are not in testFiles
//	like output want    compare, with … in want for any text
//
// In night, cells of a matrix do what plays says, in a bubble. The output of utr also has the cells that ran.
//
//	plays CELL WHAT...  what a cell does
//	cells ARGUMENT...   run utr, and add only the cells that ran
func TestScripts(t *testing.T) {
	topics, err := filepath.Glob("testdata/scripts/*")
	testkit.Check(t, err)
	testkit.Equal(t, "there are scripts", len(topics) > 0, true)
	for _, dir := range topics {
		topic := filepath.Base(dir)
		dir, err := filepath.Abs(dir)
		testkit.Check(t, err)
		t.Run(topic, func(t *testing.T) {
			testscript.RunT(serial{t, topic == "night"}, testscript.Params{Dir: dir, UpdateScripts: os.Getenv("UTR_UPDATE") != "",
				Setup: func(e *testscript.Env) error { return begin(e, topic) },
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"utr": inScript(func(s *script, ts *testscript.TestScript, neg bool, args []string) {
						s.show(s.scene(s.t, args, topic == "flags"))
						if s.rerunOn != nil {
							s.show(s.rerun(s.t, *s.rerunOn))
						}
						if s.night != nil {
							s.showCells("")
						}
						if failed := s.code != 0; failed != neg {
							ts.Fatalf("exit code %d", s.code)
						}
					}),
					"when": inScript(func(s *script, ts *testscript.TestScript, _ bool, args []string) {
						what := strings.Join(args, " ")
						var m Machine
						if on, is := strings.CutPrefix(what, "a test ran"); is {
							on = strings.TrimPrefix(on, " on ")
							s.rerunOn = &on
						} else if n, _ := fmt.Sscanf(what, "a machine has %d cores and %d files", &m.Cores, &m.Files); n > 0 {
							s.Machine = func() Machine { return m }
						} else if conditions[what] == nil {
							ts.Fatalf("unknown condition %q", what)
						} else {
							conditions[what](s.bench)
						}
					}),
					"plays": inScript(func(s *script, _ *testscript.TestScript, _ bool, args []string) {
						s.night.plays[args[0]] = s.night.playOf(args[1:])
					}),
					"cells": inScript(func(s *script, _ *testscript.TestScript, _ bool, args []string) {
						s.scene(s.t, args, false)
						s.showCells("ran nothing")
					}),
					"cat": inScript(func(s *script, ts *testscript.TestScript, _ bool, args []string) {
						s.show(ts.ReadFile(args[0]) + "\n")
					}),
					"ls": inScript(func(s *script, _ *testscript.TestScript, _ bool, _ []string) {
						files := contentsOf(s.t, ".")
						maps.DeleteFunc(files, func(name, _ string) bool {
							return testFiles[name] != "" || name == "output" || name == "want"
						})
						s.show(strings.Join(slices.Sorted(maps.Keys(files)), " ") + "\n")
					}),
					"like": func(ts *testscript.TestScript, _ bool, args []string) {
						if got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1]); !testkit.Agrees(got, want) {
							ts.Fatalf("got:\n%s\nwant:\n%s", got, want)
						}
					},
				}})
		})
	}
}

// script is a script that is being played.
type script struct {
	*bench
	night   *nightBench
	rerunOn *string // the deployment on which a test ran, whose command is shown
	said    string
}

func begin(e *testscript.Env, topic string) error {
	t := e.T().(serial).T
	s := &script{bench: newBench(t)}
	files := maps.Clone(testFiles)
	files["suite.yml"] = suite
	switch topic {
	case "compare", "engines", "audit", "failures":
		s.bench = realBench(t)
		testkit.Check(t, os.Symlink(self(t), filepath.Join(e.WorkDir, adapterName)))
	case "night":
		s.night = newNight(t, threeCells)
		s.bench, files["night.yml"] = s.night.bench, threeCells
	}
	t.Chdir(e.WorkDir)
	s.ctx, s.interrupt = context.WithCancel(t.Context())
	for name, text := range files {
		if _, err := os.Stat(name); err != nil {
			write(t, name, text)
		}
	}
	e.Values["script"] = s
	return os.Mkdir("empty", 0o755)
}

// inScript returns a command of scripts.
func inScript(command func(*script, *testscript.TestScript, bool, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		s := ts.Value("script").(*script)
		s.Getenv = func(name string) string { return cmp.Or(ts.Getenv(name), s.env[name]) }
		command(s, ts, neg, args)
	}
}

// show adds to the output, without empty lines.
func (s *script) show(text string) {
	s.said = testkit.Dense(s.said + "\n" + text)
	write(s.t, "output", strings.TrimPrefix(s.said+"\n", "\n"))
}

// showCells adds the cells that ran since the last call.
func (s *script) showCells(none string) {
	s.show(cmp.Or(strings.Join(mapSlice(s.night.ran(), func(cell string) string { return "ran " + cell + "\n" }), ""), none))
	s.night.runs = nil
	s.ctx, s.interrupt = context.WithCancel(s.t.Context())
}

// scene runs a command line and returns its output and effects.
func (b *bench) scene(t testing.TB, args []string, verbose bool) string {
	line, before := strings.Join(args, " "), contentsOf(t, ".")
	if i := slices.Index(args, "<"); i >= 0 {
		b.Stdin = strings.NewReader(testkit.Read(t, args[i+1]))
		args = args[:i]
	}
	code := b.play(args)
	b.code = code
	var output strings.Builder
	errs := func(text string) {
		for line := range strings.Lines(text) {
			output.WriteString("! " + line)
		}
	}
	errs(b.before)
	if verbose && b.opened != nil {
		output.WriteString("opens " + fields(b.opened) + "\n")
	}
	if verbose && b.ran != nil {
		config := *b.ran
		config.Notify, config.Rerun = nil, nil
		output.WriteString("runs " + fields(config) + "\n")
	}
	output.WriteString(b.out.String())
	errs(strings.TrimPrefix(b.err.String(), b.before))
	if n := len(b.ledger(t)); n > 0 {
		fmt.Fprintf(&output, "\nledger entries: %d\n", n)
	}
	if b.keptLogs {
		output.WriteString("\nkeeps the logs")
	}
	if b.cutShort {
		output.WriteString("\ncut short")
	}
	if code != 0 {
		fmt.Fprintf(&output, "\nexit %d\n", code)
	}
	if code == ExitUsage {
		testkit.Equal(t, "it ran, or opened a deployment", fmt.Sprint(b.ran != nil, b.opened != nil), "false false")
		if !strings.Contains(line, "check --fix") { // which corrects what it can, also beside an invalid suite
			testkit.Same(t, "files changed", contentsOf(t, "."), before)
		}
	}
	lacks(t, line, b.out.String()+b.err.String(), "hunter22", "geheim", "s3cret")
	return strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(output.String())
}

// rerun returns the command that a report shows for the first test, and checks that it selects exactly this test.
func (b *bench) rerun(t testing.TB, where string) string {
	command := b.ran.Rerun(result.TestID{File: "suite.yml", Suite: "the suite", Description: "first (a+b)",
		Deployment: where})
	testkit.Equal(t, "the exit code of "+report.Quote(command), b.Main(b.ctx, command[1:]), 0)
	var selected []string
	for _, x := range b.suites[0].Tests {
		if b.ran.Filter.Allows(b.suites[0], x) {
			selected = append(selected, x.Description)
		}
	}
	return fmt.Sprintf("rerun: %s\nselects %s\n", report.Quote(command), strings.Join(selected, ", "))
}
