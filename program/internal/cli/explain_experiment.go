package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/program/internal/experiment"
	"github.com/unified-test-runner/utr/program/internal/experiment/counter"
)

func experimentGroup(c *invocation) *cobra.Command {
	return group("experiment NAME", "Measure retry policies and strategies",
		"the name of an experiment: counter or overload",
		counterCommand(c), overloadCommand(c))
}

type overloadFlags struct {
	experiment.Config
	backoff, seed   int
	policies        []string
	question        string
	json, html, svg string
}

func overloadCommand(c *invocation) *cobra.Command {
	names, known := nameTable(6, experiment.Policies(),
		func(p experiment.Policy) (string, string) { return p.Name, p.What })
	questions, asked := nameTable(8, experiment.Questions(),
		func(q experiment.Question) (string, string) { return q.Name, q.Asks })
	return c.command(&cobra.Command{
		Use:   "overload",
		Short: "Simulate clients and an overloaded server",
		Long: `Simulates a server of limited capacity under normal load, then a spike, then normal load
again, in virtual time, once for each retry policy. Prints goodput, attempts, latencies,
and how long goodput took to recover after the spike. Clients decide by the rules of the
reference engine; the server is a model. The same flags give the same output, byte for
byte.

Policies:
` + known + `

--question answers a question from a review by comparing other policies:
` + asked,
		Example: `# all policies, 1,000 clients, a spike of 300 percent
utr experiment overload
# a spike of one second, and a page with plots
utr experiment overload --duration 6s --spike 130 --html overload.html`,
	}, func(f *flags) action {
		e := &overloadFlags{Config: experiment.Defaults()}
		e.seed = int(e.Seed)
		f.number(&e.Clients, "clients", "N", 1, "number of clients")
		f.number(&e.Capacity, "capacity", "N", 1,
			"operations per second that the server can serve; queue and limiter scale with it")
		f.number(&e.Load, "load", "PERCENT", 1, "load before and after the spike, in percent of the capacity")
		f.number(&e.Spike, "spike", "PERCENT", 1, "load during the spike, in percent of the capacity")
		f.duration(&e.Duration, "duration", "virtual duration; the spike is the second sixth")
		f.duration(&e.Timeout, "timeout", "timeoutMS of every operation")
		f.within(&e.Rejection, "rejection-cost", "PERCENT", 0, 100, "cost of rejecting a request, in percent of serving it")
		f.number(&e.Pool, "max-pool-size", "N", 1, "connections of each client")
		f.within(&e.backoff, "base-backoff-ms", "MS", 0, math.MaxInt32, "baseBackoffMS in the server's errors (default none)")
		f.number(&e.seed, "seed", "N", 0, "seed of the random numbers")
		list(f, &e.policies, "policy", "NAME", "policy to simulate (default all)", oneOf[string](names), names...)
		choice(f, &e.question, "question", "NAME", "answer a question by comparing other policies", questions...)
		f.file(&e.json, "json", "write all measurements as JSON", ".yml", ".yaml")
		f.file(&e.html, "html", "write an HTML page with the table and plots", ".yml", ".yaml")
		f.file(&e.svg, "svg", "write the plots as an SVG image", ".yml", ".yaml")
		return e.act
	})
}

func (e *overloadFlags) act(ctx context.Context, c *invocation) error {
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
	return c.printResults(report.Text, files...)
}

// nameTable returns the names of a list, and a table of them for help.
func nameTable[T any](width int, all []T, of func(T) (name, what string)) (names []string, table string) {
	for _, one := range all {
		name, what := of(one)
		names = append(names, name)
		table += fmt.Sprintf("\n    %-*s  %s", width, name, what)
	}
	return names, table
}

type counterFlags struct {
	counter.Config
	strategies []string
	faults     []counter.Fault
	elapsed    bool
	json, svg  string
}

func counterCommand(c *invocation) *cobra.Command {
	names, known := nameTable(16, counter.Strategies(),
		func(s counter.Strategy) (string, string) { return s.Name, s.What })
	faults := mapSlice(counter.Faults(), func(f counter.Fault) string { return string(f) })
	return c.command(&cobra.Command{
		Use:   "counter",
		Short: "Count events while the network and the server fail",
		Long: `Increments a counter through the Go driver, once for each strategy and fault. A proxy
in front of the server injects the fault when a write becomes durable: it drops the
request or the reply, breaks all connections briefly or until the application gives up,
answers once that it is not the primary, or rejects the command. Prints which strategies
count too little, count too much or waste time, how many round trips an event takes
without a fault, and the measurements. Without --strategy and --fault, it also shows what
happens to other operations that are retried once: find, insert, delete, $set.

Strategies:` + known,
		Example: `# all strategies in all faults
utr experiment counter
# on your own deployment
utr experiment counter --uri mongodb://localhost:27017 --strategy idempotent --fault lost-reply`,
	}, func(f *flags) action {
		e := &counterFlags{Config: counter.Defaults()}
		list(f, &e.strategies, "strategy", "NAME", "strategy to measure (default all)", oneOf[string](names), names...)
		list(f, &e.faults, "fault", "NAME", "fault to inject (default all): "+strings.Join(faults, ", "),
			oneOf[counter.Fault](faults), faults...)
		f.number(&e.Events, "events", "N", 1, "events that each strategy counts during each fault")
		f.text(&e.URI, "uri", "URI", "count on the deployment at this connection string, without TLS (default an embedded one)")
		f.toggle(&e.elapsed, "elapsed", "also print messages and times, which differ from run to run")
		f.file(&e.json, "json", "write all measurements as JSON", ".yml", ".yaml")
		f.file(&e.svg, "svg", "write a plot of the counter as an SVG image", ".yml", ".yaml")
		return e.act
	})
}

func (e *counterFlags) act(ctx context.Context, c *invocation) error {
	config := e.Config
	if e.URI != "" {
		if err := c.checkURI("--uri", e.URI); err != nil {
			return err
		}
		config.URI = deployment.NormalURI(e.URI)
	}
	if len(e.strategies) > 0 {
		config.Strategies = slices.DeleteFunc(config.Strategies,
			func(s counter.Strategy) bool { return !slices.Contains(e.strategies, s.Name) })
	}
	if len(e.faults) > 0 {
		config.Faults = e.faults
	}
	if config.URI == "" {
		d, err := embedded.Start(ctx, embedded.Options{Topology: embedded.ReplicaSet, Members: 1})
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		config.URI = d.URI()
	}
	status, n := c.progress(c.errors), 0
	cells, err := counter.Run(ctx, config, func() {
		n++
		status(fmt.Sprintf("%d of %d measured", n, len(config.Strategies)*len(config.Faults)))
	})
	status("")
	if err != nil {
		return fmt.Errorf("the experiment did not finish: %w", err)
	}
	report := counter.Report{Cells: cells}
	if len(e.strategies)+len(e.faults) == 0 {
		if report.Operations, err = counter.RunOperations(ctx, config); err != nil {
			return fmt.Errorf("the experiment did not finish: %w", err)
		}
		if report.CleanUps, err = counter.RunCleanUps(ctx, config); err != nil {
			return fmt.Errorf("the experiment did not finish: %w", err)
		}
	}
	text := func(w io.Writer) error { return report.Text(w, e.elapsed) }
	return c.printResults(text, fileReport{e.json, report.JSON}, fileReport{e.svg, report.SVG})
}
