package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/source"
)

// Flags and environment reach the runner and the deployment.
func TestFlags(t *testing.T) {
	const (
		once = "Jobs=1 Count=1"
		same = "Members=3 Mongoses=2"
		play = "Version=auto " + same
		real = "Members=3 Shards=1 Mongoses=2 Jobs=1 Ledger={} Secret Note"
		hers = " Ledger={} Lock={Lost} Secret Note"
	)
	for _, r := range []struct{ reason, line, run, opened string }{
		{"defaults", "run suite.yml", once, play},
		{"flags before, between and after paths, with one dash and with two",
			"run -jobs=4 suite.yml --run fir --run sec --skip=b --fail-fast --timeout 3s --count 2 --reseed always --events -v --retry-failed 2 --cell c --server-api 1",
			"Jobs=4 Filter={Run=[fir sec] Skip=[b]} FailFast=true Timeout=3s Count=2 Reseed=always Retries=2 ServerAPI=1 Cell=c KeepEvents=true", play},
		{"an order by its seed", "run --shuffle 42 suite.yml", "Jobs=1 Shuffle=42 Count=1", play},
		{"a shard, whose parts take equally long", "run --shard 2/3 --durations past.json suite.yml", once + " Shard={Index=2 Count=3 Durations=map[" + runner.ShardKey(finished("a", "").Verdict.Test) + ":1s]}", play},
		{"all topologies", "run --topology all suite.yml", once + " AllTopologies=true", same},
		{"all topologies, each of a version that will do", "run --topology all --server-version auto suite.yml", once + " AllTopologies=true", play},
		{"one version", "run --server-version 7.0 suite.yml", once, "Version=7.0 " + same},
		{"one embedded deployment", "run --topology sharded --server-version 4.2 --members 5 --mongoses 3 --tls --auth on suite.yml", once,
			"Topologies=[sharded] Version=4.2 Members=5 Mongoses=3 TLS=true Auth=true Ledger={}"},
		{"no access control", "run --auth off suite.yml", once, play + " Auth=false"},
		{"a cluster of one's own", "run --uri mongodb://h/ suite.yml", once, "URI=mongodb://h/ Lock={Lost} Note"},
		{"a cluster of the environment", "UTR_URI=mongodb://h/ UTR_SINGLE_URI=mongodb://i/ run suite.yml", once, "URI=mongodb://h/ SingleURI=mongodb://i/ Lock={Lost} Note"},
		{"a lock that is waited for", "run --uri mongodb://h/ --wait-for-lock 90s --lock-name 'job 7' --server-api 1 suite.yml",
			once + " ServerAPI=1", "URI=mongodb://h/ ServerAPI=1 Lock={Name=job 7 Wait=1m30s Lost} Note"},
		{"fail points of the suites are known to the cluster", "run --uri mongodb://h/ armed.yml", once, "URI=mongodb://h/ Lock={Lost} FailPoints=[hangSomewhere] Note"},
		{"a dry run opens nothing", "run --uri mongodb://h/ --dry-run suite.yml", "", ""},
		{"binaries", "UTR_URI=mongodb://elsewhere/ run --local /r suite.yml", once, "Where=/r " + real},
		{"everything about binaries",
			"run --local /r --topology sharded --members 5 --mongoses 4 --local-shards 2 --jobs 3 --tls --auth on suite.yml", "Jobs=3 Count=1",
			"Where=/r Topologies=[sharded] Members=5 Shards=2 Mongoses=4 TLS=true Auth=true Jobs=3 Ledger={} Secret Note"},
		{"binaries in all topologies, with no access control", "run --local mongod --topology all --auth off suite.yml", once + " AllTopologies=true",
			"Where=mongod Members=3 Shards=1 Mongoses=2 Auth=false Jobs=1 Ledger={} Secret Note"},
		{"a suite that asks for server parameters", "run --local /r asking.yml", once, "Where=/r Members=3 Shards=1 Mongoses=2 Jobs=1 Parameters=true Ledger={} Secret Note"},
		{"a service makes one cluster of each kind", "UTR_URI=mongodb://elsewhere/ run --orchestration http://h:1 suite.yml", "Jobs=3 Count=1",
			"URL=http://h:1 Clusters=[replicaset sharded single] Each=1" + hers},
		{"one kind", "run --orchestration http://h:1 --topology sharded suite.yml", once, "URL=http://h:1 Clusters=[sharded] Each=1 Topology=sharded" + hers},
		{"load balancers are made on request", "run --orchestration http://h:1 --topology load-balanced --clusters 2 --uri-option appName=a --server-api 1 suite.yml",
			"Jobs=2 Count=1 ServerAPI=1", "URL=http://h:1 Clusters=[load-balanced] Each=2 Topology=load-balanced URIOptions=[appName=a] ServerAPI=1" + hers},
		{"each test on every kind", "run --orchestration http://h:1 --topology all suite.yml", "Jobs=3 Count=1 AllTopologies=true",
			"URL=http://h:1 Clusters=[replicaset sharded single] Each=1" + hers},
		{"a kind with access control and TLS", "run --orchestration http://h:1 --auth on --tls --topology single suite.yml", once,
			"URL=http://h:1 Clusters=[single-auth-tls] Each=1 Topology=single" + hers},
		{"clusters by id, file and preset", "run --orchestration http://h:1 --cluster id:a --cluster mine.json --cluster sharded-auth --clusters 3 suite.yml",
			"Jobs=9 Count=1", "URL=http://h:1 Clusters=[id:a mine.json sharded-auth] Each=3" + hers},
		{"as many jobs as requested", "run --orchestration http://h:1 --clusters 3 --jobs 2 suite.yml", "Jobs=2 Count=1",
			"URL=http://h:1 Clusters=[replicaset sharded single] Each=3" + hers},
	} {
		b := newBench(t)
		write(t, "past.json", jsonReport(result.RunStarted{}, finished("a", result.Passed), finished("b", result.Skipped), result.RunFinished{}))
		write(t, "mine.json", minimal)
		write(t, "asking.yml", strings.NewReplacer(`"1.0"`, `"1.1"`, "tests:\n", "runOnRequirements: [{serverParameters: {enableTestCommands: true}}]\ntests:\n").Replace(suite))
		write(t, "armed.yml", `{description: x, schemaVersion: "1.0", createEntities: [{client: {id: c}}], tests: [{description: a, operations: [
			{name: failPoint, object: testRunner, arguments: {client: c, failPoint: {configureFailPoint: hangSomewhere, mode: "off"}}}]}]}`)
		b.expect(t, r.reason, r.line, ExitOK, "")
		if b.ran != nil {
			b.ran.Notify, b.ran.Rerun = nil, nil
		}
		if d := cmp.Diff([]string{r.run, r.opened}, []string{fields(b.ran), fields(b.opened)}); d != "" {
			t.Errorf("%s (-want +got)\n%s", r.reason, d)
		}
	}
}

