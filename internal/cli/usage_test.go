package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/testkit"
	"github.com/unified-test-runner/utr/result"
)

// usageFiles are the files that command lines below name.
func usageFiles(t *testing.T) {
	for name, text := range map[string]string{
		"bad.yml":      "description: x\nschemaVersion: \"1.0\"\ntests: 3\n",
		"twin.json":    `{"description": "x", "schemaVersion": "1.0", "tests": [{"description": "a", "operations": []}]}`,
		"known.txt":    "first # a reason\n",
		"bare.txt":     "pattern\n",
		"good.json":    jsonReport(result.RunStarted{}, finished("a", result.Passed), result.RunFinished{}),
		"failed.json":  jsonReport(result.RunStarted{}, finished("a", result.Failed), result.RunFinished{}),
		"other.json":   jsonReport(result.RunStarted{}, finished("b", result.Passed), result.RunFinished{}),
		"shard.json":   jsonReport(result.RunStarted{Shard: "1/2"}, finished("a", result.Passed), result.RunFinished{}),
		"none.xml":     "<testsuites/>\n",
		"half.json":    `{"password": "hunter22"}`,
		"secure.json":  `{"members": [{}], "sslParams": {"sslCAFile": "ABSOLUTE_PATH_REPLACEMENT_TOKEN/ca.pem"}}`,
		"night.yml":    "clusters: [{embedded: single}]\nsuites: suite.yml\n",
		"earlier.json": "<xml>",
	} {
		write(t, name, text)
	}
	testkit.Check(t, os.Mkdir("empty", 0o755))
}

