package experiment

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/text/plural"
)

// Text writes the report as a table.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.title() + "\n" + r.set() + "\n\n")
	table := r.table()
	widths := make([]int, len(columns))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], len(cell))
		}
	}
	b.WriteString(headings(widths))
	for _, line := range table {
		fmt.Fprintf(&b, "%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(&b, "  %*s", widths[i+1], cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, run := range r.Runs {
		fmt.Fprintf(&b, "%-*s  %s\n", widths[0], run.Policy.Name, run.Policy.What)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table returns the names of the columns and a row for each run.
func (r *Report) table() [][]string {
	rows := make([][]string, 1+len(r.Runs))
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
		for i := range r.Runs {
			rows[i+1] = append(rows[i+1], c.cell(&r.Runs[i]))
		}
	}
	return rows
}

// headings returns the line of group names, right-aligned above their columns. It widens
// the first column of a group to fit the name.
func headings(widths []int) string {
	var b strings.Builder
	first := 0
	for _, g := range groups() {
		length := 2 * (g.Span - 1)
		for _, w := range widths[first : first+g.Span] {
			length += w
		}
		if short := len(g.Name) - length; short > 0 {
			widths[first] += short
			length += short
		}
		if first > 0 {
			length += 2
		}
		fmt.Fprintf(&b, "%*s", length, g.Name)
		first += g.Span
	}
	return b.String() + "\n"
}

// column is a column of the table in text and HTML.
type column struct {
	group, name string
	cell        func(*Run) string
}

var columns = []column{
	{"", "policy", func(r *Run) string { return r.Policy.Name }},
	{"goodput/s", "before", func(r *Run) string { return whole(r.Phases[0].Goodput) }},
	{"goodput/s", "spike", func(r *Run) string { return whole(r.Phases[1].Goodput) }},
	{"goodput/s", "after", func(r *Run) string { return whole(r.Phases[2].Goodput) }},
	{"failed operations", "spike", func(r *Run) string { return percent(r.Phases[1].FailedPart()) }},
	{"failed operations", "after", func(r *Run) string { return percent(r.Phases[2].FailedPart()) }},
	{"attempts/operation", "spike", func(r *Run) string { return hundredths(r.Phases[1].PerOperation()) }},
	{"attempts/operation", "after", func(r *Run) string { return hundredths(r.Phases[2].PerOperation()) }},
	{"latency in spike", "p50", func(r *Run) string { return r.Phases[1].latency(r.Phases[1].P50) }},
	{"latency in spike", "p99", func(r *Run) string { return r.Phases[1].latency(r.Phases[1].P99) }},
	{"latency after", "p50", func(r *Run) string { return r.Phases[2].latency(r.Phases[2].P50) }},
	{"latency after", "p99", func(r *Run) string { return r.Phases[2].latency(r.Phases[2].P99) }},
	{"spike over", "back after", func(r *Run) string { return r.back() }},
}

// title describes the load; set describes the settings.
func (r *Report) title() string {
	c := &r.Config
	spike := seconds(c.spikeEnd() - c.spikeStart())
	load := fmt.Sprintf(" for %s, %d%% for %s, %d%% for %s", seconds(c.spikeStart()), c.Spike, spike, c.Load,
		seconds(c.Duration-c.spikeEnd()))
	switch c.Fault {
	case Unreachable:
		load = fmt.Sprintf("; every request fails for %s after %s", spike, seconds(c.spikeStart()))
	case Restarts:
		load = fmt.Sprintf("; after %s the primary restarts %s, each for %s, and %s after the one before",
			seconds(c.spikeStart()), plural.Of(restarts, "time"), millis(restartDown), millis(restartUp))
	}
	return fmt.Sprintf("overload: %s clients, %s operations/s can be served; load %d%%%s",
		whole(float64(c.Clients)), whole(float64(c.Capacity)), c.Load, load)
}

func (r *Report) set() string {
	c := &r.Config
	limiter := "no limiter"
	if c.Rate > 0 {
		limiter = fmt.Sprintf("limiter %s/s with burst %s", whole(float64(c.Rate)), whole(float64(c.Burst)))
	}
	base := "no baseBackoffMS"
	if c.BaseBackoff > 0 {
		base = fmt.Sprintf("baseBackoffMS %d", c.BaseBackoff.Milliseconds())
	}
	return fmt.Sprintf("timeoutMS %d, maxPoolSize %s, round trip %s, a rejection costs %d%% of an operation, queue %s, %s, %s, seed %d",
		c.Timeout.Milliseconds(), whole(float64(c.Pool)), millis(c.RoundTrip), c.Rejection, whole(float64(c.Queue)), limiter,
		base, c.Seed)
}

// back is the recovery time.
func (r *Run) back() string {
	if !r.Recovered {
		return "never"
	}
	return seconds(r.Recovery)
}

func (p *Phase) latency(d time.Duration) string {
	if p.Succeeded == 0 {
		return "none"
	}
	return millis(d)
}

// whole formats a number without fraction, with commas.
func whole(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func percent(part float64) string { return fmt.Sprintf("%.1f%%", 100*part) }
func hundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func millis(d time.Duration) string {
	return whole(float64(d)/float64(time.Millisecond)) + " ms"
}