// minimal is a cluster for an orchestration service.
const minimal = `{"id": "repl0", "members": [{}], "login": "bob", "password": "hunter22"}`

// Some flags reach what fields does not show.
func TestFlagsBeyondFields(t *testing.T) {
	b := newBench(t)
	write(t, "known.txt", "first # a reason\n")
	b.utr("run --known-failing known.txt suite.yml")
	testkit.Equal(t, "known failures", len(b.ran.KnownFailing) == 1 && b.ran.KnownFailing[0].Reason == "a reason", true)
	b.utr("run --shuffle suite.yml")
	testkit.Equal(t, "--shuffle alone draws a seed", b.ran.Shuffle != nil, true)
	b.utr("run --topology sharded -")
	testkit.Equal(t, "standard input", b.suites[0].File, stdinName)
	write(t, "secure.json", `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`)
	for line, want := range map[string]string{
		"run --orchestration http://h:1 --cluster secure.json --orchestration-files /files":           "/files/ca.pem",
		"DRIVERS_TOOLS=/tools run --orchestration http://h:1 --tls":                                   "/tools/.evergreen/x509gen/ca.pem",
		"run --orchestration http://h:1 --topology single --tls --auth on --orchestration-files /ssl": "/ssl/.evergreen/x509gen/ca.pem",
	} {
		b.env = map[string]string{ledger.EnvDir: b.env[ledger.EnvDir]}
		b.expect(t, "certificates", line+" suite.yml", 0, "")
		testkit.Equal(t, line, b.opened.(deployment.OrchestrationOptions).Clusters[0].Configuration.CAFile(), want)
	}
	f := newFlags()
	v := f.toggle("v", "")
	paths, err := f.parse([]string{"a", "-", "-v", "--", "-v", "--x"})
	testkit.Equal(t, "flags end at two dashes", fmt.Sprint(paths, err, *v), "[a - -v --x] <nil> true")
	verdicts := []*result.Verdict{{Test: result.TestID{Description: "x", Cell: "a"}}, {Test: result.TestID{Description: "y", Cell: "b"}}}
	for cell, want := range map[string]int{"a": 1, "c": 2, "": 2} { // durations of other cells are better than none
		testkit.Equal(t, "verdicts for the durations of cell "+cell, len(ofCell(verdicts, cell)), want)
	}
}

