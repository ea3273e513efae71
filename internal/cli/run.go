package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/report"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

// The environment variables that run looks at.
const (
	envURI       = "UTR_URI"
	envSingleURI = "UTR_SINGLE_URI"
	envNoColor   = "NO_COLOR"
	envTerminal  = "TERM"
	envActions   = "GITHUB_ACTIONS" // "true" where GitHub runs a job
)

// EngineOptions are what the command line says about an engine.
type EngineOptions struct {
	Policy  string // name of a retry policy, "" for the current one
	Backoff string // "none" if delays are not slept, "real" or "" if they are
}

// NewEngine makes a driver under test. An error is one of usage.
type NewEngine func(EngineOptions) (engine.Engine, error)

// The values of --topology in addition to the topologies.
const (
	topologyAuto = "auto"
	topologyAll  = "all"
)

// The values of --backoff.
const (
	backoffReal = string(reference.BackoffReal)
	backoffNone = string(reference.BackoffNone)
)

// deploymentFlags choose an embedded deployment; run, compare and serve share them.
type deploymentFlags struct {
	deployment.EmbeddedOptions
	topology, auth string
}

func (f *flags) deployment(d *deploymentFlags, initial string, choices ...string) {
	for _, t := range []deployment.Topology{deployment.Single, deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced} {
		choices = append(choices, string(t))
	}
	summary, versions := "server version of the embedded deployment", embedded.Versions()
	if slices.Contains(choices, topologyAuto) { // each test may have a deployment of its own
		summary += ", or " + deployment.AnyVersion +
			": for each test one that meets its requirements (default with --topology " + topologyAuto + ")"
		versions = append(versions, deployment.AnyVersion)
	}
	d.topology, d.Members, d.Mongoses = initial, 3, 2
	choice(f, &d.topology, "topology", "NAME", "topology of the deployment", choices...)
	set(f, &d.Version, "server-version", "VERSION", summary, func(s string) (string, error) {
		if s == "" { // the default
			return s, nil
		}
		return oneOf[string](versions)(s)
	}, versions...)
	f.within(&d.Members, "members", "N", 1, embedded.MaxServers, "members of a replica set")
	f.within(&d.Mongoses, "mongoses", "N", 1, embedded.MaxServers, "routers of a sharded cluster")
}

func (d *deploymentFlags) check() error {
	if v, err := specs.ParseVersion(d.Version); err == nil && v.Major < 5 && d.topology == string(deployment.LoadBalanced) {
		return usage("--server-version %s: load balanced deployments require 5.0", d.Version)
	}
	return nil
}

// options of the source that the flags ask for.
func (d *deploymentFlags) options() deployment.EmbeddedOptions {
	o := d.EmbeddedOptions
	if t := topologyOf(d.topology); t != "" {
		o.Topologies = []deployment.Topology{t}
	}
	if d.topology == topologyAuto {
		o.Version = cmp.Or(o.Version, deployment.AnyVersion)
	}
	if d.auth != "" {
		on := d.auth == "on"
		o.Auth = &on
	}
	return o
}

// topologyOf reads --topology; "" means all.
func topologyOf(name string) deployment.Topology {
	if name == topologyAuto || name == topologyAll {
		return ""
	}
	return deployment.Topology(name)
}

// runFlags are the flags of run.
type runFlags struct {
	flags         *flags
	config        runner.Config // without what act makes
	engine        EngineOptions
	driver        string // a name of Program.Engines
	deployment    deploymentFlags
	uriOptions    []deployment.URIOption
	uri, single   string
	lock          lock.Options
	local         localFlags
	orchestration orchestrationFlags
	durations     string // a file, as is the next
	knownFailing  string
	dryRun        bool
	reports       reportFlags
}

