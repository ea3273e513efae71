package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/internal/text/suggest"
	"github.com/unified-test-runner/utr/program/internal/prose"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// proseFlags are the flags and the state of utr prose.
type proseFlags struct {
	run  *runFlags
	list bool
	json string

	tests   []prose.Test
	policy  *retry.Policy
	engines map[float64]engine.Engine // by jitter
	records []proseRecord
	shared  engine.Engine
}

func proseCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "prose [NAME...]",
		Short: "Run the prose tests of the retry specifications",
		Long: `Runs the tests that Retryable Reads, Retryable Writes and Client Backpressure require of
every driver but that the Unified Test Format cannot express: fail points that change
between two attempts, the server of each attempt, and how long backoffs take. NAME is a
test or the beginning of its name, such as reads or writes-6.

Each test runs on the first topology that it allows, or with --topology all on each of
them. A test that does not apply to the policy, or that requires what the deployment or
the engine lacks, is listed with the reason.

Exit codes: 0 all tests that ran passed, 1 a test failed, 2 bad usage or no test could
run, 3 broken or interrupted.`,
		Example: `# all of them, on embedded deployments
utr prose
# the tests of retryable writes, on an existing replica set
utr prose --uri 'mongodb://localhost:27017/?replicaSet=rs0' writes
# the requirements of December 2025
utr prose --policy client-backpressure@2025-12 backpressure`,
		ValidArgsFunction: completes(proseNames, cobra.ShellCompDirectiveNoFileComp),
	}, func(f *flags) action {
		p := &proseFlags{run: declareWhereAndHow(f), engines: map[float64]engine.Engine{}}
		f.group = "Output"
		f.toggle(&p.list, "list", "list the tests with their sections, and exit")
		f.file(&p.json, "json", "write a JSON line for each test", ".yml", ".yaml")
		return p.act
	})
}

func proseNames() []string {
	return mapSlice(prose.Tests(), func(t prose.Test) string { return t.Name })
}

// selectProse returns the tests with these names, or whose names begin with them. No names select all.
func selectProse(names []string) ([]prose.Test, error) {
	all := prose.Tests()
	selects := func(name string, t prose.Test) bool {
		rest, ok := strings.CutPrefix(t.Name, name)
		return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t prose.Test) bool { return selects(name, t) }) {
			return nil, usage("unknown prose test %q: utr prose --list lists them%s", name, suggest.Hint(name, proseNames()))
		}
	}
	return slices.DeleteFunc(all, func(t prose.Test) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return selects(name, t) })
	}), nil
}

type proseRecord struct {
	Name          string  `json:"name"`
	Specification string  `json:"specification"`
	Section       string  `json:"section"`
	Deployment    string  `json:"deployment,omitempty"`
	Status        string  `json:"status"` // passed, failed or skipped
	Reason        string  `json:"reason,omitempty"`
	Seconds       float64 `json:"seconds"`
}

func (p *proseFlags) act(ctx context.Context, c *invocation) error {
	tests, err := selectProse(c.paths)
	if err != nil {
		return err
	}
	if p.list {
		var b strings.Builder
		for _, t := range tests {
			fmt.Fprintf(&b, "%s: %s, %s\n    policies %s\n", t.Name, t.Specification(), t.Section,
				strings.Join(t.Policies, ", "))
		}
		return c.print(b.String())
	}
	p.tests, p.policy = tests, policyNamed(p.run.engine.Policy)
	return p.run.plan(c, nil).open(ctx, p.runAll)
}

func (p *proseFlags) runAll(ctx context.Context, plan *runPlan) error {
	p.shared = plan.config.Engine
	defer func() {
		for _, e := range p.engines {
			_ = e.Close()
		}
	}()
	if p.run.usesExistingCluster() {
		uses := &specs.Suite{InitialData: []specs.CollectionData{{DatabaseName: prose.DatabaseName,
			CollectionName: prose.CollectionName}}}
		if err := plan.claim(ctx, []*specs.Suite{uses}); err != nil {
			return err
		}
	}
	for _, t := range p.tests {
		if err := p.runTest(ctx, plan.inv, plan.config.Source, t); err != nil {
			return err
		}
	}
	return p.conclude(plan.inv)
}

