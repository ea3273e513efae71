package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/compare"
	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

type compareFlags struct {
	flags      *flags
	deployment *deploymentFlags
	engines    listFlag
	run, skip  *patternsFlag
	timeout    *time.Duration
	jobs       *int
	backoff    *string
	generate   *int
	seed       *int
	limit      *int
	write      *string
	json       *string
	known      *string
	verbose    *bool
}

func compareCommand() *command {
	return &command{
		name:      "compare",
		summary:   "hold two engines against each other",
		arguments: "[PATH…]",
		details: `Runs suites through two engines, each on embedded deployments of its own, and
sets side by side what they showed: verdicts, outcomes of operations, and the
commands of every client with all that is chance folded away (addresses, ids,
times). An engine is a name, or a name and one of its policies, as in
reference:retryable-reads@2024.

With --generate, operations and faults are put together by chance instead of
read from suites: error codes and labels, connections that break, replies that
are lost or late, write concern errors, on the first to the fourth attempt. A
schedule that differs is shrunk to the smallest that does, and with --write
its suite is written, which the left engine passes.

A difference may be explained: ` + "`utr compare --deviations`" + ` prints what was decided
by the text of the specifications. Exit code 1 if any other one is found.`,
		examples: []example{
			{"utr compare --engine reference --engine driver retryable-reads", "the suites that utr carries, on both engines"},
			{"utr compare --generate 1000 --seed 7 --topology all", "a thousand schedules on all four topologies"},
			{"utr compare --engine reference --engine reference:retryable-reads@2024 client-backpressure", "two revisions of the specification"},
		},
		words: builtIn,
		declare: func(f *flags) action {
			r := &compareFlags{flags: f}
			r.deployment = f.deployment(topologyAuto, topologyAuto, topologyAll)
			f.add(&r.engines, "engine", "NAME[:POLICY]", "one of the two engines (default reference and driver)")
			r.run = f.patterns("run", "compare only tests that match; may be repeated")
			r.skip = f.patterns("skip", "leave out tests that match; may be repeated")
			r.timeout = f.duration("timeout", "longest time for one test (default "+runner.DefaultTimeout.String()+")")
			r.jobs = f.number("jobs", "N", 1, 1, "tests that run at once on each side (default 1)")
			r.backoff = f.choice("backoff", backoffReal, "whether the reference engine sleeps its backoff delays (default "+backoffReal+")", backoffReal, backoffNone)
			r.known = f.file("known-failing", "tests that the second engine is expected to fail, one a line: pattern # reason")
			r.generate = f.number("generate", "N", 0, 1, "compare N generated schedules instead of suites")
			r.seed = f.number("seed", "S", 1, 0, "seed of the generated schedules (default 1)")
			r.limit = f.number("limit", "N", 20, 0, "how many differing schedules are shrunk (default 20)")
			r.write = f.text("write", "DIR", "", "write the suites of differing schedules into this directory")
			r.json = f.file("json", "write a record for each difference as JSON lines", ".yml", ".yaml")
			r.verbose = f.toggle("v", "tell the explained differences, too, and why tests were not compared")
			deviations := f.toggle("deviations", "print the table of decided differences, as Markdown, and stop")
			return func(ctx context.Context, c *call) error {
				if *deviations {
					return c.print(compare.Markdown())
				}
				return r.act(ctx, c)
			}
		},
	}
}

