package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/program/internal/compare"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/reference"
	"github.com/unified-test-runner/utr/runner"
	"github.com/unified-test-runner/utr/specs"
)

type compareFlags struct {
	run                   *runFlags // of both sides, without engine and mode of fail points
	engines               []string
	failPoints            []deployment.FailPointMode
	backoff               reference.Backoff
	generate, seed, limit int
	write, json           string
	known                 []string // names of files
	verbose               bool

	sides    [2]compare.Side
	text     strings.Builder
	records  []differenceRecord
	counts   compare.Counts
	problems int // of the runs themselves, such as a known failure that passed; they fail the comparison
}

func compareCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:         "compare [PATH...]",
		Short:       "Compare two engines",
		Annotations: map[string]string{usedMost: "engine generate run topology uri known-failing verbose json"},
		Long: `Runs suites on two engines, each with its own deployments, and compares verdicts,
outcomes of operations, and the commands of every client. What varies from run to run
(addresses, ids, times) is normalized. An engine may be followed by one of its policies,
as in reference:retryable-reads@2024. With --fail-points twice, the same engine shows how
the fail points of the proxy differ from the fail points of a server. On an existing deployment
(--uri, --cluster id:ID) one engine runs after the other.

With --generate, utr generates random operations and faults: error codes and labels,
broken connections, lost or late replies, and write concern errors, on the first to the
fourth attempt. It shrinks a schedule with a difference to the smallest one that still
differs; with --write it writes a suite for that one, which the left engine passes.

The specifications explain some differences: utr compare --deviations lists those.

Exit codes: 0 no unexplained differences, 1 unexplained differences, 2 bad usage or
invalid suite, 3 broken.`,
		Example: `# built-in suites, on both engines
utr compare --engine reference --engine driver retryable-reads
# a thousand schedules on all four topologies
utr compare --generate 1000 --seed 7 --topology all
# two revisions of the specification
utr compare --engine reference --engine reference:retryable-reads@2024 client-backpressure
# the fail points of a server, and of the proxy
utr compare --engine driver --engine driver --fail-points server --fail-points proxy \
  retryable-writes`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		r := &compareFlags{seed: 1, limit: 20, run: newRun(f)}
		f.group = "Engines"
		f.texts(&r.engines, "engine", "NAME[:POLICY]", "one of the two engines (default reference and driver)")
		f.enginesFlag()
		f.backoff(&r.backoff, "")
		r.run.declareTarget(f, func() {
			list(f, &r.failPoints, "fail-points", "MODE",
				executesFailPoints+" (default auto); for both engines, or once for each",
				oneOf[deployment.FailPointMode](failPointModes()), failPointModes()...)
		})
		f.group = "Tests"
		f.filter(&r.run.config.Filter, "run")
		f.knownFailing(&r.known, "tests that the second engine is expected to fail, one per line: pattern # reason "+
			"(default the list of the engine)")
		f.duration(&r.run.config.Timeout, "timeout", "time limit for one test (default "+runner.DefaultTimeout.String()+")")
		r.run.config.Jobs = 0
		f.number(&r.run.config.Jobs, "jobs", "N", 1,
			"tests to run concurrently on each side (default half of what the machine "+
				"allows)")
		f.group = "Generated schedules"
		f.number(&r.generate, "generate", "N", 1, "compare N generated schedules instead of suites")
		f.number(&r.seed, "seed", "S", 0, "seed of the generated schedules")
		f.number(&r.limit, "limit", "N", 0, "how many schedules with a difference to shrink")
		f.text(&r.write, "write", "DIR", "write suites for the schedules with a difference into this folder")
		f.group = "Output"
		f.file(&r.json, "json", "write a JSON line for each difference", ".yml", ".yaml")
		f.toggle(&r.verbose, "verbose", "also print explained differences, and why tests were not compared")
		deviations := false
		f.toggle(&deviations, "deviations", "print the table of explained differences as Markdown, and exit")
		return func(ctx context.Context, c *invocation) error {
			if deviations {
				return c.print(compare.Markdown())
			}
			return r.act(ctx, c)
		}
	})
}