func runCommand(c *call) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "run PATH...",
		GroupID: suitesGroup,
		Short:   "Run suites",
		Long: `Each PATH is a suite (.yml, .yaml, .json), a directory of suites, - for standard
input, or the name of a built-in suite such as retryable-reads.

Suites run on deployments inside the process, or with --local on clusters of mongod
and mongos binaries that utr starts; with --topology auto each test runs on the first
one that meets its requirements. With --uri they run on an existing deployment; utr
first prints which collections it will drop there.

Patterns of --run and --skip are regular expressions for "file: description". A
pattern that matches no test is a problem, and fails the run; if no test is left to
run, that is bad usage.

Exit codes: 0 all well, 1 tests failed or were flaky, 2 bad usage or invalid suite,
3 broken: set-up, deployment, engine or a report failed, or the run was interrupted.`,
		Example: `# built-in suites
utr run retryable-reads
# everything in a directory, on all four topologies
utr run --topology all --jobs 4 specs/
# a few tests, with a line for each
utr run --run 'find.*NotWritablePrimary' -v specs/
# on an existing replica set
utr run --uri mongodb://localhost:27017/?replicaSet=rs0 specs/
# on clusters that utr starts from these binaries
utr run --local ~/mongodb-8.0.4 --topology all --jobs 2 specs/`,
		ValidArgsFunction: completes(builtIn, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action { return declareRun(f).act })
}

