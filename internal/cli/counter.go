package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/experiment/counter"
)

// counterFlags are those of utr experiment counter.
type counterFlags struct {
	counter.Config
	strategies []string
	faults     []counter.Fault
	elapsed    bool
	json, svg  string
}

func counterCommand(c *call) *cobra.Command {
	names, known := described(16, counter.Strategies(), func(s counter.Strategy) (name, what string) {
		return s.Name, s.What
	})
	faults := each(counter.Faults(), func(f counter.Fault) string { return string(f) })
	return c.command(&cobra.Command{
		Use:   "counter",
		Short: "Count events while the network and the server fail",
		Long: `Increments a counter through the Go driver, once for each strategy and fault. A proxy
before the server strikes at the moment at which a write becomes durable: it loses the
request or the reply, breaks all connections for a moment or until the application gives
up, or refuses the command. Prints which strategies count too little, too much or in
vain, and what was measured. Unless strategies or faults are chosen, it also shows what
happens to other operations that are tried again once: find, insert, delete, $set.

Strategies:` + known,
		Example: `# all strategies in all faults
utr experiment counter
# on a deployment of yours
utr experiment counter --uri mongodb://localhost:27017 --strategy idempotent --fault lost-reply`,
		Args: arguments(0, 0, ""),
	}, func(f *flags) action {
		e := &counterFlags{Config: counter.Defaults()}
		list(f, &e.strategies, "strategy", "NAME", "strategy to measure (default all)", oneOf[string](names), names...)
		list(f, &e.faults, "fault", "NAME", "fault to cause (default all): "+strings.Join(faults, ", "), oneOf[counter.Fault](faults), faults...)
		f.number(&e.Events, "events", "N", 1, "events that each strategy counts in each fault")
		f.text(&e.URI, "uri", "URI", "count on the deployment at this connection string, without TLS (default an embedded one)")
		f.toggle(&e.elapsed, "elapsed", "print messages and time as well, which differ from run to run")
		f.file(&e.json, "json", "write all measurements as JSON", ".yml", ".yaml")
		f.file(&e.svg, "svg", "write a plot of the counter as an SVG image", ".yml", ".yaml")
		return e.act
	})
}

func (e *counterFlags) act(ctx context.Context, c *call) error {
	config := e.Config
	if len(e.strategies) > 0 {
		config.Strategies = slices.DeleteFunc(config.Strategies, func(s counter.Strategy) bool { return !slices.Contains(e.strategies, s.Name) })
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
	}
	text := func(w io.Writer) error { return report.Text(w, e.elapsed) }
	return c.measured(text, fileReport{e.json, report.JSON}, fileReport{e.svg, report.SVG})
}