// A run announces what it drops before it begins, if the deployment belongs to
// somebody else.
func TestAnnouncements(t *testing.T) {
	b := newBench(t)
	write(t, "only.yml", `{description: x, schemaVersion: "1.0", tests: [{description: only, operations: []}]}`)
	const drops = "utr drops these collections of the deployment at h1:1,h2:2: db.coll\n"
	for _, r := range []struct{ reason, line, want string }{
		{"a cluster", "run --uri mongodb://h1:1/ suite.yml", drops},
		{"a cluster of a service", "run --orchestration http://h --cluster id:a suite.yml", drops},
		{"a suite that is left out drops nothing", "run --uri mongodb://h1:1/ --run only suite.yml only.yml", ""},
		{"an embedded deployment", "run suite.yml", ""},
		{"local binaries", "run --local /r suite.yml", ""},
		{"a cluster that a service makes", "run --orchestration http://h suite.yml", ""},
	} {
		b.expect(t, r.reason, r.line, 0, "")
		testkit.Equal(t, r.reason, b.before, r.want)
	}
	b.expect(t, "a dry run", "run --dry-run --run second --uri mongodb://h/ suite.yml", 0,
		"1 tests of 1 files would run, as far as their requirements are met:\n  suite.yml: second\nthese collections would be dropped:\n  db.coll\n")
}

// The command that a report gives for one test chooses exactly that test, on
// the same kind of deployment. Secrets are left for the reader to fill in.
func TestRerun(t *testing.T) {
	const first = ` --run '^suite\.yml: first \(a\+b\)$' suite.yml`
	for _, r := range []struct{ reason, line, deployment, want string }{
		{"nothing is set", "run suite.yml", "single 8.0", "--topology single --server-version 8.0"},
		{"an unknown deployment", "run suite.yml", "", ""},
		{"the deployment of the test", "run --topology all --policy current --reseed always --members 5 --backoff none suite.yml", "sharded 4.2",
			"--policy current --backoff none --reseed always --members 5 --topology sharded --server-version 4.2"},
		{"settings", "run --tls --auth=off --server-api 1 --uri-option compressors=zlib --uri-option appName=a=b suite.yml", "",
			"--auth off --server-api 1 --tls --uri-option compressors=zlib --uri-option appName=a=b"},
		{"a service", "run --orchestration http://ann:s3cret@h:8889 --cluster single --cluster id:x --orchestration-version 8.0 suite.yml", "single 8.0",
			"--orchestration http://***@h:8889 --orchestration-version 8.0 --cluster single --cluster id:x --topology single"},
		{"binaries", "run --local /r --local-shards 2 --members 1 suite.yml", "sharded 8.0", "--members 1 --local /r --local-shards 2 --topology sharded"},
		{"a cluster", "run --uri mongodb://me:geheim@h1/ suite.yml", "sharded 8.0", "--uri mongodb://***@h1/"},
		{"the environment will name the cluster again", "UTR_URI=mongodb://me:geheim@h1/ run suite.yml", "sharded 8.0", ""},
		{"a secret among the settings", "run --uri-option tlsCertificateKeyFilePassword=geheim suite.yml", "", "--uri-option tlsCertificateKeyFilePassword=***"},
	} {
		b := newBench(t)
		b.expect(t, r.reason, r.line, 0, "")
		again := b.ran.Rerun(result.TestID{File: "suite.yml", Suite: "the suite", Description: "first (a+b)", Deployment: r.deployment})
		want, _ := split(strings.TrimSpace("utr run "+r.want) + first)
		testkit.Equal(t, r.reason, fmt.Sprintf("%q", again), fmt.Sprintf("%q", want))
		testkit.Equal(t, r.reason+": its exit code", b.Main(b.ctx, again[1:]), 0)
		var kept []string
		for _, x := range b.suites[0].Tests {
			if chooses(b.ran.Filter, b.suites[0], x) {
				kept = append(kept, x.Description)
			}
		}
		testkit.Equal(t, r.reason+": it chooses", fmt.Sprintf("%q", kept), `["first (a+b)"]`)
	}
}