// Each mistake in a command line is reported in words, before anything is
// opened, run or written.
func TestUsage(t *testing.T) {
	b := newBench(t)
	usageFiles(t)
	before := contentsOf(t, ".")
	for _, r := range []struct{ reason, lines, want string }{
		{"no command", "", "usage: utr"},
		{"a misspelt command", "rum", `there is no command "rum"; did you mean run?`},
		{"a flag before the command", "--jobs 2 run suite.yml", "flags such as --jobs follow it"},
		{"a misspelt flag", "run --jbos 2 suite.yml", "run: there is no flag --jbos; did you mean --jobs?\nutr help run tells more"},
		{"a switch that is neither on nor off", "run --events=maybe suite.yml", "--events"},
		{"a seed in letters", "run --shuffle=abc suite.yml", `--shuffle "abc": it must be a number`},
		{"a count in letters", "run --jobs two suite.yml", `--jobs "two": it must be a number`},
		{"a flag without its value", "run suite.yml --jobs", "--jobs needs a value"},
		{"zero jobs, although two follow", "run --jobs 0 --jobs 2 suite.yml", "at least 1"},
		{"an unknown topology", "run --topology ring suite.yml", "one of auto, all, single"},
		{"an unknown version", "run --server-version new suite.yml", "--server-version"},
		{"a version without load balancers", "run --topology load-balanced --server-version 4.2 suite.yml", "came with 5.0"},
		{"a broken pattern", "run --run '(' suite.yml", "run"},
		{"a timeout below zero", "run --timeout -1s suite.yml", `--timeout "-1s": it must be longer than nothing`},
		{"a timeout without a unit", "run --timeout 5 suite.yml", "a length of time such as 30s"},
		{"zero repetitions", "run --count 0 suite.yml", `--count "0": it must be at least 1`},
		{"51 members or routers", "run --members 51 suite.yml\nserve --mongoses 51", "at most 50"},
		{"a report without a name", "run --json '' suite.yml", `--json "": it needs the name of a file`},
		{"a report on standard output, which has one", "run --junit - suite.yml", "- is none"},
		{"a report with the name of a suite", "run --json suite.yml suite.yml", "its name is that of a suite"},
		{"a report over a suite in JSON", "run --json twin.json twin.json", "written over the suite"},
		{"an empty path", "run ''", "a path is empty"},
		{"a connection string of another scheme", "run --uri nonsense suite.yml", "--uri: connection string must start"},
		{"the same in the environment", "UTR_URI=nonsense run suite.yml", "$UTR_URI: connection string must start"},
		{"options of a driver that exclude each other", "UTR_URI= run --uri 'mongodb://h/?loadBalanced=true&replicaSet=r' suite.yml", "--uri: "},
		{"an empty connection string does not mean an embedded deployment", "run --uri '' suite.yml", "--uri is empty"},
		{"a load balancer without its deployment", "run --single-uri mongodb://h/ suite.yml", "goes with --uri"},
		{"a topology for a deployment that has one", "run --uri mongodb://h/ --topology single suite.yml", "--topology"},
		{"the same in the environment", "UTR_URI=mongodb://h/ run --topology single suite.yml", "$UTR_URI"},
		{"TLS, which the connection string decides", "UTR_URI= run --tls --uri mongodb://h/ suite.yml", "--tls chooses an embedded deployment"},
		{"access control, which the connection string decides", "run --auth on --uri mongodb://h/ suite.yml", "--auth chooses an embedded deployment"},
		{"a URI option without a value", "run --uri-option zlib suite.yml", "it must be NAME=VALUE"},
		{"a URI option with a value of another type", "run --uri-option maxPoolSize=many suite.yml", "--uri-option"},
		{"an unknown version of the Stable API", "run --server-api 2 suite.yml", "--server-api"},
		{"a cell on all topologies", "run --cell c --topology all suite.yml", "one verdict for each test"},
		{"an unknown way to back off", "run --backoff some suite.yml", "one of real, none"},
		{"a pattern that no test matches", "run --run nothing suite.yml", `the run pattern "nothing" matches no test`},
		{"every test is skipped", "run --run first --skip first suite.yml\nrun --dry-run --skip . suite.yml", "leave no test"},
		{"an unknown engine", "run --engine steam suite.yml\ncompare --engine drivel --engine reference suite.yml", ", only driver, reference"},
		{"no such policy", "run --policy none suite.yml\ncompare --engine reference:none --engine reference suite.yml", "no policy has this name"},
		{"no suite", "run\nvalidate", "name a suite"},
		{"a missing suite", "run nowhere.yml", "nowhere.yml"},
		{"an invalid suite", "run bad.yml\ncompare bad.yml", "bad.yml:3:8"},
		{"a folder without suites", "run empty", "no suite found in"},
		{"a known failure without a reason", "run --known-failing bare.txt suite.yml", "reason"},
		{"a missing list of known failures", "run --known-failing nowhere suite.yml", "nowhere"},
		{"a shard beyond the last", "run --shard 3/2 suite.yml", `--shard "3/2": of 2 parts there is no number 3`},
		{"an empty shard", "run --shard '' suite.yml", "such as 2/5"},
		{"durations without a shard", "run --durations good.json suite.yml\nmatrix night.yml --durations x", "goes with --shard"},
		{"not a report", "diff good.json none.xml\nmerge none.xml\nrun --shard 1/2 --durations none.xml suite.yml", "none.xml:1: no record of a test"},

		{"earlier reports for no page", "run --earlier good.json suite.yml", "--earlier goes with --html"},
		{"a report over an earlier one", "run --html x.html --earlier good.json --json good.json suite.yml", "--json would be written over the earlier report"},
		{"an earlier report that is not a report", "run --html x.html --earlier earlier.json suite.yml", "earlier.json:1: no record of a test"},
		{"a missing earlier report", "run --html x.html --earlier gone.json suite.yml", "gone.json: no such file"},
		{"a folder of reports in which one is not a report", "run --html x.html --earlier . suite.yml", "earlier.json:1: no record of a test"},

		{"an empty release", "run --local '' suite.yml", "--local is empty"},
		{"a version for binaries, which have one", "run --local /r --server-version 8.0 suite.yml", "the binaries have the version that they have"},
		{"binaries and a cluster", "run --local /r --uri mongodb://h/ suite.yml", "--local and --uri both say where to run"},
		{"binaries and an orchestration service", "run --local /r --orchestration http://h:1 suite.yml", "--local and --orchestration both say where to run"},
		{"shards without binaries", "run --local-shards 2 suite.yml", "goes with --local"},
		{"zero shards", "run --local /r --local-shards 0 suite.yml", "at least 1"},

		{"a service without a scheme", "run --orchestration h:8889 suite.yml", "--orchestration: it must begin with http:// or https://"},
		{"a cluster without a service", "run --cluster single suite.yml", "--cluster goes with --orchestration"},
		{"a service and a cluster of one's own", "run --orchestration http://h --uri mongodb://h suite.yml", "--orchestration and --uri both say where to run"},
		{"an embedded version on a service", "run --orchestration http://h --server-version 8.0 suite.yml", "--server-version chooses an embedded deployment"},
		{"embedded members on a service", "run --orchestration http://h --members 5 suite.yml", "--members chooses an embedded deployment"},
		{"access control of a cluster that decides itself", "run --orchestration http://h --cluster single --auth on suite.yml", "--auth goes without --cluster"},
		{"a misspelt preset", "run --orchestration http://h --cluster replicset suite.yml", "there is no such preset or file; did you mean replicaset?"},
		{"a missing configuration", "run --orchestration http://h --cluster ./nowhere.json suite.yml", "nowhere.json: no such file"},
		{"a configuration without servers", "run --orchestration http://h --cluster half.json suite.yml", "it is no configuration of mongo-orchestration"},
		{"an empty id", "run --orchestration http://h --cluster id: suite.yml", "it needs the id of a cluster"},
		{"certificates in an unknown folder", "run --orchestration http://h --cluster secure.json suite.yml", "say by --orchestration-files DIR"},
		{"zero clusters", "run --orchestration http://h --clusters 0 suite.yml", "it must be at least 1"},

		{"compare nothing", "compare", "name suites, or --generate N"},
		{"compare suites and schedules", "compare --generate 5 suite.yml", "name no path with it"},
		{"a seed without schedules", "compare --seed 5 suite.yml", "go with --generate"},
		{"known failures of schedules", "compare --generate 5 --known-failing known.txt", "reads none"},
		{"compare one engine", "compare --engine reference suite.yml", "two engines are compared, and 1 are named"},
		{"compare tests that nothing matches", "compare --run nothing suite.yml", "nothing"},

		{"a difference between one report", "diff good.json", "name two reports"},
		{"a missing report", "diff nowhere good.json", "nowhere"},
		{"merge nothing", "merge", "name the reports"},
		{"a merged report over one of its parts", "merge --json good.json good.json", "written over the report"},

		{"no matrix, and two of them", "matrix\nmatrix night.yml other.yml", "name one file"},
		{"a missing matrix", "matrix nowhere.yml", "nowhere.yml"},
		{"no cell has the name", "matrix night.yml --only nothing", "--only: no cell matches"},
		{"half a shard", "matrix night.yml --shard 1", `--shard "1"`},
		{"one file twice", "run --json r --junit ./r suite.yml\nmatrix night.yml --tap x --junit x\nrun --badge r --html r suite.yml", "write to the same file"},
		{"a variable that the matrix does not use", "matrix night.yml --set A=b", "--set A: the file has no ${A}"},
		{"a variable without a value", "matrix night.yml --set A", "it must be NAME=VALUE"},

		{"an unknown schema", "schema 1.99", "1.99"},
		{"two schemas", "schema 1.4 1.5", "one version"},
		{"an unknown rule", "explain R999", "R999"},
		{"a rule and a story", "explain R1 --try ok", "not both"},
		{"explain an unknown policy", "explain --policy x", `"x"`},
		{"a misspelt operation", "explain --operation isnert --try ok", `there is no operation "isnert"; did you mean insert?`},
		{"an operation that is none", "explain --operation ping --try ok", "any other command is a runCommand"},
		{"a story in unknown words", "explain --try rain", "rain"},
		{"a path for a command that takes none", "version x\nserve x", "no arguments"},
		{"help for a misspelt command", "help rum", `there is no command "rum"; did you mean run?`},
		{"help for two commands", "help run serve", "one command at most"},
		{"completion for an unknown shell", "completion dos", "bash"},
		{"a certificate without TLS", "serve --ca-file k", "needs --tls"},
		{"serve an unknown version", "serve --server-version 3.0", "3.0"},
		{"a user without a password", "serve --user u", envPassword},
		{"a port beyond the last", "serve --port 65536", "at most 65535"},
		{"ports that go beyond the last", "serve --port 65534", "there are no 3 ports from there to 65535"},
		{"clean a path", "clean all", "one word too many"},
		{"what clean cannot connect to", "clean --uri localhost\nclean --uri=\nclean --uri mongodb://ann:hunter22@@h/", "--uri"},
		{"an unknown flag of clean", "clean --everything", "--everything"},
		{"a release in no folder, and in two", "release\nrelease a b", "name one folder"},
		{"a release of an unknown version", "release a --server-version 3.6", "it must be one of"},

		{"not one experiment that is known", "experiment\nexperiment underload\nexperiment overload overload", "overload"},
		{"an unknown policy of an experiment", "experiment overload --policy hope", "final"},
		{"too many clients", "experiment overload --clients 100000000", "clients"},
		{"a short experiment", "experiment overload --duration 1s", "duration"},
		{"a rejection that costs more than an operation", "experiment overload --rejection-cost 101", "at most 100"},
		{"an experiment's report over a suite", "experiment overload --json suite.yml", "suite"},
	} {
		for line := range strings.SplitSeq(r.lines, "\n") {
			b.expect(t, r.reason, line, ExitUsage, r.want)
			if b.out.Len() > 0 || b.ran != nil || b.opened != nil || strings.Contains(b.err.String(), "hunter22") {
				t.Errorf("%s: it ran %t, opened %v, printed %s%s", r.reason, b.ran != nil, b.opened, b.out.String(), b.err.String())
			}
			delete(b.env, envURI)
		}
	}
	if d := cmp.Diff(before, contentsOf(t, ".")); d != "" {
		t.Errorf("files changed (-before +after)\n%s", d)
	}
}