// builtIn names the directories of suites that utr carries.
func builtIn() []string {
	var names []string
	entries, err := specs.FS.ReadDir(".")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func declareRun(f *flags) *runFlags {
	r := &runFlags{flags: f, driver: "reference", engine: EngineOptions{Backoff: backoffReal}, config: runner.Config{Jobs: 1, Count: 1}}
	f.group = "Where to run"
	f.deployment(&r.deployment, topologyAuto, topologyAuto, topologyAll)
	choice(f, &r.deployment.auth, "auth", "MODE", "access control of the deployment that utr starts (default as each test requires)", "on", "off")
	f.toggle(&r.deployment.TLS, "tls", "require TLS on the deployment that utr starts")
	f.serverAPI(&r.config.ServerAPI, " for clients for which the suite declares none")
	list(f, &r.uriOptions, "uri-option", "NAME=VALUE", "option for all connection strings, such as compressors=zlib", uriOption)
	f.group = "On an existing deployment"
	f.text(&r.uri, "uri", "URI", "run on the deployment at this connection string (or $"+envURI+")")
	f.text(&r.single, "single-uri", "URI",
		"with --uri: load balancer in front of a single mongos, for load balanced deployments (or $"+envSingleURI+")")
	f.duration(&r.lock.Wait, "wait-for-lock", "with --uri: how long to wait for another run that uses the deployment (default not at all)")
	f.text(&r.lock.Name, "lock-name", "NAME",
		"with --uri: name of this run for others that find the deployment locked, such as the URL of a CI job")
	f.group = "On local binaries"
	r.local.declare(f)
	f.group = "On an orchestration service"
	r.orchestration.declare(f)
	f.group = "Which tests"
	f.patterns(&r.config.Filter.Run, "run", "run only tests that match")
	f.patterns(&r.config.Filter.Skip, "skip", "leave out tests that match")
	f.shard(&r.config.Shard, &r.durations, "run one of N parts of the tests, such as 2/5; utr merge merges their reports")
	f.file(&r.knownFailing, "known-failing",
		"tests that are expected to fail, one per line: pattern # reason, or pattern # until 2027-01-31: reason")
	f.toggle(&r.dryRun, "dry-run", "print which tests would run and which collections would be dropped, and stop")
	f.group = "How to run them"
	f.text(&r.driver, "engine", "NAME", "driver under test", f.call.engineNames()...)
	f.text(&r.engine.Policy, "policy", "NAME", "retry policy of the reference engine; utr explain --list lists them", policyNames()...)
	choice(f, &r.engine.Backoff, "backoff", "MODE",
		"whether the reference engine waits during its backoff delays; reports show them either way", backoffReal, backoffNone)
	f.number(&r.config.Jobs, "jobs", "N", 1, "tests that run at once, each on its own deployment")
	f.duration(&r.config.Timeout, "timeout", "limit for one test (default "+runner.DefaultTimeout.String()+")")
	f.toggle(&r.config.FailFast, "fail-fast", "start no more tests after the first that failed or broke")
	f.number(&r.config.Retries, "retry-failed", "N", 0,
		"how often to retry a test that failed or broke (default 0); one that passes then is flaky, which fails the run")
	f.number(&r.config.Count, "count", "N", 1, "how many times each test runs")
	f.seed(&r.config.Shuffle, strings.TrimPrefix(shuffle, "--"), "run tests in a random order; the same seed repeats it")
	r.config.Reseed = reseedAuto
	choice(f, &r.config.Reseed, "reseed", "MODE",
		"when to write initial data again: where a test can have changed it, or before every test", string(reseedAuto), string(runner.ReseedAlways))
	f.reports(&r.reports, "print a line for every test")
	f.toggle(&r.config.KeepEvents, "events", "keep events and operations of passing tests in reports")
	f.text(&r.config.Cell, "cell", "NAME", "name of this run as the cell of a matrix, for reports")
	return r
}

// reseedAuto is the value of --reseed for runner.ReseedAuto.
const reseedAuto runner.Reseed = "auto"

func (f *flags) serverAPI(to *string, who string) {
	choice(f, to, "server-api", "VERSION", "declare this version of the Stable API (1)"+who, "1")
}

func uriOption(s string) (deployment.URIOption, error) {
	o, err := deployment.ParseURIOption(s)
	if err == nil {
		err = deployment.CheckURIOptions([]deployment.URIOption{o})
	}
	return o, err
}

func (f *flags) shard(shard *runner.Shard, durations *string, summary string) {
	set(f, shard, "shard", "I/N", summary, runner.ParseShard)
	f.file(durations, "durations", "with --shard: JSON report used to balance shards; the same one for all")
}

// engineNames lists the drivers under test.
func (c *call) engineNames() []string { return slices.Sorted(maps.Keys(c.program.Engines)) }

func unknownEngine(c *call, name string) error {
	return usage("unknown engine %q: it must be one of %s", name, strings.Join(c.engineNames(), ", "))
}

// check completes the configuration, and gives the maker of the engine. It reads only
// files that flags name, and connects to nothing.
func (r *runFlags) check(c *call) (engine NewEngine, err error) {
	if err := r.checkTarget(c); err != nil {
		return nil, err
	}
	if len(c.paths) == 0 {
		return nil, usage("requires a suite, a directory, or a built-in suite: %s", strings.Join(builtIn(), ", "))
	}
	engine, found := c.program.Engines[r.driver]
	if !found {
		return nil, unknownEngine(c, r.driver)
	}
	return engine, r.complete(c)
}

func (r *runFlags) act(ctx context.Context, c *call) (err error) {
	newEngine, err := r.check(c)
	if err != nil {
		return err
	}
	cfg := r.config
	suites, err := c.chosen(ctx, cfg.Filter)
	if err != nil {
		return err
	}
	needed := chosen(suites, cfg.Filter)
	if r.dryRun {
		if err := c.print(plan(needed, cfg.Filter)); err != nil {
			return err
		}
		if faults := runner.Unused(suites, cfg); len(faults) > 0 {
			return &exitError{code: ExitFailed, err: errors.New(strings.Join(faults, "\n"))}
		}
		return nil
	}
	if cfg.Engine, err = newEngine(r.engine); err != nil {
		return usage("%w", err)
	}
	defer func() { _ = cfg.Engine.Close() }()
	// Reports are opened before anything is touched that took long to reach.
	reporters, done, err := r.reports.open(c, "suite", filesOf(suites))
	if err != nil {
		return err
	}
	defer func() { err = c.closed(err, done()) }()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	if cfg.Source, err = r.source(ctx, c, lose, needed); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	defer func() { // also after a panic, so that the lock is released
		closing := cfg.Source.Close()
		if closing != nil {
			closing = fmt.Errorf("stopping the deployment: %w", closing)
		}
		if err == nil {
			err = closing
		} else if closing != nil {
			c.note(closing.Error())
		}
	}()
	defer func() { r.local.keep(ctx, err) }()
	if r.uri != "" || r.orchestration.touchesOthers() {
		c.announce(cfg.Source, needed)
	}
	return c.run(ctx, reporters, suites, cfg)
}

// chosen loads suites, of which the filter must let a test through.
func (c *call) chosen(ctx context.Context, filter runner.Filter) ([]*specs.Suite, error) {
	loaded, err := c.load(ctx, specs.Options{})
	if err != nil {
		return nil, invalid(err)
	}
	if left := loaded.Left(); left != "" {
		c.note(left)
	}
	if len(chosen(loaded.Suites, filter)) == 0 {
		return nil, usage("%s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: filter}), "; "))
	}
	return loaded.Suites, nil
}

// checkTarget reports what is wrong with what the flags say to run on, before anything
// is connected to. It takes connection strings from the environment where flags give
// none.
func (r *runFlags) checkTarget(c *call) error {
	switch target, _ := r.flags.target(); target {
	case onEmbedded:
		return r.deployment.check()
	case onOrchestration:
		service, err := openService(r.orchestration.URL)
		if err == nil {
			service.Close()
		}
		return err
	case onLocal:
		if r.local.Where == "" {
			return usage("--local requires a folder with mongod and mongos, or a mongod")
		}
		return nil
	}
	for _, t := range []struct {
		uri         *string
		flag, other string
	}{{&r.uri, "uri", envURI}, {&r.single, "single-uri", envSingleURI}} {
		at := "--" + t.flag
		if !r.flags.Changed(t.flag) {
			at, *t.uri = "$"+t.other, c.env(t.other)
		} else if *t.uri == "" {
			return usage("%s is empty", at)
		}
		if *t.uri == "" {
			continue
		}
		if err := deployment.CheckURI(*t.uri); err != nil {
			return usage("%s: %w", at, err)
		}
	}
	return nil
}

// complete checks and completes the runner's configuration.
func (r *runFlags) complete(c *call) (err error) {
	cfg := &r.config
	cfg.AllTopologies = r.deployment.topology == topologyAll
	cfg.Rerun = r.rerun(c)
	if err := r.reports.check(); err != nil {
		return err
	}
	if cfg.Cell != "" && cfg.AllTopologies {
		return usage("--cell cannot be used with --topology all: a cell has one verdict for each test")
	}
	if cfg.Reseed == reseedAuto {
		cfg.Reseed = runner.ReseedAuto
	}
	if target, _ := r.flags.target(); target == onOrchestration && !r.flags.Changed("jobs") {
		cfg.Jobs = r.orchestration.jobs(&r.deployment)
	}
	if r.durations != "" {
		past, err := readReport(r.durations)
		if err != nil {
			return err
		}
		cfg.Shard.Durations = report.Durations(ofCell(past.Verdicts, cfg.Cell), runner.ShardKey)
	}
	cfg.KnownFailing, err = knownFailing(r.knownFailing)
	return err
}

// ofCell keeps the verdicts of a cell, if it has any: those of other engines or
// deployments may have taken another time.
func ofCell(verdicts []*result.Verdict, cell string) []*result.Verdict {
	var own []*result.Verdict
	for _, v := range verdicts {
		if v.Test.Cell == cell {
			own = append(own, v)
		}
	}
	if len(own) == 0 {
		return verdicts
	}
	return own
}

// knownFailing reads a file of known failures, if one is named.
func knownFailing(name string) ([]runner.KnownFailure, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, invalid(fmt.Errorf("--known-failing: %w", err))
	}
	defer func() { _ = f.Close() }()
	known, err := runner.ParseKnownFailing(name, f)
	if err != nil {
		return nil, invalid(err)
	}
	return known, nil
}

func (r *runFlags) source(ctx context.Context, c *call, lost context.CancelCauseFunc, suites []*specs.Suite) (deployment.Source, error) {
	r.lock.Lost = func(err error) { lost(err) }
	switch target, _ := r.flags.target(); target {
	case onURI:
		return c.openCluster(ctx, deployment.ClusterOptions{
			URI: r.uri, SingleURI: r.single, FailPoints: runner.FailPoints(suites), ServerAPI: r.config.ServerAPI,
			URIOptions: r.uriOptions, Lock: &r.lock, Note: c.note,
		})
	case onOrchestration:
		return r.orchestration.source(ctx, c, r)
	case onLocal:
		return r.local.source(ctx, c, r, suites)
	}
	o := r.deployment.options()
	o.URIOptions = r.uriOptions
	if o.TLS { // certificates are files
		var err error
		if o.Ledger, err = c.runLedger(); err != nil {
			return nil, err
		}
	}
	return c.program.Embedded(ctx, o)
}

// announce prints what will be dropped.
func (c *call) announce(source deployment.Source, suites []*specs.Suite) {
	dropped := runner.DropPlan(suites)
	if len(dropped) == 0 {
		return
	}
	var hosts []string
	for _, o := range source.Offers() {
		hosts = append(hosts, o.Hosts...)
	}
	_, _ = fmt.Fprintf(c.errors, "utr drops these collections of the deployment at %s: %s\n",
		strings.Join(hosts, ","), strings.Join(dropped, ", "))
}

// chosen keeps the suites that have a test which the filter lets through.
func chosen(suites []*specs.Suite, f runner.Filter) []*specs.Suite {
	var out []*specs.Suite
	for _, s := range suites {
		if slices.ContainsFunc(s.Tests, func(t *specs.Test) bool { return chooses(f, s, t) }) {
			out = append(out, s)
		}
	}
	return out
}

func chooses(f runner.Filter, s *specs.Suite, t *specs.Test) bool {
	subject := s.File + ": " + t.Description
	matches := func(p *regexp.Regexp) bool { return p.MatchString(subject) }
	return (len(f.Run) == 0 || slices.ContainsFunc(f.Run, matches)) && !slices.ContainsFunc(f.Skip, matches)
}

// plan is the output of --dry-run.
func plan(suites []*specs.Suite, f runner.Filter) string {
	var b strings.Builder
	tests := 0
	for _, s := range suites {
		for _, t := range s.Tests {
			if chooses(f, s, t) {
				tests++
				fmt.Fprintf(&b, "  %s: %s\n", s.File, t.Description)
			}
		}
	}
	head := fmt.Sprintf("%d tests of %d files would run, as far as their requirements are met:\n", tests, len(suites))
	dropped := runner.DropPlan(suites)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}

// sameFile reports whether two names refer to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	one, noPath := filepath.Abs(a)
	other, noOther := filepath.Abs(b)
	if noPath == nil && noOther == nil && one == other {
		return true
	}
	file, missing := os.Stat(a)
	another, gone := os.Stat(b)
	return missing == nil && gone == nil && os.SameFile(file, another)
}