// The pattern for a test finds it, whatever its description holds, and cannot
// steer a terminal.
func TestRerunQuotes(t *testing.T) {
	for _, r := range []struct{ reason, description, want string }{
		{"operators of regular expressions", `(a|b)* \d [x] $y`, `\(a\|b\)\* \\d \[x\] \$y`},
		{"other scripts", "ünï ☃", "ünï ☃"},
		{"a new line, a tab and an escape", "a\nb\tc\x1b[31m", `a\x{a}b\x{9}c\x{1b}\[31m`},
		{"the replacement character", "\uFFFD", `\x{fffd}`},
		{"a no-break space", "a\u00a0b\u2028c", "a\u00a0b" + `\x{2028}c`},
	} {
		testkit.Equal(t, r.reason, quotePattern(r.description), r.want)
		var p patternsFlag
		if err := p.Set("^" + quotePattern(r.description) + "$"); err != nil || !p[0].MatchString(r.description) {
			t.Errorf("%s: %v does not find the test (%v)", r.reason, p, err)
		}
	}
	for file, want := range map[string]string{"-v.yml": "-v.yml", stdinName: "-"} {
		again := declareRun(newFlags()).rerun(&call{program: &Program{}})(result.TestID{File: file, Description: "x"})
		f := newFlags()
		declareRun(f)
		paths, err := f.parse(again[2:])
		testkit.Check(t, err)
		testkit.Equal(t, fmt.Sprintf("%q reads back as", again), paths, []string{want})
	}
}

// An interruption is acknowledged at once. If nothing has run, that is all. If
// nobody reads the output any more, a run ends, so that fail points do not stay
// on for a report that nobody sees; other commands end silently.
func TestInterrupt(t *testing.T) {
	endless, ends := io.Pipe()
	defer ends.Close()
	const alone = "utr: interrupted\n"
	waits := func(b *bench, cancel context.CancelFunc) { b.Stdin = reading{endless, cancel} }
	gone := func(b *bench, _ context.CancelFunc) {
		b.Stdout, b.notes = broken{syscall.EPIPE}, []result.Note{finished("a", result.Failed)}
	}
	for _, r := range []struct {
		reason, line string
		change       func(*bench, context.CancelFunc)
		out, err     string
		cut          bool // the run, short
	}{
		{"tests run", "run suite.yml", func(b *bench, cancel context.CancelFunc) { b.during = cancel },
			"interrupted: 0 of 0 tests ran\n2 passed, 0 failed, 0 skipped\n",
			"utr: interrupted: cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for 3s; " +
				"a second signal quits at once\n", true},
		{"run waits for standard input", "run -", waits, "", alone, false},
		{"validate waits for standard input", "validate -", waits, "", alone, false},
		{"the deployment does not answer", "run --uri mongodb://h/ -", func(b *bench, cancel context.CancelFunc) {
			b.arrive, b.opening = cancel, errors.New("server selection error")
		}, "", alone, false},
		{"nobody reads what a run prints", "run suite.yml", gone, "", "utr: nobody reads the report any more: the run was cut short\n", true},
		{"nobody reads the help", "help", gone, "", "", false},
		{"nobody reads the version", "version", gone, "", "", false},
		{"nobody reads a schema", "schema", gone, "", "", false},
		{"nobody reads an explanation", "explain", gone, "", "", false},
	} {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.ctx = ctx
		r.change(b, cancel)
		if code := b.utr(r.line); code != ExitBroken || b.err.String() != r.err || b.out.String() != r.out || b.cut != r.cut {
			t.Errorf("%s: exit code %d, cut short %t\n%q\n%q", r.reason, code, b.cut, b.out.String(), b.err.String())
		}
		cancel()
	}
}

// reading calls a function when it is read from.
type reading struct {
	io.Reader
	begun func()
}

func (r reading) Read(p []byte) (int, error) {
	r.begun()
	return r.Reader.Read(p)
}

