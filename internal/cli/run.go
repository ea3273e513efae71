package cli

import (
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
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/secret"
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

// NewSource makes a source of embedded deployments.
type NewSource func(context.Context, deployment.EmbeddedOptions) (deployment.Source, error)

// NewCluster makes a source of one running deployment.
type NewCluster func(context.Context, deployment.ClusterOptions) (deployment.Source, error)

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

// deploymentFlags choose an embedded deployment; run and serve share them.
type deploymentFlags struct {
	topology, version *string
	members, mongoses *int
	any               bool // each test may have a deployment of its own
}

func (f *flags) deployment(initial string, choices ...string) *deploymentFlags {
	for _, t := range []deployment.Topology{deployment.Single, deployment.ReplicaSet, deployment.Sharded, deployment.LoadBalanced} {
		choices = append(choices, string(t))
	}
	versions, values := "server version of the embedded deployment", embedded.Versions()
	each := slices.Contains(choices, topologyAuto)
	if each {
		versions += ", or " + deployment.AnyVersion +
			": for each test one that meets its requirements (default with --topology " + topologyAuto + ")"
		values = append(values, deployment.AnyVersion)
	}
	return &deploymentFlags{
		topology: f.choice("topology", "NAME", initial, "topology of the deployment", choices...),
		version:  f.text("server-version", "VERSION", "", versions, values...),
		any:      each,
		members:  f.within("members", "N", 3, 1, embedded.MaxServers, "members of a replica set"),
		mongoses: f.within("mongoses", "N", 2, 1, embedded.MaxServers, "routers of a sharded cluster"),
	}
}

func (d *deploymentFlags) check() error {
	if *d.version == "" || d.any && *d.version == deployment.AnyVersion {
		return nil
	}
	if !slices.Contains(embedded.Versions(), *d.version) {
		return usage("--server-version %q: must be one of %s", *d.version, strings.Join(embedded.Versions(), ", "))
	}
	if v, err := specs.ParseVersion(*d.version); err == nil && v.Major < 5 && *d.topology == string(deployment.LoadBalanced) {
		return usage("--server-version %s: load balanced deployments require 5.0", *d.version)
	}
	return nil
}

// options of the source that the flags ask for.
func (d *deploymentFlags) options() deployment.EmbeddedOptions {
	o := deployment.EmbeddedOptions{Version: *d.version, Members: *d.members, Mongoses: *d.mongoses}
	if t := topologyOf(*d.topology); t != "" {
		o.Topologies = []deployment.Topology{t}
	}
	if *d.topology == topologyAuto && o.Version == "" {
		o.Version = deployment.AnyVersion
	}
	return o
}

// runFlags are the flags of run.
type runFlags struct {
	flags        *flags
	deployment   *deploymentFlags
	uri, single  *string
	jobs, count  *int
	run, skip    *[]*regexp.Regexp
	failFast     *bool
	timeout      *time.Duration
	shuffle      **int64
	people       *peopleFlags
	reports      reportFlags
	reseed       *string
	dryRun       *bool
	engine       *string
	policy       *string
	backoff      *string
	knownFailing *string
	retryFailed  *int
	shard        *string
	durations    *string
	events       *bool
	settings     *settingsFlags
	lock         *lockFlags
	cell         *string
	orchestrated *orchestrationFlags
	local        *localFlags
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
	r := &runFlags{flags: f}
	f.group = "Where to run"
	r.deployment = f.deployment(topologyAuto, topologyAuto, topologyAll)
	r.settings = f.settings()
	f.group = "On an existing deployment"
	r.uri = f.text("uri", "URI", "", "run on the deployment at this connection string (or $"+envURI+")")
	r.single = f.text("single-uri", "URI", "",
		"with --uri: load balancer in front of a single mongos, for load balanced deployments (or $"+envSingleURI+")")
	r.lock = f.lock()
	f.group = "On local binaries"
	r.local = f.local()
	f.group = "On an orchestration service"
	r.orchestrated = f.orchestration()
	f.group = "Which tests"
	r.run = f.patterns("run", "run only tests that match")
	r.skip = f.patterns("skip", "leave out tests that match")
	r.shard = f.text("shard", "I/N", "", "run one of N parts of the tests, such as 2/5; utr merge merges their reports")
	r.durations = f.file("durations", "with --shard: JSON report used to balance shards; the same one for all")
	r.knownFailing = f.file("known-failing",
		"tests that are expected to fail, one per line: pattern # reason, or pattern # until 2027-01-31: reason")
	r.dryRun = f.toggle("dry-run", "print which tests would run and which collections would be dropped, and stop")
	f.group = "How to run them"
	r.engine = f.text("engine", "NAME", "reference", "driver under test", f.call.engineNames()...)
	r.policy = f.text("policy", "NAME", "", "retry policy of the reference engine; utr explain --list lists them", policyNames()...)
	r.backoff = f.choice("backoff", "MODE", backoffReal,
		"whether the reference engine waits during its backoff delays; reports show them either way", backoffReal, backoffNone)
	r.jobs = f.number("jobs", "N", 1, 1, "tests that run at once, each on its own deployment")
	r.timeout = f.duration("timeout", "limit for one test (default "+runner.DefaultTimeout.String()+")")
	r.failFast = f.toggle("fail-fast", "start no more tests after the first that failed or broke")
	r.retryFailed = f.number("retry-failed", "N", 0, 0,
		"how often to retry a test that failed or broke (default 0); one that passes then is flaky, which fails the run")
	r.count = f.number("count", "N", 1, 1, "how many times each test runs")
	r.shuffle = f.seed(strings.TrimPrefix(shuffle, "--"), "run tests in a random order; the same seed repeats it")
	r.reseed = f.choice("reseed", "MODE", "auto",
		"when to write initial data again: where a test can have changed it, or before every test", "auto", string(runner.ReseedAlways))
	r.people = f.people()
	r.reports = f.reports()
	r.events = f.toggle("events", "keep events and operations of passing tests in reports")
	r.cell = f.text("cell", "NAME", "", "name of this run as the cell of a matrix, for reports")
	return r
}

// engineNames lists the drivers under test.
func (c *call) engineNames() []string { return slices.Sorted(maps.Keys(c.program.Engines)) }

func unknownEngine(c *call, name string) error {
	return usage("unknown engine %q: it must be one of %s", name, strings.Join(c.engineNames(), ", "))
}

// order is what a valid command line asks for.
type order struct {
	uri, single secret.Text
	engine      NewEngine
	config      runner.Config // but for engine and source
}

// order checks the command line. It reads only files that flags name, and connects to
// nothing.
func (r *runFlags) order(c *call) (o order, err error) {
	if o.uri, o.single, err = r.target(c); err != nil {
		return o, err
	}
	if len(c.paths) == 0 {
		return o, usage("requires a suite, a directory, or a built-in suite: %s", strings.Join(builtIn(), ", "))
	}
	found := false
	if o.engine, found = c.program.Engines[*r.engine]; !found {
		return o, unknownEngine(c, *r.engine)
	}
	o.config, err = r.config(c)
	return o, err
}

func (r *runFlags) act(ctx context.Context, c *call) (err error) {
	o, err := r.order(c)
	if err != nil {
		return err
	}
	uri, single, cfg := o.uri, o.single, o.config
	loaded, err := c.load(ctx, specs.Options{})
	switch {
	case errors.Is(err, errInterrupted):
		return err
	case err != nil:
		return invalid(err)
	}
	if left := loaded.Left(); left != "" {
		_, _ = fmt.Fprintf(c.errors, "utr: %s\n", left)
	}
	if len(chosen(loaded.Suites, cfg.Filter)) == 0 {
		return usage("%s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: cfg.Filter}), "; "))
	}
	if *r.dryRun {
		if err := c.print(plan(loaded.Suites, cfg.Filter)); err != nil {
			return err
		}
		if faults := runner.Unused(loaded.Suites, cfg); len(faults) > 0 {
			return &exitError{code: ExitFailed, err: errors.New(strings.Join(faults, "\n"))}
		}
		return nil
	}
	if cfg.Engine, err = o.engine(EngineOptions{Policy: *r.policy, Backoff: *r.backoff}); err != nil {
		return usage("%w", err)
	}
	defer func() { _ = cfg.Engine.Close() }()
	// Reports are opened before anything is touched that took long to reach.
	reporters, done, err := r.reporters(c, loaded.Suites)
	if err != nil {
		return err
	}
	defer func() { err = c.closed(err, done()) }()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	if cfg.Source, err = r.source(ctx, c, uri, single, lose, chosen(loaded.Suites, cfg.Filter)); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	defer func() { // also after a panic, so that the lock is released
		switch closing := cfg.Source.Close(); {
		case closing == nil:
		case err == nil:
			err = fmt.Errorf("stopping the deployment: %w", closing)
		default:
			_, _ = fmt.Fprintf(c.errors, "utr: stopping the deployment: %s\n", closing)
		}
	}()
	defer func() { r.local.keep(ctx, err) }()
	if uri.Reveal() != "" || r.orchestrated.touchesOthers() {
		c.announce(cfg.Source, chosen(loaded.Suites, cfg.Filter))
	}
	return c.run(ctx, reporters, loaded.Suites, cfg)
}

// target returns the connection strings, from flags before the environment. It reports
// what is wrong with them before anything is connected to.
func (r *runFlags) target(c *call) (uri, single secret.Text, err error) {
	switch target, _ := r.flags.target(); target {
	case onEmbedded:
		return uri, single, r.deployment.check()
	case onOrchestration:
		return uri, single, r.orchestrated.check()
	case onLocal:
		if *r.local.where == "" {
			err = usage("--local requires a folder with mongod and mongos, or a mongod")
		}
		return uri, single, err
	}
	for _, t := range []struct {
		to         *secret.Text
		flag, from string
	}{{&uri, "uri", envURI}, {&single, "single-uri", envSingleURI}} {
		at, text := "$"+t.from, c.env(t.from)
		if f := r.flags.Lookup(t.flag); f.Changed {
			at, text = "--"+t.flag, f.Value.String()
			if text == "" {
				return uri, single, usage("%s is empty", at)
			}
		}
		if text == "" {
			continue
		}
		if err := deployment.CheckURI(text); err != nil {
			return uri, single, usage("%s: %w", at, err)
		}
		*t.to = secret.New(text)
	}
	return uri, single, nil
}

// config is the runner's configuration but for engine and source.
func (r *runFlags) config(c *call) (runner.Config, error) {
	cfg := runner.Config{
		Jobs:          *r.jobs,
		Filter:        runner.Filter{Run: *r.run, Skip: *r.skip},
		FailFast:      *r.failFast,
		Timeout:       *r.timeout,
		Shuffle:       *r.shuffle,
		Count:         *r.count,
		AllTopologies: *r.deployment.topology == topologyAll,
		Retries:       *r.retryFailed,
		KeepEvents:    *r.events,
		Rerun:         r.rerun(c),
		ServerAPI:     *r.settings.serverAPI,
		Cell:          *r.cell,
	}
	if err := r.reports.check(); err != nil {
		return cfg, err
	}
	if *r.cell != "" && cfg.AllTopologies {
		return cfg, usage("--cell cannot be used with --topology all: a cell has one verdict for each test")
	}
	if *r.reseed == string(runner.ReseedAlways) {
		cfg.Reseed = runner.ReseedAlways
	}
	if target, _ := r.flags.target(); target == onOrchestration && !r.flags.Changed("jobs") {
		cfg.Jobs = r.orchestrated.jobs(*r.deployment.topology)
	}
	var err error
	if cfg.Shard, err = r.part(); err != nil {
		return cfg, err
	}
	cfg.KnownFailing, err = knownFailing(*r.knownFailing)
	return cfg, err
}

// part returns the requested shard.
func (r *runFlags) part() (runner.Shard, error) {
	if !r.flags.Changed("shard") {
		return runner.Shard{}, nil
	}
	s, err := runner.ParseShard(*r.shard)
	if err != nil {
		return s, usage("--shard %q: %w", *r.shard, err)
	}
	if *r.durations == "" {
		return s, nil
	}
	past, err := readReport(*r.durations)
	if err != nil {
		return s, err
	}
	s.Durations = report.Durations(ofCell(past.Verdicts, *r.cell), runner.ShardKey)
	return s, nil
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

func (r *runFlags) source(ctx context.Context, c *call, uri, single secret.Text, lost context.CancelCauseFunc, suites []*specs.Suite) (deployment.Source, error) {
	switch target, _ := r.flags.target(); target {
	case onURI:
		return r.lock.open(ctx, c, deployment.ClusterOptions{
			URI: uri.Reveal(), SingleURI: single.Reveal(), FailPoints: runner.FailPoints(suites),
			ServerAPI: *r.settings.serverAPI, URIOptions: *r.settings.uriOptions,
		}, lost)
	case onOrchestration:
		return r.orchestrated.source(ctx, c, r, lost)
	case onLocal:
		return r.local.source(ctx, c, r, suites)
	}
	o := r.deployment.options()
	r.settings.embedded(&o)
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
	kept := chosen(suites, f)
	tests := 0
	for _, s := range kept {
		for _, t := range s.Tests {
			if chooses(f, s, t) {
				tests++
				fmt.Fprintf(&b, "  %s: %s\n", s.File, t.Description)
			}
		}
	}
	head := fmt.Sprintf("%d tests of %d files would run, as far as their requirements are met:\n", tests, len(kept))
	dropped := runner.DropPlan(kept)
	if len(dropped) > 0 {
		b.WriteString("these collections would be dropped:\n")
	}
	for _, namespace := range dropped {
		fmt.Fprintf(&b, "  %s\n", namespace)
	}
	return head + b.String()
}

// reporters returns the requested reports, the one on standard output first. done
// closes their files.
func (r *runFlags) reporters(c *call, suites []*specs.Suite) (all []*report.Reporter, done func() error, err error) {
	files, done, err := r.reports.open("suite", filesOf(suites))
	if err != nil {
		return nil, nil, err
	}
	return append([]*report.Reporter{report.New("standard output", c.text(r.people), c.out())}, files...), done, nil
}

// sameFile reports whether two names refer to one file, which need not exist.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	if absolute, err := filepath.Abs(a); err == nil {
		if other, err := filepath.Abs(b); err == nil && absolute == other {
			return true
		}
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// run runs the suites and writes the reports. If standard
// output fails, the run ends as if it were interrupted: its report would be lost.
func (c *call) run(ctx context.Context, reporters []*report.Reporter, suites []*specs.Suite, cfg runner.Config) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Notify = func(n result.Note) {
		n = c.secrets.note(n)
		for _, reporter := range reporters {
			reporter.Note(n)
		}
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
		_, _ = fmt.Fprintf(c.errors, "utr: %s: cleaning up (fail points, sessions, clients); this takes up to %s if a deployment does not answer, "+
			"and up to %s if a service removes clusters; a second signal quits at once\n", why, runner.InterruptedCleanUp, deployment.CloseLimit)
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// text is the report on standard output: with colour and a status line on a terminal,
// plain elsewhere.
func (c *call) text(p *peopleFlags) report.Generator {
	o := report.TextOptions{Verbose: *p.verbose, Timings: *p.timings, Slowest: *p.slowest}
	columns, terminal := c.terminal()
	terminal = terminal && c.env(envTerminal) != "dumb"
	o.Color = terminal && c.env(envNoColor) == ""
	text := report.Cells(report.Text(o))
	if *p.annotations || c.env(envActions) == "true" && !p.flags.Changed("annotations") {
		text = report.Annotated(text)
	}
	if p.past {
		return text
	}
	if !terminal {
		return report.Files(text, *p.timings)
	}
	width := func() int {
		if now, ok := c.terminal(); ok {
			columns = now
		}
		return columns
	}
	return report.Progress(text, report.ProgressOptions{Width: width})
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
	words := strings.Fields(name)
	var args []string
	if len(words) > 0 && slices.Contains([]string{"single", "replicaset", "sharded", "load-balanced"}, words[0]) {
		args = append(args, "--topology", words[0])
	} else if *r.deployment.topology != topologyAuto {
		args = append(args, "--topology", *r.deployment.topology)
	}
	if target, _ := r.flags.target(); target != onEmbedded { // the servers have a version of their own
		return args
	}
	version := *r.deployment.version
	if (version == "" || version == deployment.AnyVersion) && len(words) > 1 {
		if _, err := specs.ParseVersion(words[1]); err == nil {
			version = words[1]
		}
	}
	if version != "" {
		args = append(args, "--server-version", version)
	}
	return args
}
