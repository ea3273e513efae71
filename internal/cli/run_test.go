package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/source"
	"github.com/unified-test-runner/utr/specs"
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
	if b.utr("run --known-failing known.txt suite.yml"); len(b.ran.KnownFailing) != 1 || b.ran.KnownFailing[0].Reason != "a reason" {
		t.Errorf("known failures: %+v", b.ran.KnownFailing)
	}
	if b.utr("run --shuffle suite.yml"); b.ran.Shuffle == nil {
		t.Error("--shuffle alone does not draw a seed")
	}
	if b.utr("run --topology sharded -"); len(b.suites) != 1 || b.suites[0].File != stdinName {
		t.Errorf("standard input: %v %s", b.suites, b.err.String())
	}
	for line, want := range map[string]string{
		"run --orchestration http://h:1 --cluster secure.json --orchestration-files /files":           "/files/ca.pem",
		"DRIVERS_TOOLS=/tools run --orchestration http://h:1 --tls":                                   "/tools/.evergreen/x509gen/ca.pem",
		"run --orchestration http://h:1 --topology single --tls --auth on --orchestration-files /ssl": "/ssl/.evergreen/x509gen/ca.pem",
	} {
		b := newBench(t)
		write(t, "secure.json", `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`)
		b.expect(t, "certificates", line+" suite.yml", 0, "")
		if ca := b.opened.(deployment.OrchestrationOptions).Clusters[0].Configuration.CAFile(); ca != want {
			t.Errorf("%s: the authority is %q, want %q", line, ca, want)
		}
	}
	f := newFlags()
	v := f.toggle("v", "")
	paths, err := f.parse([]string{"a", "-", "-v", "--", "-v", "--x"})
	if d := cmp.Diff([]string{"a", "-", "-v", "--x"}, paths); d != "" || err != nil || !*v {
		t.Errorf("flags end at two dashes: %v %v %s", err, *v, d)
	}
	verdicts := []*result.Verdict{{Test: result.TestID{Description: "x", Cell: "a"}}, {Test: result.TestID{Description: "y", Cell: "b"}}}
	for cell, want := range map[string]int{"a": 1, "c": 2, "": 2} {
		if got := len(ofCell(verdicts, cell)); got != want {
			t.Errorf("durations of the cell %q: %d verdicts, want %d; those of other cells are better than none", cell, got, want)
		}
	}
}

// A run announces what it drops before it begins, if the deployment belongs to
// somebody else.
func TestAnnouncements(t *testing.T) {
	b := newBench(t)
	const drops = "utr drops these collections of the deployment at h1:1,h2:2: db.coll\n"
	for _, r := range []struct{ reason, line, want string }{
		{"a cluster", "run --uri mongodb://h1:1/ suite.yml", drops},
		{"a cluster of a service", "run --orchestration http://h --cluster id:a suite.yml", drops},
		{"a suite that is left out drops nothing", "run --uri mongodb://h1:1/ --run only suite.yml only.yml", ""},
		{"an embedded deployment", "run suite.yml", ""},
		{"local binaries", "run --local /r suite.yml", ""},
		{"a cluster that a service makes", "run --orchestration http://h suite.yml", ""},
	} {
		write(t, "only.yml", `{description: x, schemaVersion: "1.0", tests: [{description: only, operations: []}]}`)
		if b.utr(r.line); b.before != r.want || b.ran == nil {
			t.Errorf("%s: before the run: %q, want %q", r.reason, b.before, r.want)
		}
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
		if d := cmp.Diff(want, again); d != "" {
			t.Errorf("%s (-want +got)\n%s", r.reason, d)
		}
		if code := b.Main(b.ctx, again[1:]); code != 0 {
			t.Errorf("%s: %q: exit code %d\n%s", r.reason, again, code, b.err.String())
			continue
		}
		var kept []string
		for _, s := range b.suites {
			for _, x := range s.Tests {
				if chooses(b.ran.Filter, s, x) {
					kept = append(kept, x.Description)
				}
			}
		}
		if !slices.Equal(kept, []string{"first (a+b)"}) {
			t.Errorf("%s: it chooses %q", r.reason, kept)
		}
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
		if got := quotePattern(r.description); got != r.want {
			t.Errorf("%s: %s, want %s", r.reason, got, r.want)
		}
		var p patternsFlag
		if err := p.Set("^" + quotePattern(r.description) + "$"); err != nil || !p[0].MatchString(r.description) {
			t.Errorf("%s: %v does not find the test (%v)", r.reason, p, err)
		}
	}
	for _, r := range []struct{ reason, file, want string }{
		{"a file named like a flag", "-v.yml", "-v.yml"},
		{"standard input", stdinName, "-"},
	} {
		again := declareRun(newFlags()).rerun(&call{program: &Program{}})(result.TestID{File: r.file, Description: "x"})
		f := newFlags()
		declareRun(f)
		if paths, err := f.parse(again[2:]); err != nil || len(paths) != 1 || paths[0] != r.want {
			t.Errorf("%s: %q reads back as %q, %v", r.reason, again, paths, err)
		}
	}
}