func (r *compareFlags) act(ctx context.Context, c *call) error {
	generated := r.flags.given("generate")
	switch {
	case generated && len(c.paths) > 0:
		return usage("compare: --generate makes schedules instead of reading suites; name no path with it")
	case !generated && len(c.paths) == 0:
		return usage("compare: name suites, or --generate N")
	case generated && *r.known != "":
		return usage("compare: --known-failing names tests of suites, and --generate reads none")
	case !generated && (r.flags.given("seed") || r.flags.given("write") || r.flags.given("limit")):
		return usage("compare: --seed, --write and --limit go with --generate")
	}
	if len(r.engines) == 0 {
		r.engines = listFlag{"reference", "driver"}
	}
	if len(r.engines) != 2 {
		return usage("compare: two engines are compared, and %d are named", len(r.engines))
	}
	if err := r.deployment.check(); err != nil {
		return err
	}
	var suites []*specs.Suite
	filter := runner.Filter{Run: *r.run, Skip: *r.skip}
	if !generated {
		loaded, err := c.load(ctx, specs.Options{})
		switch {
		case errors.Is(err, errInterrupted):
			return err
		case err != nil:
			return invalid(err)
		}
		suites = loaded.Suites
		if len(chosen(suites, filter)) == 0 {
			return usage("compare: %s", strings.Join(runner.Unused(suites, runner.Config{Filter: filter}), "; "))
		}
	}
	var sides [2]compare.Side
	for i := range sides {
		side, done, err := r.side(ctx, c, r.engines[i], filter)
		if err != nil {
			return err
		}
		defer done()
		sides[i] = side
	}
	var err error
	if sides[1].Config.KnownFailing, err = knownFailing(*r.known); err != nil {
		return err
	}
	out := &comparison{sides: sides, verbose: *r.verbose}
	var counts compare.Counts
	if generated {
		counts, err = r.schedules(ctx, c, out)
	} else {
		counts, err = out.suites(ctx, suites)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if err := writeFile(*r.json, out.json); err != nil {
		return err
	}
	if err := c.print(out.text.String() + counts.String() + "\n"); err != nil {
		return err
	}
	switch {
	case counts.Different > 0 || out.problems > 0:
		return exit(ExitFailed)
	case counts.Same+counts.Explained == 0:
		return usage("compare: nothing was compared: no test ran on both engines")
	}
	return nil
}

// side opens one of the two engines, with deployments of its own.
func (r *compareFlags) side(ctx context.Context, c *call, name string, filter runner.Filter) (compare.Side, func(), error) {
	base, policy, _ := strings.Cut(name, ":")
	newEngine, ok := c.program.Engines[base]
	if !ok {
		return compare.Side{}, nil, usage("compare: there is no engine %q, only %s", base, strings.Join(slices.Sorted(maps.Keys(c.program.Engines)), ", "))
	}
	engine, err := newEngine(EngineOptions{Policy: policy, Backoff: *r.backoff})
	if err != nil {
		return compare.Side{}, nil, usage("compare: %w", err)
	}
	source, err := c.program.Embedded(ctx, r.deployment.options())
	if err != nil {
		_ = engine.Close()
		return compare.Side{}, nil, err
	}
	done := func() { _, _ = engine.Close(), source.Close() }
	return compare.Side{Name: name, Config: runner.Config{
		Engine: engine, Source: source, Jobs: *r.jobs, Timeout: *r.timeout, Filter: filter,
		AllTopologies: *r.deployment.topology == topologyAll,
	}}, done, nil
}

// schedules compares generated schedules.
func (r *compareFlags) schedules(ctx context.Context, c *call, out *comparison) (compare.Counts, error) {
	var topologies []string
	switch t := *r.deployment.topology; t {
	case topologyAuto:
	case topologyAll:
		topologies = []string{string(deployment.ReplicaSet), string(deployment.Sharded), string(deployment.LoadBalanced), string(deployment.Single)}
	default:
		topologies = []string{t}
	}
	// Each schedule says itself where it runs.
	for i := range out.sides {
		out.sides[i].Config.AllTopologies = false
	}
	g, err := compare.Storm(ctx, compare.NewGenerator(int64(*r.seed), topologies...), *r.generate, *r.limit, out.sides[0], out.sides[1], c.compareProgress())
	if err != nil {
		return compare.Counts{}, err
	}
	out.generated(g)
	if *r.write == "" {
		return g.Counts(), nil
	}
	if err := os.MkdirAll(*r.write, 0o755); err != nil {
		return compare.Counts{}, fmt.Errorf("--write: %w", err)
	}
	for i, f := range g.Findings {
		if f.Suite == "" {
			continue
		}
		name := filepath.Join(*r.write, fmt.Sprintf("seed-%d-%03d-%s.yml", *r.seed, i+1, f.Smallest.Operation))
		if err := os.WriteFile(name, []byte(f.Suite), 0o644); err != nil {
			return compare.Counts{}, fmt.Errorf("--write: %w", err)
		}
		fmt.Fprintf(&out.text, "wrote %s\n", name)
	}
	return g.Counts(), nil
}

// compareProgress draws a status line on a terminal.
func (c *call) compareProgress() func(compare.Progress) {
	if c.program.Terminal == nil {
		return nil
	}
	if _, ok := c.program.Terminal(); !ok {
		return nil
	}
	return func(p compare.Progress) {
		_, _ = fmt.Fprintf(c.errors, "\r%d of %d schedules, %d differ ", p.Done, p.Total, p.Findings)
		if p.Done == p.Total {
			_, _ = fmt.Fprintf(c.errors, "\r%50s\r", "")
		}
	}
}

// comparison collects what is said of differences.
type comparison struct {
	sides   [2]compare.Side
	verbose bool
	text    strings.Builder
	records []differenceRecord
	// problems are faults of the runs themselves, such as a known failure that
	// passed: they fail the comparison.
	problems int
}

// differenceRecord is a line of --json.
type differenceRecord struct {
	File        string               `json:"file,omitempty"`
	Test        string               `json:"test,omitempty"`
	Deployment  string               `json:"deployment,omitempty"`
	Schedule    string               `json:"schedule,omitempty"`
	Smallest    string               `json:"smallest,omitempty"`
	Flaky       bool                 `json:"flaky,omitempty"`
	NotCompared string               `json:"notCompared,omitempty"`
	Known       string               `json:"known,omitempty"`
	Deviation   string               `json:"deviation,omitempty"`
	Differences []compare.Difference `json:"differences,omitempty"`
}

func (o *comparison) suites(ctx context.Context, suites []*specs.Suite) (compare.Counts, error) {
	pairs, problems, err := compare.Run(ctx, suites, o.sides[0], o.sides[1])
	if err != nil {
		return compare.Counts{}, err
	}
	for _, p := range problems {
		fmt.Fprintf(&o.text, "problem: %s\n", p)
	}
	o.problems = len(problems)
	for i := range pairs {
		p := &pairs[i]
		record := differenceRecord{File: p.Test.File, Test: p.Test.Description, Deployment: p.Test.Deployment, NotCompared: p.NotCompared, Differences: p.Differences}
		name := fmt.Sprintf("%s: %s (%s)", p.Position, p.Test.Description, p.Test.Deployment)
		switch {
		case p.NotCompared != "":
			if o.verbose {
				fmt.Fprintf(&o.text, "not compared: %s: %s\n", name, p.NotCompared)
			}
		case p.Known != "":
			record.Known = p.Known
			if o.verbose {
				fmt.Fprintf(&o.text, "known: %s: %s\n", name, p.Known)
			}
		case len(p.Differences) == 0:
			continue
		case p.Deviation != nil:
			record.Deviation = p.Deviation.ID
			if o.verbose {
				fmt.Fprintf(&o.text, "explained by %s: %s\n%s", p.Deviation.ID, name, p.Describe(o.sides[0].Name, o.sides[1].Name))
			}
		default:
			fmt.Fprintf(&o.text, "different: %s\n%s", name, p.Describe(o.sides[0].Name, o.sides[1].Name))
		}
		o.records = append(o.records, record)
	}
	return compare.Count(pairs), nil
}

func (o *comparison) generated(g *compare.Generated) {
	for _, f := range g.Findings {
		o.finding("different", f, false)
	}
	for _, f := range g.Flaky {
		o.finding("different once, and not again", f, true)
	}
	for _, d := range compare.Deviations() {
		if n := g.Explained[d.ID]; n > 0 {
			fmt.Fprintf(&o.text, "%d explained by %s: %s %s\n", n, d.ID, d.Engine, d.Title)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(g.NotCompared)) {
		fmt.Fprintf(&o.text, "%d not compared: %s\n", g.NotCompared[reason], reason)
	}
}

func (o *comparison) finding(what string, f compare.Finding, flaky bool) {
	fmt.Fprintf(&o.text, "%s: %s\n", what, f.Schedule)
	if f.Smallest.String() != f.Schedule.String() {
		fmt.Fprintf(&o.text, "  shrunk to: %s\n", f.Smallest)
	}
	o.text.WriteString(f.Pair.Describe(o.sides[0].Name, o.sides[1].Name))
	o.records = append(o.records, differenceRecord{Schedule: f.Schedule.String(), Smallest: f.Smallest.String(), Flaky: flaky, Differences: f.Pair.Differences})
}

func (o *comparison) json(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, r := range o.records {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