// broken is an output that takes nothing.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// The end of every command decides its exit code, and nothing is written to
// standard error where all is well.
func TestExitCodes(t *testing.T) {
	closed := func(b *bench) { b.Stdout = broken{errors.New("closed")} }
	for _, r := range []struct {
		reason, line string
		change       func(*bench)
		code         int
		want         string // printed
	}{
		{"all tests passed", "run suite.yml", nil, 0, "2 passed, 0 failed, 0 skipped"},
		{"a test failed", "run suite.yml", func(b *bench) { b.summary.Failed = 1 }, 1, ""},
		{"a test is flaky", "run --retry-failed 2 suite.yml", func(b *bench) { b.summary.Flaky = 1 }, 1, ""},
		{"the run has a problem", "run suite.yml", func(b *bench) { b.summary.Problems = []string{"x"} }, 1, ""},
		{"a test broke", "run suite.yml", func(b *bench) { b.summary.Failed, b.summary.Broken = 1, 1 }, 3, ""},
		{"the run could not begin", "run suite.yml", func(b *bench) { b.fails = errors.New("no test commands") }, 3, "no test commands"},
		{"the deployment could not be opened", "run suite.yml", func(b *bench) { b.opening = errors.New("no ports") }, 3, "no ports"},
		{"the deployment could not be stopped", "run suite.yml", func(b *bench) { b.closing = errors.New("stuck") }, 3, "stopping the deployment: stuck"},
		{"a test failed, and the deployment could not be stopped", "run suite.yml",
			func(b *bench) { b.summary.Failed, b.closing = 1, errors.New("stuck") }, 1, "utr: stopping the deployment: stuck"},
		{"local binaries are missing", "run --local /r suite.yml", func(b *bench) { b.opening = errors.New("no mongod") }, 3, "no mongod"},
		{"another run holds the deployment", "run --uri mongodb://h1:1/ suite.yml", func(b *bench) {
			b.opening = &deployment.HeldError{Hosts: []string{"h1:1"}, Holder: deployment.Holder{Host: "far", PID: 7}}
		}, 3, "the deployment at h1:1 is in use by a run on host far, process 7 … --wait-for-lock"},
		{"the lock is lost", "run --uri mongodb://h1:1/ suite.yml", func(b *bench) {
			lost := &deployment.LostError{Hosts: []string{"h1:1"}, Holder: &deployment.Holder{Host: "far", PID: 7}}
			b.during = func() { b.opened.(deployment.ClusterOptions).Lock.Lost(lost) }
		}, 3, "utr: the lock of the deployment at h1:1 was lost: a run on host far, process 7"},
		{"a report cannot be written", "run --json suite.yml/x suite.yml", nil, 3, "cannot write a report"},
		{"standard output is closed", "version", closed, 3, "standard output"},
		{"standard output is closed in a run", "run suite.yml", closed, 3, "standard output"},
		{"a dry run with a pattern too many", "run --dry-run --run first --run nothing suite.yml", nil, 1, "matches no test"},
		{"a dry run with binaries that do not exist", "run --local /r --dry-run suite.yml", nil, 0, "2 tests of 1 files"},

		{"two equal reports", "diff good.json good.json", nil, 0, "0 new failures, 0 mended"},
		{"a new failure", "diff good.json failed.json", nil, 1, "1 new failure, 0 mended"},
		{"a mended test", "diff failed.json good.json", nil, 0, "0 new failures, 1 mended"},
		{"two runs", "merge --junit units.xml good.json other.json", nil, 0, "2 passed, 0 failed, 0 skipped\n"},
		{"two runs, one of which failed", "merge failed.json other.json", nil, 1, "1 passed, 1 failed, 0 skipped\n"},
		{"one test in two reports", "merge good.json failed.json", nil, 1, "have 1 test in common"},
		{"one shard of two", "merge shard.json", nil, 1, "problem: shard 2/2 is missing"},
		{"a merged report in a folder that does not exist", "merge --tap nowhere/x good.json", nil, 3, "cannot write a report"},
		{"a merged report on a full disk", "merge --tap /dev/full good.json", nil, 3, "/dev/full"},
		{"a matrix that cannot report", "matrix night.yml --tap nowhere/x", nil, 3, "cannot write a report"},
		{"a matrix that cannot keep results", "matrix night.yml --results /dev/null/x", nil, 3, "cannot keep results"},

		{"a valid suite", "validate suite.yml", nil, 0, ""},
		{"an invalid suite", "validate bad.yml", nil, 2, "bad.yml:3:8"},
		{"a schema", "schema 1.4", nil, 0, `"$schema"`},
		{"version", "version", nil, 0, "v0"},
		{"version as a flag", "--version", nil, 0, "v0"},
		{"help", "help", nil, 0, "usage: utr"},
		{"help as a flag", "--help", nil, 0, "usage: utr"},
		{"help for a command", "help run", nil, 0, "usage: utr run"},
		{"help as a flag of a command", "run --help", nil, 0, "usage: utr run"},
		{"completion", "completion bash", nil, 0, "complete "},
		{"a port that is taken", "serve", nil, 3, "port taken"},
		{"nothing to clean", "clean", nil, 0, "nothing was left"},
		{"a release in a file", "release suite.yml/x", nil, 3, "cannot make a release"},
		{"an interrupted experiment", "experiment overload", func(b *bench) { b.ctx = ended(b.ctx) }, 3, "was not ended"},

		{"all rules of the current policy", "explain", nil, 0, "current: retryable-reads@2026-06-17 … R1  … W10  … B6  … R51 "},
		{"a rule", "explain R40", nil, 0, "In a sharded cluster the server that failed is deprioritized."},
		{"the policies", "explain --list", nil, 0, "retryable-reads@2024"},
		{"a story that ends well", "explain --topology sharded --try network --try ok", nil, 0, "select, deprioritized a … return result [R6]"},
		{"a story that ends badly", "explain --try 91 --try 11600", nil, 0, "return error of attempt 2: server error 11600"},
		{"retries are off", "explain --no-retry --try network", nil, 0, "return error of attempt 1: network error … R30"},
		{"of a write", "explain --operation insert --no-retry --try network", nil, 0, "network error [R22 W30 R34] retryWrites is false"},
		{"the driver labels the network error of a write", "explain --operation insert --try network --try ok", nil, 0, "[W10 R22 R50] … return result [R6]"},
		{"a write that is never retried", "explain --operation drop --try network", nil, 0, "[R22 W35 R34] the operation is never retried"},
		{"no server for the retry", "explain --try network --try selection", nil, 0, "return error of attempt 1: network error … R3]"},
		{"a broken handshake", "explain --try handshake,91 --try ok", nil, 0, "R13 … return result"},
		{"an overloaded server", "explain --try 462,SystemOverloadedError,RetryableError --try ok", nil, 0, "back off … return result"},
		{"a token bucket", "explain --policy client-backpressure@2025-12 --try 462,SystemOverloadedError,RetryableError --try ok", nil, 0,
			"back off 50ms, 999 tokens left … return result, 1000 tokens left"},
		{"the first revision", "explain --policy retryable-writes@2018-03-14 --retry-writes --operation insert --try 64 --try ok", nil, 0, "W12 … return result"},
		{"which has to be asked for retries", "explain --policy retryable-writes@2018-03-14 --operation insert --try 64", nil, 0,
			"[W12 R22 W30 R34] retryWrites is false"},
		{"a policy in its words", "explain --policy client-backpressure@2025-12", nil, 0,
			"MAX_RETRIES 5 … B6    After an overload error wait jitter · min(MAX_BACKOFF, BASE_BACKOFF · 2^(attempt − 1)).\n      " +
				"Client Backpressure, Overload retry policy (2025-12) … 1.5^(attempt − 1)"},
		{"a rule in them", "explain --policy retryable-reads@2026 T9", nil, 0, "1.5^(attempt − 1)). … (2025-11-20)"},
		{"a rule that a policy does not have", "explain --policy retryable-reads@2024 B6", nil, 0, "2^attempt"},
		{"more tries than attempts", "explain --try ok --try ok", nil, 0, "1 more --try"},
		{"fewer tries than attempts", "explain --try network", nil, 0, "the story ends here"},
	} {
		b := newBench(t)
		usageFiles(t)
		if r.change != nil {
			r.change(b)
		}
		b.expect(t, r.reason, r.line, r.code, r.want)
		if r.code == ExitOK && b.err.Len() > 0 {
			t.Errorf("%s: all is well, and standard error says %s", r.reason, b.err.String())
		}
	}
}

// ended gives a context that is over.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
