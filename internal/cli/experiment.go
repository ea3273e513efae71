package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/experiment"
)

func experimentGroup(c *call) *cobra.Command {
	group := &cobra.Command{
		Use:   "experiment NAME",
		Short: "Measure what retry policies and strategies do",
		RunE: func(*cobra.Command, []string) error {
			return usage("requires the name of an experiment: counter or overload")
		},
	}
	group.AddCommand(counterCommand(c), overloadCommand(c))
	return group
}

// overloadFlags are those of utr experiment overload.
type overloadFlags struct {
	experiment.Config
	backoff, seed   int
	policies        []string
	question        string
	json, html, svg string
}

func overloadCommand(c *call) *cobra.Command {
	names, known := described(6, experiment.Policies(), func(p experiment.Policy) (name, what string) {
		return p.Name, p.What
	})
	questions, asked := described(8, experiment.Questions(), func(q experiment.Question) (name, what string) {
		return q.Name, q.Asks
	})
	return c.command(&cobra.Command{
		Use:   "overload",
		Short: "Simulate clients and an overloaded server",
		Long: `Takes a server of limited capacity from normal load to a
spike and back, in virtual time, once for each retry policy, and prints the results:
goodput, attempts, latencies, and how long goodput took to recover after the spike.
Clients decide by the rules of the reference engine; the server is a model. The same
flags give the same output, byte for byte.

Policies:
` + known + `

--question compares what was asked about in a review, with policies of its own:
` + asked,
		Example: `# all policies, 1,000 clients, a spike of 300 percent
utr experiment overload
# a spike of one second, and a page with plots
utr experiment overload --duration 6s --spike 130 --html overload.html`,
		Args: arguments(0, 0, ""),
	}, func(f *flags) action {
		e := &overloadFlags{Config: experiment.Defaults()}
		e.seed = int(e.Seed)
		f.number(&e.Clients, "clients", "N", 1, "number of clients")
		f.number(&e.Capacity, "capacity", "N", 1, "operations per second that the server can serve; queue and limiter are scaled with it")
		f.number(&e.Load, "load", "PERCENT", 1, "load before and after the spike, in percent of the capacity")
		f.number(&e.Spike, "spike", "PERCENT", 1, "load during the spike, in percent of the capacity")
		f.duration(&e.Duration, "duration", "virtual duration; the spike is the second sixth")
		f.duration(&e.Timeout, "timeout", "timeoutMS of every operation")
		f.within(&e.Rejection, "rejection-cost", "PERCENT", 0, 100, "cost of rejecting a request, in percent of serving it")
		f.number(&e.Pool, "max-pool-size", "N", 1, "connections of each client")
		f.number(&e.backoff, "base-backoff-ms", "MS", 0, "baseBackoffMS in the server's errors (default none)")
		f.number(&e.seed, "seed", "N", 0, "seed of the random numbers")
		list(f, &e.policies, "policy", "NAME", "policy to simulate (default all)", oneOf[string](names), names...)
		choice(f, &e.question, "question", "NAME", "answer a question, with policies of its own", questions...)
		f.file(&e.json, "json", "write all measurements as JSON", ".yml", ".yaml")
		f.file(&e.html, "html", "write an HTML page with the table and plots", ".yml", ".yaml")
		f.file(&e.svg, "svg", "write the plots as an SVG image", ".yml", ".yaml")
		return e.act
	})
}

func (e *overloadFlags) act(ctx context.Context, c *call) error {
	config := e.Scaled(e.Capacity)
	config.Seed, config.BaseBackoff = int64(e.seed), time.Duration(e.backoff)*time.Millisecond
	if len(e.policies) > 0 {
		config.Policies = nil
		for _, name := range e.policies {
			i := slices.IndexFunc(e.Policies, func(p experiment.Policy) bool { return p.Name == name })
			config.Policies = append(config.Policies, e.Policies[i])
		}
	}
	for _, q := range experiment.Questions() {
		if q.Name == e.question {
			q.Set(&config)
		}
	}
	if err := config.Check(); err != nil {
		return usage("%w", err)
	}
	status := c.progress(c.out())
	report, err := experiment.Overload(ctx, config, func(policy string, part float64) {
		if status(fmt.Sprintf("%s %d%%", policy, int(100*part))); part >= 1 {
			status("")
		}
	})
	if err != nil {
		return fmt.Errorf("the experiment did not finish: %w", err)
	}
	files := []fileReport{{e.json, report.JSON}, {e.html, report.HTML}, {e.svg, report.SVG}}
	return c.measured(report.Text, files...)
}

// described gives the names of a list, and a table of them for help.
func described[T any](width int, all []T, of func(T) (name, what string)) (names []string, table string) {
	for _, one := range all {
		name, what := of(one)
		names = append(names, name)
		table += fmt.Sprintf("\n    %-*s  %s", width, name, what)
	}
	return names, table
}

// fileReport is a report for a file, if one is named.
type fileReport struct {
	name  string
	write func(io.Writer) error
}

// measured writes the reports of an experiment, and prints its results.
func (c *call) measured(text func(io.Writer) error, files ...fileReport) error {
	for _, f := range files {
		if err := writeFile(f.name, f.write); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := text(&b); err != nil {
		return err
	}
	return c.print(b.String())
}

// progress returns a function that draws a status line on a terminal, in place of the
// line before; "" wipes it.
func (c *call) progress(to io.Writer) func(line string) {
	_, terminal := c.terminal()
	last := ""
	return func(line string) {
		if terminal && line != last {
			_, _ = fmt.Fprintf(to, "\r\x1b[K%s", line)
		}
		last = line
	}
}