// complete checks the flags and fills in what both engines share.
func (r *compareFlags) complete(paths []string) error {
	isReference := func(name string) bool { return strings.HasPrefix(name+":", referenceEngine+":") }
	if len(r.engines) == 0 {
		r.engines = []string{referenceEngine, "driver"}
	}
	switch {
	case r.generate > 0 && len(paths) > 0:
		return usage("--generate cannot be used with suites")
	case r.generate == 0 && len(paths) == 0:
		return usage("requires suites, or --generate N")
	case len(r.engines) != 2:
		return usage("requires two engines, not %d", len(r.engines))
	case len(r.failPoints) > 2:
		return usage("--fail-points: one for both engines or one for each, not %d", len(r.failPoints))
	case len(r.failPoints) < 2:
		r.failPoints = slices.Repeat(append(r.failPoints, deployment.FailPointsAuto)[:1], 2)
	}
	if r.backoff == reference.BackoffNone && !slices.ContainsFunc(r.engines, isReference) {
		return usage("--backoff none is for the engine %s, which is not one of the two", referenceEngine)
	}
	return nil
}

func (r *compareFlags) act(ctx context.Context, c *invocation) error {
	if err := r.complete(c.paths); err != nil {
		return err
	}
	c.verbose = r.verbose
	suites, err := c.loadFiltered(ctx, r.run.config.Filter)
	if err != nil {
		return err
	}
	if err := r.onBothSides(ctx, c, suites); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	if err := reportfile.Write(r.json, reportfile.Text(c.secrets.Redact(jsonLines(r.records)))); err != nil {
		return err
	}
	err = c.conclude(c.secrets.Redact(r.text.String()+r.counts.String())+"\n", r.counts[compare.Different] > 0 ||
		r.problems > 0)
	if err == nil && r.counts[compare.Same]+r.counts[compare.Explained] == 0 {
		return usage("nothing was compared: no test ran on both engines")
	}
	return err
}

// onBothSides opens both engines, each with its deployments, and compares them.
func (r *compareFlags) onBothSides(ctx context.Context, c *invocation, suites []*specs.Suite) error {
	claimed := filterSuites(suites, r.run.config.Filter)
	if r.generate > 0 {
		example, err := compare.Example()
		if err != nil {
			return err
		}
		claimed = []*specs.Suite{example}
	}
	left, err := r.side(c, 0, nil, claimed)
	if err != nil {
		return err
	}
	right, err := r.side(c, 1, r.known, claimed)
	if err != nil {
		return err
	}
	if r.run.usesExistingCluster() {
		right.run.lock = nil // the left side has it
	}
	return left.open(ctx, func(ctx context.Context, left *runPlan) error {
		r.sides[0].Config = left.config
		return right.open(ctx, func(ctx context.Context, right *runPlan) error {
			r.sides[1].Config = right.config
			if r.generate > 0 {
				return r.schedules(ctx, c)
			}
			return r.suites(ctx, suites)
		})
	})
}

// side names one of the sides and returns its plan.
func (r *compareFlags) side(c *invocation, i int, known []string, suites []*specs.Suite) (_ *runPlan, err error) {
	name := r.engines[i]
	base, policy := name, ""
	if !strings.HasPrefix(name, engineCommand) && !strings.HasPrefix(name, engineAddress) {
		base, policy, _ = strings.Cut(name, ":")
	}
	if _, err := orDefault(oneOf[string](policyNames()))(policy); err != nil {
		return nil, unknown("retry policy", policy, policyNames())
	}
	side := *r.run
	if side.named, err = c.engineNamed(base); err != nil {
		return nil, err
	}
	side.sharers, side.failPoints = len(r.engines), r.failPoints[i]
	if err := side.checkJobs(); err != nil {
		return nil, err
	}
	p := side.plan(c, suites)
	p.config.Jobs = cmp.Or(p.config.Jobs, max(1, side.jobs(c.program.Machine())/2))
	p.engine = reference.Options{Policy: policy}
	if base == referenceEngine {
		p.engine.Backoff = r.backoff
	}
	if r.failPoints[0] != r.failPoints[1] {
		name += " (fail points: " + string(side.failPoints) + ")"
	}
	r.sides[i] = compare.Side{Name: name, Shared: r.run.usesExistingCluster()}
	if r.generate > 0 {
		p.config.AllTopologies = false // schedules name their topology
	} else if p.config.KnownFailing, err = side.named.knownFailing(known); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *compareFlags) schedules(ctx context.Context, c *invocation) error {
	var topologies []string
	switch t := r.run.deployment.topology; t {
	case topologyAuto:
		if r.run.flags.target() != onEmbedded { // those that there are
			topologies = mapSlice(r.sides[0].Config.Source.Offers(),
				func(d deployment.Description) string { return string(d.Topology) })
			slices.Sort(topologies)
			topologies = slices.Compact(topologies)
		}
	case topologyAll:
		topologies = []string{string(deployment.ReplicaSet), string(deployment.Sharded), string(deployment.LoadBalanced),
			string(deployment.Single)}
	default:
		topologies = []string{t}
	}
	status := c.progress(c.errors)
	g, err := compare.Storm(ctx, compare.NewGenerator(int64(r.seed), topologies...), r.generate, r.limit, r.sides[0],
		r.sides[1], func(done, findings int) {
			if status(fmt.Sprintf("%d of %s, %d differ", done, plural.Of(r.generate, "schedule"),
				findings)); done == r.generate {
				status("")
			}
		})
	if err != nil {
		return err
	}
	r.generated(g)
	if r.write != "" {
		if err := r.writeSuites(g); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
	}
	return nil
}

