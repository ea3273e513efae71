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

// The values of --topology beside the topologies.
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
	versions := "server version that the embedded deployment plays, such as 4.2 or 8.0"
	each := contains(choices, topologyAuto)
	if each {
		versions += ", or " + deployment.AnyVersion + ": for each test one that its requirements allow (default with --topology " + topologyAuto + ")"
	}
	return &deploymentFlags{
		topology: f.choice("topology", initial, "topology of the deployment that is started (default "+initial+")", choices...),
		version:  f.text("server-version", "VERSION", "", versions),
		any:      each,
		members:  f.within("members", "N", 3, 1, embedded.MaxServers, "members of a replica set (default 3)"),
		mongoses: f.within("mongoses", "N", 2, 1, embedded.MaxServers, "routers of a sharded cluster (default 2)"),
	}
}

func (d *deploymentFlags) check() error {
	if *d.version == "" || d.any && *d.version == deployment.AnyVersion {
		return nil
	}
	if !contains(embedded.Versions(), *d.version) {
		return usage("--server-version: embedded deployments play %s, not %q", strings.Join(embedded.Versions(), ", "), *d.version)
	}
	if v, err := specs.ParseVersion(*d.version); err == nil && v.Major < 5 && *d.topology == string(deployment.LoadBalanced) {
		return usage("--server-version %s: load balanced deployments came with 5.0", *d.version)
	}
	return nil
}

