package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/experiment"
)

// overload is the one experiment that there is.
const overload = "overload"

type experimentFlags struct {
	clients, capacity, load, spike, rejection *int
	backoff, pool                             *int
	seed                                      *int
	duration, timeout                         *time.Duration
	policies                                  listFlag
	json, html, svg                           *string
}

func experimentCommand() *command {
	d := experiment.Defaults()
	var known strings.Builder
	for _, p := range experiment.Policies() {
		fmt.Fprintf(&known, "\n  %-6s  %s", p.Name, p.What)
	}
	return &command{
		name:      "experiment",
		summary:   "simulate clients and an overloaded server",
		arguments: overload,
		details: `The experiment overload brings a server of limited capacity from a usual load to
a spike and back, in virtual time, once for each retry policy, and prints what
came of it: goodput, attempts, latencies, and how long after the spike goodput
was back. Clients decide by the rules of the reference engine; the server is a
model. The same flags give the same output, byte for byte.

Policies:` + known.String(),
		examples: []example{
			{"utr experiment overload", "all policies, 1,000 clients, a spike of 300 percent"},
			{"utr experiment overload --duration 6s --spike 130 --html overload.html", "a burst of one second, and a page with plots"},
		},
		words: func() []string { return []string{overload} },
		declare: func(f *flags) action {
			e := &experimentFlags{
				clients:  f.number("clients", "N", d.Clients, 1, fmt.Sprintf("number of clients (default %d)", d.Clients)),
				capacity: f.number("capacity", "N", d.Capacity, 1, fmt.Sprintf("operations that the server can serve in a second; queue and limiter follow (default %d)", d.Capacity)),
				load:     f.number("load", "PERCENT", d.Load, 1, fmt.Sprintf("load before and after the spike, of the capacity (default %d)", d.Load)),
				spike:    f.number("spike", "PERCENT", d.Spike, 1, fmt.Sprintf("load in the spike, of the capacity (default %d)", d.Spike)),
				duration: f.duration("duration", fmt.Sprintf("virtual length; the spike has the second sixth (default %s)", d.Duration)),
				timeout:  f.duration("timeout", fmt.Sprintf("timeoutMS of every operation (default %s)", d.Timeout)),
				rejection: f.within("rejection-cost", "PERCENT", d.Rejection, 0, 100,
					fmt.Sprintf("what rejecting a request costs the server, of what serving it costs (default %d)", d.Rejection)),
				pool:    f.number("max-pool-size", "N", d.Pool, 1, fmt.Sprintf("connections of each client (default %d)", d.Pool)),
				backoff: f.number("base-backoff-ms", "MS", 0, 0, "baseBackoffMS in the server's errors (default none)"),
				seed:    f.number("seed", "N", int(d.Seed), 0, fmt.Sprintf("seed of chance (default %d)", d.Seed)),
			}
			f.add(&e.policies, "policy", "NAME", "policy to try; may be repeated (default all)", policyNames()...)
			e.json = f.file("json", "write everything that was measured as JSON", ".yml", ".yaml")
			e.html = f.file("html", "write a page with table and plots", ".yml", ".yaml")
			e.svg = f.file("svg", "write the plots as an image", ".yml", ".yaml")
			return e.act
		},
	}
}

func policyNames() []string {
	var names []string
	for _, p := range experiment.Policies() {
		names = append(names, p.Name)
	}
	return names
}

func (e *experimentFlags) act(ctx context.Context, c *call) error {
	if len(c.paths) != 1 || c.paths[0] != overload {
		return usage("experiment: name the experiment: %s", overload)
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
	if len(e.policies) > 0 {
		config.Policies = nil
	}
	for _, name := range e.policies {
		p, err := experiment.PolicyNamed(name)
		if err != nil {
			return usage("experiment: %w", err)
		}
		config.Policies = append(config.Policies, p)
	}
	if err := config.Check(); err != nil {
		return usage("experiment: %w", err)
	}
	report, err := experiment.Overload(ctx, config, c.experimentProgress())
	if err != nil {
		return fmt.Errorf("the experiment was not ended: %w", err)
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

// writeFile writes a report, unless no one wants it.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("cannot write a report: %w", err)
	}
	return nil
}

// experimentProgress draws a status line on a terminal, and wipes it at the
// end of the last policy's run.
func (c *call) experimentProgress() func(string, float64) {
	if c.program.Terminal == nil {
		return nil
	}
	if _, ok := c.program.Terminal(); !ok {
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