func (r *compareFlags) writeSuites(g *compare.Generated) error {
	if err := os.MkdirAll(r.write, 0o755); err != nil {
		return err
	}
	for i, f := range g.Findings {
		if !f.Shrunk {
			continue
		}
		name := filepath.Join(r.write, fmt.Sprintf("seed-%d-%03d-%s.yml", r.seed, i+1, f.Smallest.Operation))
		suite, err := f.Pair.Suite(f.Smallest)
		if err == nil {
			err = os.WriteFile(name, []byte(suite), 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&r.text, "wrote %s\n", name)
	}
	return nil
}

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

func (r *compareFlags) suites(ctx context.Context, suites []*specs.Suite) error {
	pairs, problems, err := compare.Run(ctx, suites, r.sides[0], r.sides[1])
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintf(&r.text, "problem: %s\n", p)
	}
	r.problems, r.counts = len(problems), compare.Count(pairs)
	for _, p := range pairs {
		kind := p.Kind()
		if kind == compare.Same {
			continue
		}
		record := differenceRecord{File: p.Test.File, Test: p.Test.Description, Deployment: p.Test.Deployment,
			NotCompared: p.NotCompared, Known: p.Known, Differences: p.Differences}
		what, details := "different", "\n"+p.Describe(r.sides[0].Name, r.sides[1].Name)
		switch {
		case p.NotCompared != "":
			what, details = "not compared", ": "+p.NotCompared+"\n"
		case p.Known != "":
			what, details = "known", ": "+p.Known+"\n"
		case p.Deviation != nil:
			record.Deviation = p.Deviation.ID
			what = "explained by " + p.Deviation.ID
		}
		if r.verbose || kind == compare.Different {
			fmt.Fprintf(&r.text, "%s: %s: %s (%s)%s", what, p.Position, p.Test.Description, p.Test.Deployment, details)
		}
		r.records = append(r.records, record)
	}
	return nil
}

func (r *compareFlags) generated(g *compare.Generated) {
	r.counts = g.Counts
	for _, f := range g.Findings {
		r.finding("different", f, false)
	}
	for _, f := range g.Flaky {
		r.finding("different once, but not again", f, true)
	}
	for _, d := range compare.Deviations() {
		if n := g.Explained[d.ID]; n > 0 {
			fmt.Fprintf(&r.text, "%d explained by %s: %s\n", n, d.ID, d.Title)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(g.NotCompared)) {
		fmt.Fprintf(&r.text, "%d not compared: %s\n", g.NotCompared[reason], reason)
	}
}

func (r *compareFlags) finding(what string, f compare.Finding, flaky bool) {
	fmt.Fprintf(&r.text, "%s: %s\n", what, f.Schedule)
	if f.Smallest.String() != f.Schedule.String() {
		fmt.Fprintf(&r.text, "  shrunk to: %s\n", f.Smallest)
	}
	r.text.WriteString(f.Pair.Describe(r.sides[0].Name, r.sides[1].Name))
	r.records = append(r.records, differenceRecord{Schedule: f.Schedule.String(), Smallest: f.Smallest.String(),
		Flaky: flaky, Differences: f.Pair.Differences})
}
