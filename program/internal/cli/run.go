package cli

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/program/internal/otlp"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
)

// NewEngine creates a driver under test. Only the reference engine uses the options. An error is a usage error.
type NewEngine func(reference.Options) (engine.Engine, error)

// maxLocalShards is more than one machine can run.
const maxLocalShards = 16

type runFlags struct {
	flags         *flags
	config        runner.Config // without engine, source and Notify
	engine        reference.Options
	driver        string // value of --engine
	named         namedEngine
	deployment    deploymentFlags
	uriOptions    []deployment.URIOption
	failPoints    deployment.FailPointMode
	uri, single   string
	lock          *lock.Options // nil means no lock
	local         deployment.LocalOptions
	orchestration orchestrationFlags
	durations     string   // name of a file
	otlp          *url.URL // of a collector; nil sends no spans
	knownFailing  []string // names of files
	dryRun        bool
	overwrite     bool // documents that no run wrote
	reports       reportFlags
	deadline      time.Duration
	sharers       int // runs at the same time in this process; 0 means 1
}

func runCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "run PATH...",
		Short: "Run suites",
		Annotations: map[string]string{
			usedMost: "engine run topology server-version uri known-failing watch verbose html junit"},
		Long: `Each PATH is a suite (.yml, .yaml, .json), a folder of suites, - for standard
input, or the name of a built-in suite such as retryable-reads. Suites in dated are for
the earlier policy that their descriptions begin with: use --policy.

Suites run on embedded deployments, or with --local on clusters that utr starts from
mongod and mongos binaries. With --topology auto, each test runs on the first
deployment that meets its requirements. With --uri, suites run on an existing
deployment; utr first prints the collections that it will drop or change there, and
refuses if one contains documents that utr did not write.

--run and --skip match regular expressions against "file: description". A pattern that
matches no test fails the run. If no tests remain, utr exits with 2.

Exit codes: 0 success, 1 tests failed or were flaky, 2 bad usage or invalid suite,
3 broken: set-up, deployment, engine or a report failed, or the run was interrupted.`,
		Example: `# built-in suites
utr run retryable-reads
# built-in suites for an earlier policy
utr run --policy retryable-reads@2024 dated/retryable-reads-2024
# all of them, on all four topologies
utr run --topology all all
# again whenever the suite changes
utr run --watch my-suite.yml
# a few tests, with a line for each
utr run --run 'find.*NotWritablePrimary' -v retryable-reads
# on an existing replica set
utr run --uri 'mongodb://localhost:27017/?replicaSet=rs0' retryable-reads
# on clusters that utr starts from these binaries
utr run --local ~/mongodb-8.0.4 --topology all --jobs 2 retryable-writes`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		r, watch := declareRun(f), false
		f.group = "How to run them"
		f.toggle(&watch, "watch", "run suites again when they change, until interrupted")
		return func(ctx context.Context, c *invocation) error {
			if watch {
				return r.watch(ctx, c)
			}
			return r.act(ctx, c)
		}
	})
}

// newRun returns the defaults of flags. They are set before the flags are declared.
func newRun(f *flags) *runFlags {
	return &runFlags{flags: f, driver: referenceEngine, config: runner.Config{Jobs: 1, Count: 1}, lock: &lock.Options{}}
}

// parseRun returns the flags of utr run for the arguments of another command.
func (c *invocation) parseRun(args []string) (*runFlags, error) {
	f := newFlags(c, &cobra.Command{Use: "run"})
	r := declareRun(f)
	if err := f.Parse(joinSeeds(args)); err != nil {
		return nil, err
	}
	return r, f.check()
}

func declareRun(f *flags) *runFlags {
	r := newRun(f)
	r.declareWhere(f)
	f.group = "Which tests"
	f.filter(&r.config.Filter, "run")
	f.shard(&r.config.Shard, &r.durations,
		"run one of N parts of the tests, such as 2/5; utr merge combines their reports")
	f.knownFailing(&r.knownFailing,
		"tests that are expected to fail, one per line: pattern # reason, or pattern # until 2027-01-31: reason "+
			"(default the list of the engine)")
	f.toggle(&r.dryRun, "dry-run",
		"print which tests would run and which collections would be dropped or changed, and exit")
	f.group = "How to run them"
	r.declareEngine(f)
	f.backoff(&r.engine.Backoff, ", which reports always show")
	set(f, &r.otlp, "otlp", "URL", "send the spans of the reference engine to an OpenTelemetry collector, such as "+
		"http://localhost:4318, as one trace for each test", otlp.Parse)
	r.config.Jobs = 0
	f.number(&r.config.Jobs, "jobs", "N", 1, "tests to run concurrently, each on its own embedded deployment, or side by side "+
		"on one cluster; reports keep the order of the tests (default what the machine allows on embedded deployments, "+
		"otherwise one for each cluster)")
	f.duration(&r.config.Timeout, "timeout", "time limit for one test (default "+runner.DefaultTimeout.String()+")")
	f.duration(&r.deadline, "deadline", "time limit for the whole run, which is then interrupted (default none)")
	f.number(&r.config.MinTests, "min-tests", "N", 0,
		"fail if fewer tests run, not counting skipped ones (default 1, but 0 for a part of a run, by --cell or --shard)")
	f.toggle(&r.config.RequireFailPoints, "require-fail-points",
		"fail a test if one of its fail points never fired (default a warning if the test passes)")
	f.toggle(&r.config.FailFast, "fail-fast", "stop starting tests after the first failed or broken one")
	f.number(&r.config.Retries, "retry-failed", "N", 0,
		"number of retries of a failed or broken test (default 0); one that then passes is flaky, which fails the run")
	f.number(&r.config.Count, "count", "N", 1, "how many times to run each test")
	f.seed(&r.config.Shuffle, strings.TrimPrefix(shuffle, "--"),
		"run tests in a random order; the same seed gives the same order")
	r.config.Reseed = runner.ReseedAuto
	choice(f, &r.config.Reseed, "reseed", "MODE",
		"rewrite initial data before tests that need it, or before every test", string(runner.ReseedAuto),
		string(runner.ReseedAlways))
	f.reports(&r.reports, "print a line for every test")
	f.toggle(&r.config.KeepEvents, "events", "keep events and operations of passing tests in reports")
	f.text(&r.config.Cell, "cell", "NAME", "name of the matrix cell, for reports")
	return r
}

