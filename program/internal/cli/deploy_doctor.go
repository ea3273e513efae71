package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/runner"
)

func doctorCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "doctor [PATH...]",
		Short: "Describe a deployment, and count the tests it would skip",
		Long: `Describes the deployment and the engine. With suites, also counts the tests that would
run there, and by reason those that would be skipped. It runs no tests. With --uri it
tries the rights that a run requires, and refuses collections that contain documents that
utr did not write, as a run does without --overwrite. It changes no data and takes no
lock, so that another run may use the deployment.

Exit codes: 0 the deployment can be used, 2 bad usage or invalid suites, 3 it cannot.`,
		Example: `# what is this cluster, and which of our tests can it run?
utr doctor --uri 'mongodb://localhost:27017/?replicaSet=rs0' all
# what do the official suites require that the embedded deployments lack?
utr doctor ../specifications/source`,
		ValidArgsFunction: completes(c.completeSuites, cobra.ShellCompDirectiveDefault),
	}, func(f *flags) action {
		d := &doctor{run: declareWhereAndHow(f)}
		f.group = "Output"
		f.toggle(&d.asJSON, "json", "print one JSON document")
		return d.act
	})
}

type doctor struct {
	run    *runFlags
	asJSON bool
}

type doctorReport struct {
	Engine      string             `json:"engine"`
	Deployments []deploymentReport `json:"deployments"`
	Runs        int                `json:"runs"`
	Skips       []skipReason       `json:"skips,omitempty"`
}

type deploymentReport struct {
	Name           string   `json:"name"`
	Topology       string   `json:"topology"`
	Version        string   `json:"version"`
	Hosts          []string `json:"hosts,omitempty"`
	Auth           bool     `json:"auth"`
	AuthMechanisms []string `json:"authMechanisms,omitempty"`
	TestCommands   *bool    `json:"testCommands,omitempty"` // nil if unknown
	FailPoints     []string `json:"failPoints,omitempty"`   // of the proxy, if it executes them
	Lacks          []string `json:"lacks,omitempty"`
}

type skipReason struct {
	Tests  int    `json:"tests"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

func (d *doctor) act(ctx context.Context, c *invocation) error {
	suites, err := c.loadFiltered(ctx, runner.Filter{})
	if err != nil {
		return err
	}
	d.run.lock = nil // another run may continue
	return d.run.plan(c, suites).open(ctx, d.examine)
}

func (d *doctor) examine(ctx context.Context, p *runPlan) error {
	c, cfg, suites := p.inv, p.config, p.suites
	about, err := cfg.Engine.Describe(ctx)
	if err != nil {
		return err
	}
	found := doctorReport{Engine: about.Name + " " + about.Version,
		Deployments: mapSlice(cfg.Source.Offers(), newDeploymentReport)}
	cfg = runner.Config{Engine: cfg.Engine, Source: cfg.Source, AllTopologies: cfg.AllTopologies}
	skips, unusable := runner.Plan(ctx, suites, cfg)
	if unusable == nil && d.run.usesExistingCluster() {
		cfg.ServerAPI = p.config.ServerAPI
		unusable = overwritable(runner.CheckRights(ctx, suites, cfg, d.run.overwrite))
	}
	found.count(skips)
	text := jsonPage(found)
	if !d.asJSON {
		text = found.text(len(suites) > 0 && unusable == nil)
	}
	return cmp.Or(c.print(c.secrets.Redact(text)), unusable)
}

func newDeploymentReport(o deployment.Description) deploymentReport {
	version := fmt.Sprintf("%d.%d.%d", o.Version[0], o.Version[1], o.Version[2])
	return deploymentReport{o.Name, string(o.Topology), version, o.Servers, o.Auth, o.AuthMechanisms,
		o.TestCommands(), o.FailPoints, mapSlice(o.Lacks, func(f deployment.Feature) string { return string(f) })}
}

func (x *doctorReport) count(skips []*runner.Skip) {
	reasons := map[skipReason]int{}
	for _, skip := range skips {
		if skip == nil {
			x.Runs++
		} else {
			reasons[skipReason{0, string(skip.Kind), skip.Reason}]++
		}
	}
	for reason, n := range reasons {
		reason.Tests = n
		x.Skips = append(x.Skips, reason)
	}
	slices.SortFunc(x.Skips, func(a, b skipReason) int {
		return cmp.Or(cmp.Compare(b.Tests, a.Tests), cmp.Compare(a.Reason, b.Reason))
	})
}

func (x *doctorReport) text(withTests bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine %s\n", x.Engine)
	for _, d := range x.Deployments {
		words := []string{d.Version, "no access control"}
		if d.Auth {
			words[1] = "access control " + strings.Join(d.AuthMechanisms, ", ")
		}
		switch {
		case d.FailPoints != nil:
			words = append(words, "the proxy executes fail points")
		case d.TestCommands == nil:
		case *d.TestCommands:
			words = append(words, "test commands")
		default:
			words = append(words, "no test commands: fail points cannot be set")
		}
		for _, feature := range d.Lacks {
			words = append(words, "no "+feature)
		}
		words = append(words, d.Hosts...)
		fmt.Fprintf(&b, "%s: %s\n", d.Name, strings.Join(words, "; "))
	}
	if withTests {
		skipped := 0
		for _, s := range x.Skips {
			skipped += s.Tests
		}
		fmt.Fprintf(&b, "%s would run, %d would be skipped\n", plural.Of(x.Runs, "test"), skipped)
		for _, s := range x.Skips {
			fmt.Fprintf(&b, "%6d  %s: %s\n", s.Tests, s.Kind, s.Reason)
		}
	}
	return b.String()
}