func (p *proseFlags) runTest(ctx context.Context, c *invocation, source deployment.Source, t prose.Test) (err error) {
	offers, why := p.offers(source.Offers(), t)
	if why != "" {
		return p.record(c, t, "", &prose.Unmet{What: why}, 0)
	}
	for _, i := range offers {
		begun, name := time.Now(), ""
		setting := prose.Setting{Engine: p.engine, Constants: constants(p.policy)}
		var d deployment.Deployment
		if i >= 0 {
			if d, err = source.Acquire(ctx, i); err != nil {
				return err
			}
			setting.Deployment, name = d, d.Description().Name
		}
		failed := t.Check(ctx, setting)
		if d != nil {
			unclean := (*prose.Unclean)(nil)
			source.Release(d, errors.As(failed, &unclean))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.record(c, t, name, failed, time.Since(begun)); err != nil {
			return err
		}
	}
	return nil
}

// offers returns the indexes of the deployments for a test, -1 if it requires none, or why none fits.
func (p *proseFlags) offers(offers []deployment.Description, t prose.Test) (chosen []int, why string) {
	if !slices.Contains(t.Policies, p.policy.Name) {
		return nil, "it does not apply to the policy " + p.policy.Name
	}
	if len(t.Needs.Topologies) == 0 {
		return []int{-1}, ""
	}
	used := map[deployment.Topology]bool{}
	for i, o := range offers {
		fits := slices.Contains(t.Needs.Topologies, string(o.Topology)) &&
			slices.Compare(o.Version[:2], t.Needs.Version[:]) >= 0
		if fits && !used[o.Topology] && (len(chosen) == 0 || p.run.deployment.topology == topologyAll) {
			used[o.Topology], chosen = true, append(chosen, i)
		}
	}
	if len(chosen) == 0 {
		why = fmt.Sprintf("it requires MongoDB %d.%d, %s", t.Needs.Version[0], t.Needs.Version[1],
			strings.Join(t.Needs.Topologies, " or "))
	}
	return chosen, why
}

// engine returns the engine of the run, or one with a fixed jitter.
func (p *proseFlags) engine(jitter *float64) (engine.Engine, error) {
	switch {
	case jitter == nil:
		return p.shared, nil
	case p.run.driver != referenceEngine:
		return nil, &prose.Unmet{What: "it sets the jitter of the driver, which only the engine " +
			referenceEngine + " allows"}
	case p.engines[*jitter] == nil:
		options := p.run.engine
		options.Random = func() float64 { return *jitter }
		e, err := p.run.named.open(options)
		if err != nil {
			return nil, err
		}
		p.engines[*jitter] = e
	}
	return p.engines[*jitter], nil
}

// constants returns the constants of a policy, or of the current one if the policy has no client backpressure.
func constants(p *retry.Policy) prose.Constants {
	o := p.Overload
	if o == nil {
		o = policyNamed("").Overload
	}
	var c prose.Constants
	for n := range o.MaxRetries {
		c.Backoffs = append(c.Backoffs, min(o.MaxBackoff, o.BaseBackoff<<(n+1+o.Exponent)))
	}
	if o.Bucket != nil {
		c.Tokens = int(o.Bucket.Capacity / retry.Token)
	}
	return c
}

// record records and prints the result of a test.
func (p *proseFlags) record(c *invocation, t prose.Test, where string, err error, took time.Duration) error {
	r := proseRecord{Name: t.Name, Specification: t.Specification(), Section: t.Section, Deployment: where,
		Status:  "passed",
		Seconds: took.Seconds()}
	lacking, unsupported := (*prose.Unmet)(nil), (*result.Error)(nil)
	switch {
	case err == nil:
	case errors.As(err, &lacking):
		r.Status, r.Reason = "skipped", lacking.What
	case errors.As(err, &unsupported) && unsupported.Unsupported != "":
		r.Status, r.Reason = "skipped", "the engine does not support "+unsupported.Unsupported
	default:
		r.Status, r.Reason = "failed", err.Error()
	}
	r.Reason = c.secrets.Redact(r.Reason)
	p.records = append(p.records, r)
	mark := map[string]string{"passed": "✔", "failed": "✘", "skipped": "–"}[r.Status]
	text := fmt.Sprintf("%s %s: %s, %s", mark, r.Name, r.Specification, r.Section)
	if r.Deployment != "" {
		text += " (" + r.Deployment + ")"
	}
	if r.Reason != "" {
		text += "\n    " + strings.ReplaceAll(r.Reason, "\n", "\n    ")
	}
	return c.print(text + "\n")
}

func (p *proseFlags) conclude(c *invocation) error {
	count := map[string]int{}
	for _, r := range p.records {
		count[r.Status]++
	}
	if err := reportfile.Write(p.json, reportfile.Text(jsonLines(p.records))); err != nil {
		return err
	}
	text := fmt.Sprintf("%d passed, %d failed, %d could not run\n", count["passed"], count["failed"], count["skipped"])
	err := c.conclude(text, count["failed"] > 0)
	if err == nil && count["passed"] == 0 {
		return usage("nothing was tested: no test could run")
	}
	return err
}