// What standard output looks like depends on the terminal and on GitHub Actions.
func TestTerminal(t *testing.T) {
	failed := finished("first", result.Failed)
	failed.Verdict.Position = source.Position{File: "f.yml", Line: 3, Column: 4}
	looks := map[string]string{"progress": "\r\x1b[K", "color": "\x1b[31m", "annotations": "::error file=f.yml,line=3,col=4,title="}
	for _, r := range []struct {
		reason, line string
		terminal     bool
		want         string
	}{
		{"a pipe", "TERM=xterm run suite.yml", false, ""},
		{"a terminal", "TERM=xterm run suite.yml", true, "color progress"},
		{"NO_COLOR leaves the status line", "NO_COLOR=1 TERM=xterm run suite.yml", true, "progress"},
		{"a terminal that knows no sequences", "TERM=dumb run suite.yml", true, ""},
		{"a job of GitHub", "GITHUB_ACTIONS=true run suite.yml", false, "annotations"},
		{"a variable of another value", "GITHUB_ACTIONS=false run suite.yml", false, ""},
		{"requested annotations", "run --annotations suite.yml", false, "annotations"},
		{"refused annotations", "GITHUB_ACTIONS=true run --annotations=false suite.yml", false, ""},
	} {
		b := newBench(t)
		b.Terminal = func() (int, bool) { return 80, r.terminal }
		b.notes = []result.Note{result.RunStarted{Total: 1}, result.TestStarted{Test: failed.Verdict.Test}, failed}
		b.expect(t, r.reason, r.line, 0, " skipped\n")
		var got []string
		for _, name := range slices.Sorted(maps.Keys(looks)) {
			if strings.Contains(b.out.String(), looks[name]) {
				got = append(got, name)
			}
		}
		testkit.Equal(t, r.reason, strings.Join(got, " "), r.want)
	}
}

// How a run ends decides what becomes of an earlier report, of the lock's entry
// in the ledger, and of the logs of local servers.
func TestWhatARunLeaves(t *testing.T) {
	no := errors.New("no")
	for _, r := range []struct {
		reason string
		change func(*bench)
		left   string // of the earlier report, the lock and the logs
	}{
		{"all well", func(*bench) {}, ""},
		{"a test failed", func(b *bench) { b.summary.Failed = 1 }, "logs"},
		{"a test broke", func(b *bench) { b.summary.Broken = 1 }, "logs"},
		{"the run has a problem", func(b *bench) { b.summary.Problems = []string{"x"} }, "logs"},
		{"the run cannot begin", func(b *bench) { b.fails, b.notes = no, nil }, "logs report"},
		{"the deployment cannot be opened", func(b *bench) { b.opening = no }, "report"},
		{"the deployment is in use", func(b *bench) { b.opening = &deployment.HeldError{} }, "report"},
		{"the lock cannot be removed", func(b *bench) { b.closing = no }, "lock"},
		{"the runner panics", func(b *bench) { b.during = func() { panic("a fault of the runner") } }, "report"},
		{"interrupted", func(b *bench) {
			b.summary.Failed = 1
			b.ctx, b.during = context.WithCancel(b.ctx)
		}, ""},
	} {
		var left []string
		for _, where := range []string{"--uri mongodb://u:s3cret@h1:1/", "--local /r"} {
			b := newBench(t)
			b.notes = []result.Note{finished("a", result.Passed)}
			write(t, "r.json", "earlier")
			testkit.Check(t, os.Chmod("r.json", 0o600))
			r.change(b)
			during := "earlier"
			locked := func() int {
				for _, text := range b.ledger(t) {
					testkit.Equal(t, r.reason+": the lock is remembered without its password", says(text, "mongodb://***@h1:1/") && !says(text, "s3cret"), true)
				}
				return len(b.ledger(t))
			}
			b.arrive = func() {
				testkit.Equal(t, r.reason+": locks before the deployment opens", locked(), strings.Count(where, "uri"))
			}
			inside := b.during
			b.during = func() {
				if during = read(t, "r.json"); inside != nil {
					inside()
				}
			}
			func() {
				defer func() { _ = recover() }()
				b.utr("run --json r.json " + where + " suite.yml")
			}()
			testkit.Equal(t, r.reason+": the report during the run", during, "earlier")
			about, err := os.Stat("r.json")
			testkit.Check(t, err)
			testkit.Equal(t, r.reason+": its mode", about.Mode().Perm(), fs.FileMode(0o600))
			testkit.Equal(t, r.reason+": the folder", slices.Sorted(maps.Keys(contentsOf(t, "."))), "[r.json suite.yml]")
			for what, is := range map[string]bool{"report": read(t, "r.json") == "earlier", "lock": locked() > 0, "logs": b.kept} {
				if is {
					left = append(left, what)
				}
			}
		}
		slices.Sort(left)
		testkit.Equal(t, r.reason, slices.Compact(left), strings.Fields(r.left))
	}
}