// run runs the suites and writes the reports. If standard
// output fails, the run ends as if it were interrupted: its report would be lost.
func (c *call) run(ctx context.Context, reporters []*report.Reporter, suites []*specs.Suite, cfg runner.Config) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Notify = func(n result.Note) {
		c.notify(reporters, n)
		if reporters[0].Err() != nil {
			cancel()
		}
	}
	told := c.announceInterruption(ctx)
	summary, err := c.program.Run(reading, suites, cfg)
	told()
	if err != nil {
		return err
	}
	switch err := reporters[0].Err(); {
	case errors.Is(err, syscall.EPIPE):
		return errors.New("the reader of the report went away: the run was cut short")
	case err != nil:
		return err
	}
	return exit(summary.ExitCode())
}

// announceInterruption prints at once that the run is interrupted: cleaning up
// takes long if a deployment does not answer. The function that it returns ends this.
func (c *call) announceInterruption(ctx context.Context) (end func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		why := "interrupted"
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			why = cause.Error()
		}
		c.note(fmt.Sprintf("%s: cleaning up (fail points, sessions, clients); this takes up to %s if a deployment does not answer, "+
			"and up to %s if a service removes clusters; a second signal quits at once", why, runner.InterruptedCleanUp, deployment.CloseLimit))
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// text is the report on standard output: with colour and a status line on a terminal,
// plain elsewhere.
func (c *call) text(p *reportFlags) report.Generator {
	o := p.TextOptions
	columns, terminal := c.terminal()
	terminal = terminal && c.env(envTerminal) != "dumb"
	o.Color = terminal && c.env(envNoColor) == ""
	text := report.Cells(report.Text(o))
	if p.annotations || c.env(envActions) == "true" && !p.flags.Changed("annotations") {
		text = report.Annotated(text)
	}
	if p.past {
		return text
	}
	if !terminal {
		return report.Files(text, o.Timings)
	}
	return report.Progress(text, report.ProgressOptions{Width: func() int {
		if now, ok := c.terminal(); ok {
			columns = now
		}
		return columns
	}})
}