// declareWhereAndHow declares the flags of a command that uses an engine and a deployment.
func declareWhereAndHow(f *flags) *runFlags {
	r := newRun(f)
	r.declareWhere(f)
	f.group = "How to run them"
	r.declareEngine(f)
	return r
}

func (r *runFlags) declareWhere(f *flags) {
	r.declareTarget(f, func() { f.failPoints(&r.failPoints) })
}

func (r *runFlags) declareTarget(f *flags, declareFailPoints func()) {
	f.group = "Where to run"
	f.deployment(&r.deployment, topologyAuto, topologyAuto, topologyAll)
	choice(f, &r.deployment.auth, "auth", "MODE",
		"access control of the deployment that utr starts (default as each test requires)", "on", "off")
	f.toggle(&r.deployment.TLS, "tls", "require TLS on the deployment that utr starts")
	declareFailPoints()
	f.serverAPI(&r.config.ServerAPI, " for clients for which the suite declares none")
	list(f, &r.uriOptions, "uri-option", "NAME=VALUE", "option for all connection strings, such as compressors=zlib",
		deployment.ParseURIOption)
	f.group = "On an existing deployment"
	f.text(&r.uri, "uri", "URI", "run on the deployment at this connection string (or $"+envURI+")")
	f.text(&r.single, "single-uri", "URI",
		"with --uri: load balancer in front of a single mongos, for load balanced deployments (or $"+envSingleURI+")")
	f.toggle(&r.overwrite, "overwrite",
		"with --uri: use the collections that suites name, even if they contain documents that utr did not write")
	f.duration(&r.lock.Wait, "wait-for-lock",
		"with --uri: how long to wait for another run to release the deployment (default no wait)")
	f.text(&r.lock.Name, "lock-name", "NAME",
		"with --uri: name of this run, shown to runs that find the deployment locked, such as the URL of a CI job")
	f.group = "On local binaries"
	r.local.Shards = 1
	f.text(&r.local.Where, "local", "DIR|PATH",
		"run on clusters of the mongod and mongos in this folder, or of this mongod; a bare name is looked up in $PATH")
	f.within(&r.local.Shards, "local-shards", "N", 1, maxLocalShards, "with --local: shards of a sharded cluster")
	f.group = "On an orchestration service"
	r.orchestration.declare(f)
	f.checks = append(f.checks, r.checkTarget)
}

func (r *runFlags) declareEngine(f *flags) {
	f.text(&r.driver, "engine", "NAME",
		"driver under test: a built-in name, a name in the engines file, either with @VERSION, exec:COMMAND or tcp://HOST:PORT")
	f.enginesFlag()
	f.policy(&r.engine.Policy, "policy", "retry policy of the reference engine; utr explain --list lists them")
	f.checks = append(f.checks, func() (err error) {
		r.named, err = f.inv.engineNamed(r.driver)
		return err
	})
}

func (f *flags) filter(to *runner.Filter, verb string) {
	f.patterns(&to.Run, "run", verb+" only tests that match")
	f.patterns(&to.Skip, "skip", "exclude tests that match")
}

// knownFailing declares the flag for lists of known failures.
func (f *flags) knownFailing(to *[]string, summary string) {
	list(f, to, "known-failing", "FILE", summary, func(s string) (string, error) { return fileName(s) })
}

func (f *flags) serverAPI(to *string, who string) {
	choice(f, to, "server-api", "VERSION", "declare this version of the Stable API (1)"+who, "1")
}

func (f *flags) failPoints(to *deployment.FailPointMode) {
	choice(f, to, "fail-points", "MODE", executesFailPoints+" (default auto: the server if it has test commands)",
		failPointModes()...)
}

const executesFailPoints = "who executes fail points: the server, which then needs test commands, or a proxy of utr in front of each server"

func failPointModes() []string {
	return []string{string(deployment.FailPointsAuto), string(deployment.FailPointsServer),
		string(deployment.FailPointsProxy)}
}

func (f *flags) backoff(to *reference.Backoff, more string) {
	*to = reference.BackoffReal
	choice(f, to, "backoff", "MODE", "whether the reference engine sleeps during backoff delays"+more,
		string(reference.BackoffReal), string(reference.BackoffNone))
}

func (f *flags) shard(shard *runner.Shard, durations *string, summary string) {
	set(f, shard, "shard", "I/N", summary, runner.ParseShard)
	f.file(durations, "durations", "with --shard: JSON report used to balance the shards, the same for all of them")
}
