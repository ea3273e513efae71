package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/experiment"
)

// overload is the only experiment.
const overload = "overload"

type experimentFlags struct {
	clients, capacity, load, spike, rejection *int
	backoff, pool                             *int
	seed                                      *int
	duration, timeout                         *time.Duration
	policies                                  *[]string
	json, html, svg                           *string
}

func experimentCommand(c *call) *cobra.Command {
	d := experiment.Defaults()
	var known strings.Builder
	for _, p := range experiment.Policies() {
		fmt.Fprintf(&known, "\n    %-6s  %s", p.Name, p.What)
	}
	return c.command(&cobra.Command{
		Use:     "experiment " + overload,
		GroupID: rulesGroup,
		Short:   "Simulate clients and an overloaded server",
		Long: `The experiment overload takes a server of limited capacity from normal load to a
spike and back, in virtual time, once for each retry policy, and prints the results:
goodput, attempts, latencies, and how long goodput took to recover after the spike.
Clients decide by the rules of the reference engine; the server is a model. The same
flags give the same output, byte for byte.

Policies:
` + known.String(),
		Example: `# all policies, 1,000 clients, a spike of 300 percent
utr experiment overload
# a spike of one second, and a page with plots
utr experiment overload --duration 6s --spike 130 --html overload.html`,
		ValidArgsFunction: completes(func() []string { return []string{overload} }, cobra.ShellCompDirectiveNoFileComp),
	}, func(f *flags) action {
		e := &experimentFlags{
			clients: f.number("clients", "N", d.Clients, 1, "number of clients"),
			capacity: f.number("capacity", "N", d.Capacity, 1,
				"operations per second that the server can serve; queue and limiter are scaled with it"),
			load:      f.number("load", "PERCENT", d.Load, 1, "load before and after the spike, in percent of the capacity"),
			spike:     f.number("spike", "PERCENT", d.Spike, 1, "load during the spike, in percent of the capacity"),
			duration:  f.duration("duration", fmt.Sprintf("virtual duration; the spike is the second sixth (default %s)", d.Duration)),
			timeout:   f.duration("timeout", fmt.Sprintf("timeoutMS of every operation (default %s)", d.Timeout)),
			rejection: f.within("rejection-cost", "PERCENT", d.Rejection, 0, 100, "cost of rejecting a request, in percent of serving it"),
			pool:      f.number("max-pool-size", "N", d.Pool, 1, "connections of each client"),
			backoff:   f.number("base-backoff-ms", "MS", 0, 0, "baseBackoffMS in the server's errors (default none)"),
			seed:      f.number("seed", "N", int(d.Seed), 0, "seed of the random numbers"),
			policies:  f.texts("policy", "NAME", "policy to simulate (default all)", experimentPolicies()...),
			json:      f.file("json", "write all measurements as JSON", ".yml", ".yaml"),
			html:      f.file("html", "write an HTML page with the table and plots", ".yml", ".yaml"),
			svg:       f.file("svg", "write the plots as an SVG image", ".yml", ".yaml"),
		}
		return e.act
	})
}

func experimentPolicies() []string {
	var names []string
	for _, p := range experiment.Policies() {
		names = append(names, p.Name)
	}
	return names
}

func (e *experimentFlags) act(ctx context.Context, c *call) error {
	if len(c.paths) != 1 || c.paths[0] != overload {
		return usage("requires the name of an experiment: %s", overload)
	}
	config := experiment.Defaults().Scaled(*e.capacity)
	config.Clients, config.Load, config.Spike, config.Rejection = *e.clients, *e.load, *e.spike, *e.rejection
	config.Pool = *e.pool
	config.Seed, config.BaseBackoff = int64(*e.seed), time.Duration(*e.backoff)*time.Millisecond
	for _, d := range []struct{ from, to *time.Duration }{{e.duration, &config.Duration}, {e.timeout, &config.Timeout}} {
		if *d.from > 0 {
			*d.to = *d.from
		}
	}
	if len(*e.policies) > 0 {
		config.Policies = nil
	}
	for _, name := range *e.policies {
		p, err := experiment.PolicyNamed(name)
		if err != nil {
			return usage("%w", err)
		}
		config.Policies = append(config.Policies, p)
	}
	if err := config.Check(); err != nil {
		return usage("%w", err)
	}
	report, err := experiment.Overload(ctx, config, c.experimentProgress())
	if err != nil {
		return fmt.Errorf("the experiment did not finish: %w", err)
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{*e.json, report.JSON}, {*e.html, report.HTML}, {*e.svg, report.SVG}} {
		if err := writeFile(f.name, f.write); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := report.Text(&b); err != nil {
		return err
	}
	return c.print(b.String())
}

// writeFile writes a report, if a file is named.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot write a report: %w", err)
	}
	return nil
}

// experimentProgress draws a status line on a terminal, and wipes it at the
// end of the last policy's run.
func (c *call) experimentProgress() func(string, float64) {
	if _, ok := c.terminal(); !ok {
		return nil
	}
	last := ""
	return func(policy string, part float64) {
		line := fmt.Sprintf("%s %d%%", policy, int(100*part))
		if line == last {
			return
		}
		last = line
		_, _ = fmt.Fprintf(c.out(), "\r\x1b[K%s", line)
		if part >= 1 {
			_, _ = io.WriteString(c.out(), "\r\x1b[K")
		}
	}
}