func (c *call) terminal() (columns int, ok bool) {
	if c.program.Terminal == nil {
		return 0, false
	}
	return c.program.Terminal()
}

// rerun gives the command line that runs one test again. It says what the command
// line said, without its secrets; what the environment says applies again.
func (r *runFlags) rerun(c *call) func(result.TestID) []string {
	fixed := append([]string{"utr", "run"}, c.secrets.texts(r.flags.again(
		"engine", "policy", "backoff", "reseed", "timeout", "members", "mongoses", "auth", "server-api", "tls", "uri-option",
		"orchestration", "orchestration-version", "orchestration-files", "cluster", "local", "local-shards", "uri", "single-uri"))...)
	return func(id result.TestID) []string {
		args := slices.Clone(fixed)
		if target, _ := r.flags.target(); target != onURI {
			args = append(args, r.sameDeployment(id.Deployment)...)
		}
		path := id.File
		if path == stdinName {
			path = specs.Stdin
		}
		args = append(args, "--run", "^"+quotePattern(id.File+": "+id.Description)+"$")
		if strings.HasPrefix(path, "-") && path != specs.Stdin {
			args = append(args, "--")
		}
		return append(args, path)
	}
}

// quotePattern returns a regular expression that matches a text. It has no control
// characters, which a terminal or a report could interpret.
func quotePattern(text string) string {
	var b strings.Builder
	for _, c := range regexp.QuoteMeta(text) {
		if unicode.IsGraphic(c) && c != utf8.RuneError {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, `\x{%x}`, c)
		}
	}
	return b.String()
}

// stdinName is what the loader calls a suite from standard input.
const stdinName = "<stdin>"

// sameDeployment returns the flags for the deployment with a short name, such as
// "replicaset 8.0".
func (r *runFlags) sameDeployment(name string) []string {
	topology, version, words := r.deployment.topology, r.deployment.Version, append(strings.Fields(name), "", "")
	if slices.Contains([]string{"single", "replicaset", "sharded", "load-balanced"}, words[0]) {
		topology = words[0]
	}
	if _, err := specs.ParseVersion(words[1]); err == nil && (version == "" || version == deployment.AnyVersion) {
		version = words[1]
	}
	var args []string
	if topology != topologyAuto {
		args = append(args, "--topology", topology)
	}
	if target, _ := r.flags.target(); version != "" && target == onEmbedded { // others have a version of their own
		args = append(args, "--server-version", version)
	}
	return args
}