// options of the source that the flags ask for.
func (d *deploymentFlags) options() deployment.EmbeddedOptions {
	o := deployment.EmbeddedOptions{Version: *d.version, Members: *d.members, Mongoses: *d.mongoses}
	if *d.topology != topologyAuto && *d.topology != topologyAll {
		o.Topologies = []deployment.Topology{deployment.Topology(*d.topology)}
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
	run, skip    *patternsFlag
	failFast     *bool
	timeout      *time.Duration
	shuffle      *seedFlag
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

func runCommand() *command {
	return &command{
		name:      "run",
		summary:   "run suites",
		arguments: "PATH…",
		details: `Each PATH is a suite (.yml, .yaml, .json), a directory of suites, - for standard
input, or the name of a suite that utr carries, such as retryable-reads.

Suites run on deployments inside the process, or with --local on clusters of
mongod and mongos binaries that utr starts; with --topology auto each test gets
the first one that its requirements allow. With --uri they run on a deployment
that is there already; utr says which collections it will drop there before it
does.

Patterns of --run and --skip are regular expressions over "file: description".
A pattern that matches no test is a problem, and fails the run; that no test is
left to run is bad usage.

Exit codes: 0 all well, 1 tests failed or were flaky, 2 bad usage or invalid
suite, 3 broken: set-up, deployment, engine or a report failed, or the run was
interrupted.`,
		examples: []example{
			{"utr run retryable-reads", "the suites that utr carries"},
			{"utr run --topology all --jobs 4 specs/", "everything below a directory, on all four topologies"},
			{"utr run --run 'find.*NotWritablePrimary' -v specs/", "a few tests, each with a line of its own"},
			{"utr run --uri mongodb://localhost:27017/?replicaSet=rs0 specs/", "on a replica set of your own"},
			{"utr run --local ~/mongodb-8.0.4 --topology all --jobs 2 specs/", "on clusters that utr starts of these binaries"},
		},
		words:   builtIn,
		declare: func(f *flags) action { return declareRun(f).act },
	}
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
	r.deployment = f.deployment(topologyAuto, topologyAuto, topologyAll)
	r.uri = f.text("uri", "URI", "", "run on the deployment of this connection string (or $"+envURI+")")
	r.single = f.text("single-uri", "URI", "", "load balancer in front of a single mongos, for load balanced deployments (or $"+envSingleURI+")")
	r.jobs = f.number("jobs", "N", 1, 1, "tests that run at once, each on its own deployment (default 1)")
	r.run = f.patterns("run", "run only tests that match; may be repeated")
	r.skip = f.patterns("skip", "leave out tests that match; may be repeated")
	r.failFast = f.toggle("fail-fast", "begin no test after the first that failed or broke")
	r.timeout = f.duration("timeout", "longest time for one test (default "+runner.DefaultTimeout.String()+")")
	r.shuffle = &seedFlag{}
	f.add(r.shuffle, "shuffle", "[SEED]", "run tests in a random order; the seed gives an order again")
	r.count = f.number("count", "N", 1, 1, "how many times each test runs (default 1)")
	r.shard = f.text("shard", "I/N", "", "run one of N parts of the tests, such as 2/5; utr merge puts their reports together")
	r.durations = f.file("durations", "with --shard: a JSON report by which the parts take equally long; the same one for all")
	r.people = f.people()
	r.reports = f.reports()
	r.reseed = f.choice("reseed", "auto", "when initial data is made anew: where a test can have changed it, or before every test (default auto)", "auto", string(runner.ReseedAlways))
	r.dryRun = f.toggle("dry-run", "say what would run and which collections would be dropped, and stop")
	r.engine = f.text("engine", "NAME", "reference", "driver under test (default reference)")
	r.policy = f.text("policy", "NAME", "", "retry policy of the reference engine; utr explain lists them")
	r.backoff = f.choice("backoff", backoffReal, "whether the reference engine sleeps its backoff delays (default "+backoffReal+"); reports show them either way", backoffReal, backoffNone)
	r.knownFailing = f.file("known-failing", "tests that are expected to fail, one a line: pattern # reason, or pattern # until 2027-01-31: reason")
	r.retryFailed = f.number("retry-failed", "N", 0, 0, "how often a test that failed or broke is tried again (default 0); one that passes then is flaky, which is red")
	r.events = f.toggle("events", "keep events and operations of passing tests in reports")
	r.settings = f.settings()
	r.lock = f.lock()
	r.orchestrated = f.orchestration()
	r.local = f.local()
	r.cell = f.text("cell", "NAME", "", "name of the cell of a matrix that this run is: reports carry it")
	return r
}

// order is what a command line asks for, once nothing is wrong with it.
type order struct {
	uri, single secret.Text
	engine      NewEngine
	config      runner.Config // but for engine and source
}

// order judges the command line by itself: nothing is read but what flags
// name, and nothing connected to.
func (r *runFlags) order(c *call) (o order, err error) {
	if o.uri, o.single, err = r.target(c); err != nil {
		return o, err
	}
	if len(c.paths) == 0 {
		return o, usage("run: name a suite or a directory, or one that utr carries: %s", strings.Join(builtIn(), ", "))
	}
	found := false
	if o.engine, found = c.program.Engines[*r.engine]; !found {
		return o, usage("run: there is no engine %q, only %s", *r.engine, strings.Join(slices.Sorted(maps.Keys(c.program.Engines)), ", "))
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
		return usage("run: %s", strings.Join(runner.Unused(loaded.Suites, runner.Config{Filter: cfg.Filter}), "; "))
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
		return usage("run: %w", err)
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
	defer func() { // also after a panic: the lock of somebody's deployment goes with it
		switch closing := cfg.Source.Close(); {
		case closing == nil:
		case err == nil:
			err = fmt.Errorf("stopping the deployment: %w", closing)
		default:
			_, _ = fmt.Fprintf(c.errors, "utr: stopping the deployment: %s\n", closing)
		}
	}()
	defer func() { r.local.keep(ctx, err) }()
	cfg.Source = deployment.WithURIOptions(cfg.Source, r.settings.uriOptions)
	if uri.Reveal() != "" || r.orchestrated.touchesOthers() {
		c.announce(cfg.Source, chosen(loaded.Suites, cfg.Filter))
	}
	return c.run(ctx, reporters, loaded.Suites, cfg)
}

// target gives the connection strings, from flags before the environment. What
// is wrong with them is found before anything is connected to.
func (r *runFlags) target(c *call) (uri, single secret.Text, err error) {
	if err := r.orchestrated.check(c); err != nil || r.orchestrated.wanted() && !r.local.wanted() {
		return uri, single, err
	}
	if err := r.local.check(); err != nil || r.local.wanted() {
		return uri, single, err
	}
	for _, t := range []struct {
		to         *secret.Text
		name, from string
	}{{&uri, "uri", envURI}, {&single, "single-uri", envSingleURI}} {
		at := "$" + t.from
		*t.to = secret.New(c.env(t.from))
		if r.flags.given(t.name) {
			at = "--" + t.name
			if *t.to = secret.New(r.flags.set.Lookup(t.name).Value.String()); t.to.Reveal() == "" {
				return uri, single, usage("run: %s is empty", at)
			}
		}
		if t.to.Reveal() == "" {
			continue
		}
		if err := deployment.CheckURI(t.to.Reveal()); err != nil {
			return uri, single, usage("run: %s: %w", at, err)
		}
		if t.name == "uri" {
			err = r.ownDeployment(at)
		}
	}
	switch {
	case err != nil:
	case uri.Reveal() == "" && r.flags.given("single-uri"):
		err = usage("run: --single-uri goes with --uri, which is not there")
	case uri.Reveal() == "":
		err = r.deployment.check()
	}
	return uri, single, err
}

// ownDeployment refuses the flags that choose an embedded deployment where at
// names another one.
func (r *runFlags) ownDeployment(at string) error {
	for _, name := range []string{"topology", "server-version", "members", "mongoses", "auth", "tls"} {
		if r.flags.given(name) {
			return usage("run: --%s chooses an embedded deployment, and cannot be used with the connection string of %s", name, at)
		}
	}
	return nil
}

// config is the runner's configuration but for engine and source.
func (r *runFlags) config(c *call) (runner.Config, error) {
	cfg := runner.Config{
		Jobs:          *r.jobs,
		Filter:        runner.Filter{Run: *r.run, Skip: *r.skip},
		FailFast:      *r.failFast,
		Timeout:       *r.timeout,
		Shuffle:       r.shuffle.seed,
		Count:         *r.count,
		AllTopologies: *r.deployment.topology == topologyAll,
		Retries:       *r.retryFailed,
		KeepEvents:    *r.events,
		Rerun:         r.rerun(c),
		ServerAPI:     *r.settings.serverAPI,
		Cell:          *r.cell,
	}
	if err := r.reports.check("run"); err != nil {
		return cfg, err
	}
	if *r.cell != "" && cfg.AllTopologies {
		return cfg, usage("run: --cell cannot be used with --topology all: a cell has one verdict for each test")
	}
	if *r.reseed == string(runner.ReseedAlways) {
		cfg.Reseed = runner.ReseedAlways
	}
	if r.orchestrated.wanted() && !r.flags.given("jobs") {
		cfg.Jobs = r.orchestrated.jobs(*r.deployment.topology)
	}
	var err error
	if cfg.Shard, err = r.part(); err != nil {
		return cfg, err
	}
	cfg.KnownFailing, err = knownFailing(*r.knownFailing)
	return cfg, err
}

// part gives the shard that is wanted.
func (r *runFlags) part() (runner.Shard, error) {
	if !r.flags.given("shard") {
		if *r.durations != "" {
			return runner.Shard{}, usage("run: --durations goes with --shard, which is not there")
		}
		return runner.Shard{}, nil
	}
	s, err := runner.ParseShard(*r.shard)
	if err != nil {
		return s, usage("run: --shard %q: %w", *r.shard, err)
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

// ofCell keeps the verdicts of a cell, if there are any: others are of another
// engine or deployment, and may have taken another time.
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
	if uri.Reveal() != "" {
		return r.lock.open(ctx, c, deployment.ClusterOptions{
			URI: uri.Reveal(), SingleURI: single.Reveal(), FailPoints: runner.FailPoints(suites), ServerAPI: *r.settings.serverAPI,
		}, lost)
	}
	if r.orchestrated.wanted() {
		return r.orchestrated.source(ctx, c, r, lost)
	}
	if r.local.wanted() {
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

// announce says what will be dropped, before anything is.
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

// plan is what --dry-run says.
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

// reporters gives the reports that are wanted, that on standard output first.
// done closes their files.
func (r *runFlags) reporters(c *call, suites []*specs.Suite) (all []*report.Reporter, done func() error, err error) {
	files, done, err := r.reports.open("run", "suite", filesOf(suites))
	if err != nil {
		return nil, nil, err
	}
	return append([]*report.Reporter{report.New("standard output", c.text(r.people), c.out())}, files...), done, nil
}

// sameFile reports whether two names lead to one file, which need not be there.
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

// run runs the suites and writes the reports. A standard output that takes
// nothing more ends the run as an interruption does: nobody would see it.
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
	told := c.tellOfInterruption(ctx)
	summary, err := c.program.Run(reading, suites, cfg)
	told()
	if err != nil {
		return err
	}
	switch err := reporters[0].Err(); {
	case errors.Is(err, syscall.EPIPE):
		return errors.New("nobody reads the report any more: the run was cut short")
	case err != nil:
		return err
	}
	return exit(summary.ExitCode())
}

// tellOfInterruption says at once that an interruption was noticed: cleaning
// up takes long where a deployment does not answer. What it gives ends that.
func (c *call) tellOfInterruption(ctx context.Context) (end func()) {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		why := "interrupted"
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			why = cause.Error()
		}
		_, _ = fmt.Fprintf(c.errors, "utr: %s: cleaning up (fail points, sessions, clients), which a deployment that does not answer "+
			"can hold up for %s, and a service that takes clusters down for %s; a second signal quits at once\n", why, runner.InterruptedCleanUp, deployment.CloseLimit)
	})
	return func() {
		if !stop() {
			<-said
		}
	}
}

// text is the report for people: with colour and a status line on a terminal,
// plain elsewhere.
func (c *call) text(p *peopleFlags) report.Generator {
	o := report.TextOptions{Verbose: *p.verbose, Timings: *p.timings, Slowest: *p.slowest}
	columns, terminal := c.terminal()
	terminal = terminal && c.env(envTerminal) != "dumb"
	o.Color = terminal && c.env(envNoColor) == ""
	text := report.Cells(report.Text(o))
	if *p.annotations || c.env(envActions) == "true" && !p.flags.given("annotations") {
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

// rerun gives the command line that runs one test again. Secrets of the
// connection string are left for the reader to put in.
func (r *runFlags) rerun(c *call) func(result.TestID) []string {
	fixed := []string{"utr", "run"}
	add := func(name, value string) { fixed = append(fixed, "--"+name, value) }
	for _, name := range []string{"engine", "policy", "backoff", "reseed", "timeout", "members", "mongoses"} {
		if r.flags.given(name) {
			add(name, r.flags.set.Lookup(name).Value.String())
		}
	}
	fixed = append(fixed, r.settings.rerun()...)
	fixed = append(fixed, r.orchestrated.rerun(c)...)
	fixed = append(fixed, r.local.rerun()...)
	uri, single, _ := r.target(c)
	// What the environment says, it will say again.
	if r.flags.given("uri") {
		add("uri", uri.String())
	}
	if r.flags.given("single-uri") {
		add("single-uri", single.String())
	}
	return func(id result.TestID) []string {
		args := slices.Clone(fixed)
		if uri.Reveal() == "" {
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

// quotePattern gives the regular expression of a text, without control
// characters: neither a terminal nor a report changes what can be seen.
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

// sameDeployment gives the flags for the deployment of a short name, such as
// "replicaset 8.0".
func (r *runFlags) sameDeployment(name string) []string {
	words := strings.Fields(name)
	var args []string
	if len(words) > 0 && contains([]string{"single", "replicaset", "sharded", "load-balanced"}, words[0]) {
		args = append(args, "--topology", words[0])
	} else if *r.deployment.topology != topologyAuto {
		args = append(args, "--topology", *r.deployment.topology)
	}
	if r.orchestrated.wanted() || r.local.wanted() { // whose clusters have the version that they have
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