// An interruption is acknowledged at once. If nothing has run, that is all.
func TestInterrupt(t *testing.T) {
	endless, ends := io.Pipe()
	defer ends.Close()
	const running = "utr: interrupted: cleaning up (fail points, sessions, clients), which a deployment that does not answer can hold up for 3s; a second signal quits at once\n"
	for _, r := range []struct {
		reason, line string
		change       func(*bench, context.CancelFunc)
		out, err     string
	}{
		{"tests run", "run suite.yml", func(b *bench, cancel context.CancelFunc) { b.during = cancel },
			"interrupted: 0 of 0 tests ran\n2 passed, 0 failed, 0 skipped\n", running},
		{"run waits for standard input", "run -", func(b *bench, cancel context.CancelFunc) { b.Stdin = reading{endless, cancel} }, "", "utr: interrupted\n"},
		{"validate waits for standard input", "validate -", func(b *bench, cancel context.CancelFunc) { b.Stdin = reading{endless, cancel} }, "", "utr: interrupted\n"},
		{"the deployment does not answer", "run --uri mongodb://h/ -",
			func(b *bench, cancel context.CancelFunc) {
				b.arrive, b.opening = cancel, errors.New("server selection error")
			}, "", "utr: interrupted\n"},
	} {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.ctx = ctx
		r.change(b, cancel)
		if code := b.utr(r.line); code != ExitBroken || b.err.String() != r.err || b.out.String() != r.out {
			t.Errorf("%s: exit code %d\n%q\n%q", r.reason, code, b.out.String(), b.err.String())
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

// If nobody reads its output any more, a run ends, so that fail points do not
// stay on for a report that nobody sees; other commands end silently.
func TestReaderGoesAway(t *testing.T) {
	b := newBench(t)
	b.Stdout = broken{syscall.EPIPE}
	b.notes = []result.Note{finished("a", result.Failed)}
	whole, ended := b.Run, false
	b.Run = func(ctx context.Context, suites []*specs.Suite, cfg runner.Config) (result.Summary, error) {
		s, err := whole(ctx, suites, cfg)
		ended = ctx.Err() != nil
		return s, err
	}
	if b.expect(t, "run", "run suite.yml", ExitBroken, ""); !ended || !strings.Contains(b.err.String(), "the run was cut short") {
		t.Errorf("ended %v: %s", ended, b.err.String())
	}
	for _, command := range []string{"help", "version", "schema", "explain"} {
		if b.expect(t, command, command, ExitBroken, ""); b.err.Len() > 0 {
			t.Errorf("%s: %s", command, b.err.String())
		}
	}
}

// What standard output looks like depends on the terminal and on GitHub Actions.
func TestTerminal(t *testing.T) {
	failed := finished("first", result.Failed)
	failed.Verdict.Position = source.Position{File: "f.yml", Line: 3, Column: 4}
	for _, r := range []struct {
		reason, line                 string
		terminal                     bool
		progress, colored, annotated bool
	}{
		{"a pipe", "TERM=xterm run suite.yml", false, false, false, false},
		{"a terminal", "TERM=xterm run suite.yml", true, true, true, false},
		{"NO_COLOR leaves the status line", "NO_COLOR=1 TERM=xterm run suite.yml", true, true, false, false},
		{"a terminal that knows no sequences", "TERM=dumb run suite.yml", true, false, false, false},
		{"a job of GitHub", "GITHUB_ACTIONS=true run suite.yml", false, false, false, true},
		{"a variable of another value", "GITHUB_ACTIONS=false run suite.yml", false, false, false, false},
		{"requested annotations", "run --annotations suite.yml", false, false, false, true},
		{"refused annotations", "GITHUB_ACTIONS=true run --annotations=false suite.yml", false, false, false, false},
	} {
		b := newBench(t)
		b.Terminal = func() (int, bool) { return 80, r.terminal }
		b.notes = []result.Note{result.RunStarted{Total: 1}, result.TestStarted{Test: failed.Verdict.Test}, failed}
		b.utr(r.line)
		out := b.out.String()
		if strings.Contains(out, "\r\x1b[K") != r.progress || strings.Contains(out, "\x1b[31m") != r.colored ||
			strings.Contains(out, "::error file=f.yml,line=3,col=4,title=") != r.annotated || !strings.HasSuffix(out, " skipped\n") {
			t.Errorf("%s: %q", r.reason, out)
		}
	}
}

// The logs of local servers stay where tests went wrong, but not after an
// interruption.
func TestLocalLogsAreKept(t *testing.T) {
	for _, r := range []struct {
		reason string
		change func(*bench)
		want   bool
	}{
		{"all well", func(*bench) {}, false},
		{"a test failed", func(b *bench) { b.summary.Failed = 1 }, true},
		{"a test broke", func(b *bench) { b.summary.Broken = 1 }, true},
		{"the run broke", func(b *bench) { b.fails = errors.New("no") }, true},
		{"the run has a problem", func(b *bench) { b.summary.Problems = []string{"x"} }, true},
		{"interrupted", func(b *bench) {
			b.summary.Failed = 1
			b.ctx, b.during = context.WithCancel(b.ctx)
		}, false},
	} {
		b := newBench(t)
		r.change(b)
		if b.utr("run --local /r suite.yml"); b.kept != r.want || b.ran == nil {
			t.Errorf("%s: kept %t", r.reason, b.kept)
		}
	}
}
