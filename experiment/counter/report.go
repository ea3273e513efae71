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

// Text writes the document's table, and below it what was measured: the same text for the
// same configuration, unless elapsed adds how long it took.
func Text(w io.Writer, cells []Cell, elapsed bool) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "strategy\ttransient error\toutage\tcommand error")
	for _, s := range names(cells) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s, all(cells, s, LostRequest, LostReply, Failover), all(cells, s, Outage), all(cells, s, CommandError))
	}
	fmt.Fprint(t, "\nstrategy\tfault\tevents\tcounter\tcleaned up\terrors\tattempts")
	if elapsed {
		fmt.Fprint(t, "\tmessages\telapsed")
	}
	fmt.Fprintln(t)
	for _, c := range cells {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d", c.Strategy, c.Fault, c.Events, c.Counter, c.CleanedUp, c.Errors, c.Attempts)
		if elapsed {
			fmt.Fprintf(t, "\t%d\t%s", c.Messages, c.Elapsed.Round(10*time.Millisecond))
		}
		fmt.Fprintln(t)
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

// JSON writes the cells, each with its verdict, as a JSON array.
func JSON(w io.Writer, cells []Cell) error {
	type row struct {
		Cell
		Verdict string `json:"verdict"`
	}
	var rows []row
	for _, c := range cells {
		rows = append(rows, row{c, c.Verdict()})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

// names lists the strategies that were measured.
func names(cells []Cell) (out []string) {
	for _, c := range cells {
		if !slices.Contains(out, c.Strategy) {
			out = append(out, c.Strategy)
		}
	}
	return out
}

// all says what a strategy does in some faults together.
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
		return "not measured"
	case has("undercounts") && has("overcounts"):
		return "may undercount or overcount"
	case has("undercounts"):
		return "may undercount"
	case has("overcounts"):
		return "may overcount"
	}
	return found[0]
}
