package counter

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of an experiment.
type Report struct {
	Cells      []Cell
	Operations []Outcome // may be empty
	CleanUps   []CleanUp // may be empty
}

// Text writes the table of the article and the measurements. Without elapsed, the text
// depends only on the configuration.
func (r Report) Text(w io.Writer, elapsed bool) error {
	var b strings.Builder
	cells, t := r.Cells, tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "strategy\ttransient error\toutage\tcommand error\tround trips")
	for _, s := range names(cells) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s, all(cells, s, LostRequest, LostReply, NotMaster, Failover),
			all(cells, s, Outage),
			all(cells, s, CommandError), roundTrips(cells, s))
	}
	fmt.Fprint(t, "\nstrategy\tfault\tevents\tcounter\tcleaned up\terrors\tattempts")
	if elapsed {
		fmt.Fprint(t, "\tmessages\telapsed")
	}
	fmt.Fprintln(t)
	for _, c := range cells {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d", c.Strategy, c.Fault, c.Events, c.Counter, c.CleanedUp, c.Errors,
			c.Attempts)
		if elapsed {
			fmt.Fprintf(t, "\t%d\t%s", c.Messages, c.Elapsed.Round(10*time.Millisecond))
		}
		fmt.Fprintln(t)
	}
	if len(r.Operations) > 0 {
		fmt.Fprint(t, "\nother operations, tried again once\tlost request\tlost reply")
	}
	for i, o := range r.Operations {
		if i%2 == 0 {
			fmt.Fprintf(t, "\n%s", o.Operation)
		}
		fmt.Fprintf(t, "\t%s", o.Verdict)
	}
	if len(r.CleanUps) > 0 {
		fmt.Fprint(t, "\n\nnightly clean-up\tfirst event of a day\tlater event")
	}
	for _, u := range r.CleanUps {
		fmt.Fprintf(t, "\n%s\t%s\t%s", u.Pipeline, u.First, u.Later)
	}
	_ = t.Flush() // to a strings.Builder
	b.WriteString("\n")
	for _, s := range Strategies() {
		if slices.Contains(names(cells), s.Name) {
			fmt.Fprintf(&b, "%s: %s\n", s.Name, s.What)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes cells and operations with their verdicts.
func (r Report) JSON(w io.Writer) error {
	type row struct {
		Cell
		Verdict string `json:"verdict"`
	}
	var out struct {
		Cells      []row     `json:"cells"`
		Operations []Outcome `json:"operations,omitempty"`
		CleanUps   []CleanUp `json:"cleanUps,omitempty"`
	}
	for _, c := range r.Cells {
		out.Cells = append(out.Cells, row{c, c.Verdict()})
	}
	out.Operations, out.CleanUps = r.Operations, r.CleanUps
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

const notMeasured = "not measured"

// roundTrips is how many messages a strategy sends for an event without a fault.
func roundTrips(cells []Cell, strategy string) string {
	for _, c := range cells {
		if c.Strategy == strategy && c.Fault == NoFault {
			return fmt.Sprintf("%.2g", float64(c.Messages)/float64(c.Events))
		}
	}
	return notMeasured
}

// names lists the measured strategies.
func names(cells []Cell) (out []string) {
	for _, c := range cells {
		if !slices.Contains(out, c.Strategy) {
			out = append(out, c.Strategy)
		}
	}
	return out
}

// all summarizes the verdicts of a strategy with some faults.
func all(cells []Cell, strategy string, faults ...Fault) string {
	var found []string
	for _, c := range cells {
		if c.Strategy == strategy && slices.Contains(faults, c.Fault) {
			found = append(found, c.Verdict())
		}
	}
	has := func(verdict string) bool { return slices.Contains(found, verdict) }
	switch {
	case len(found) == 0:
		return notMeasured
	case has("undercounts") && has("overcounts"):
		return "may undercount or overcount"
	case has("undercounts"):
		return "may undercount"
	case has("overcounts"):
		return "may overcount"
	}
	return found[0]
}
