package report

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/unified-test-runner/utr/result"
)

// TextOptions are the ways to write a report for people.
type TextOptions struct {
	// Verbose adds a line for every test and every deployment.
	Verbose bool
	// Timings adds how long everything took, where the time went, and the
	// slowest tests. Without it the report has no times, so that equal runs have
	// equal reports.
	Timings bool
	// Slowest is how many of the slowest tests are listed at the end, with their
	// times; 0 means five with Timings, and none without.
	Slowest int
	// Color marks verdicts with ANSI colours.
	Color bool
}

// Text writes for people: every failure with everything that explains it, and at
// the end the counts. The last line is exactly "N passed, N failed, N skipped".
// Broken and known-failing tests have a line of their own before it.
func Text(o TextOptions) Generator {
	if o.Timings && o.Slowest == 0 {
		o.Slowest = slowestTests
	}
	t := &text{options: o, skips: map[string]int{}, slowest: slowest{most: o.Slowest}}
	return hooks{start: t.start, ready: t.ready, test: t.finished, finish: t.summary}.generator(&t.buffer)
}

// The limits of a report for people; the JSON report has everything.
const (
	briefWidth   = 300 // characters of a command, reply or value
	slowestTests = 5
	skipReasons  = 10
	// shownHeartbeats is how many heartbeat events in a row are shown.
	shownHeartbeats = 2
)

type text struct {
	options TextOptions
	buffer  bytes.Buffer
	started result.RunStarted
	skips   map[string]int // reason → tests
	slowest slowest
	ended   int // tests that were begun and have ended
}

// line writes one line, or several of the same indentation. It replaces control
// characters, so that texts of servers and suites cannot control a terminal.
func (t *text) line(indent int, format string, args ...any) {
	body := strings.Map(visible, fmt.Sprintf(format, args...))
	for line := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		t.buffer.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+line, " ") + "\n")
	}
}

// colors by verdict: ANSI "select graphic rendition" numbers.
var colors = map[result.Status]int{
	result.Passed: 32, result.Failed: 31, result.Broken: 35, result.Skipped: 33, result.KnownFailing: 33, result.Flaky: 35,
}

// visible replaces what would control a terminal: control characters, and those
// that change the direction of writing.
func visible(r rune) rune {
	if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
		return r
	}
	return '\uFFFD'
}

// took gives a duration, if the report has times.
func (t *text) took(format string, d time.Duration) string {
	if !t.options.Timings {
		return ""
	}
	return fmt.Sprintf(format, round(d))
}

func (t *text) headline(v *result.Verdict, format string, args ...any) {
	if t.options.Color {
		fmt.Fprintf(&t.buffer, "\x1b[%dm%s\x1b[0m ", colors[v.Status], v.Status)
	} else {
		fmt.Fprintf(&t.buffer, "%s ", v.Status)
	}
	t.line(0, "%s"+format, append([]any{title(v.Test)}, args...)...)
}

// title names a test as people do, on one line whatever its description holds.
func title(id result.TestID) string {
	s := ""
	add(&s, id.Suite != "", "%s: ", id.Suite)
	s += id.Description
	add(&s, id.Where() != "", " [%s]", id.Where())
	add(&s, id.Iteration > 1, " #%d", id.Iteration)
	return strings.ReplaceAll(s, "\n", " ")
}

func (t *text) start(n result.RunStarted) {
	t.started = n
	if t.options.Verbose {
		t.line(0, "%s: %d tests of %d files, %d at once", n.Engine, n.Total, n.Files, max(1, n.Jobs))
	}
	if n.Seed != nil {
		t.line(0, "%s", shuffled(n))
	}
}

// shuffled says how a reader gets the order of a run again.
func shuffled(n result.RunStarted) string {
	return fmt.Sprintf("shuffled: --shuffle %d gives this order again", *n.Seed)
}

func (t *text) ready(n result.DeploymentReady) {
	if t.options.Verbose {
		t.line(0, "deployment %s ready%s: %s", n.Name, t.took(" in %s", n.Took), n.Info)
	}
}

func (t *text) finished(v *result.Verdict) {
	if v.Status != result.Skipped {
		t.ended++
		t.slowest.add(v)
	}
	switch v.Status {
	case result.Failed, result.Broken, result.Flaky:
		t.explain(v)
		return
	case result.Skipped:
		t.skips[skipReason(v)]++
	}
	if !t.options.Verbose || v.SkipKind == result.SkipFilter { // their number at the end is enough
		return
	}
	switch {
	case v.Status == result.Skipped:
		t.headline(v, " — %s", skipReason(v))
	case v.Reason != "":
		t.headline(v, "%s — %s", t.took(" (%s)", v.Duration), clip(v.Reason, briefWidth))
	default:
		t.headline(v, "%s", t.took(" (%s)", v.Duration))
	}
	t.explainDecisions(v)
}

func skipReason(v *result.Verdict) string { return string(v.SkipKind) + ": " + v.Reason }

// explain is everything that a person needs to understand one failure, or to
// see it again.
func (t *text) explain(v *result.Verdict) {
	t.buffer.WriteByte('\n')
	t.headline(v, "%s", t.took(" (%s)", v.Duration))
	t.mismatches(v)
	t.explainDecisions(v)
	for _, c := range v.Clients {
		t.head("events of " + c.Client)
		before, after := split(c.Events, c.Omitted)
		t.events(before)
		t.omitted(4, c.Omitted, "event")
		t.events(after)
		if len(c.Events) == 0 {
			t.line(4, "none")
		}
	}
	if t.options.Verbose && len(v.ServerLog) > 0 {
		t.head("the servers' logs")
		withGap(t, 4, v.ServerLog, v.OmittedLog, "line", func(l result.LogLine) {
			t.line(4, "%s%s %s", t.stamp(l.Time), l.Server, l.Text)
		})
	}
	if len(v.Rerun) > 0 {
		t.head("this test again: " + Quote(v.Rerun))
	}
}

// mismatches is what is wrong with a test, and where.
func (t *text) mismatches(v *result.Verdict) {
	t.line(2, "%s", v.Position)
	if v.Reason != "" {
		t.line(2, "%s", v.Reason)
	}
	for i, m := range v.Mismatches {
		if i == v.OmittedMismatches.After && v.OmittedMismatches.Count > 0 {
			t.buffer.WriteByte('\n')
			t.omitted(2, v.OmittedMismatches, "mismatch")
		}
		t.head(strings.TrimSpace(m.Path + "  " + m.Position.String()))
		t.line(4, "%s", m.Message)
		if m.Want != "" || m.Got != "" {
			t.line(4, "want %s", orNothing(m.Want))
			t.line(4, "got  %s", orNothing(m.Got))
		}
		if m.Diff != "" {
			t.line(4, "difference (- want, + got)")
			t.line(6, "%s", m.Diff)
		}
	}
}

func (t *text) head(s string) {
	t.buffer.WriteByte('\n')
	t.line(2, "%s", s)
}

// withGap writes the elements of a list, and reports what is missing where it is
// missing.
func withGap[T any](t *text, indent int, list []T, g result.Gap, noun string, write func(T)) {
	for i, one := range list {
		if i == g.After {
			t.omitted(indent, g, noun)
		}
		write(one)
	}
}

// split divides a list where something is missing in it.
func split[T any](list []T, g result.Gap) (before, after []T) {
	at := len(list)
	if g.Count > 0 {
		at = min(max(0, g.After), len(list))
	}
	return list[:at], list[at:]
}

func (t *text) omitted(indent int, g result.Gap, noun string) {
	if g.Count > 0 {
		t.line(indent, "… %s left out", plural(g.Count, noun))
	}
}

// stamp gives a time of the day, if the report has times.
func (t *text) stamp(at time.Time) string {
	if !t.options.Timings {
		return ""
	}
	return at.UTC().Format("15:04:05.000") + " "
}

// events lists events. Of more than two heartbeats in a row it gives the number:
// a test that takes a second has a hundred of them, and they seldom matter. The
// JSON report has them all.
func (t *text) events(events []result.Event) {
	for i := 0; i < len(events); {
		beats := 0
		for i+beats < len(events) && beat(events[i+beats]) {
			beats++
		}
		if beats > shownHeartbeats {
			t.line(4, "    … %d heartbeat events", beats)
			i += beats
			continue
		}
		t.line(4, "%s", eventLine(events[i]))
		i++
	}
}

// beat reports whether an event is one of a heartbeat that succeeded.
func beat(e result.Event) bool {
	return e.Type == result.ServerHeartbeatStarted || e.Type == result.ServerHeartbeatSucceeded
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

// explainDecisions lists the operations, and below each what the retry core
// decided, with its rules.
func (t *text) explainDecisions(v *result.Verdict) {
	if len(v.Operations) == 0 {
		return
	}
	t.head("operations")
	withGap(t, 4, v.Operations, v.OmittedOperations, "operation", func(o result.OperationLog) {
		t.line(4, "%s on %s  %s%s", o.Name, o.Object, o.Position, t.took("  (%s)", o.Duration))
		withGap(t, 6, o.Outcome.Decisions, o.Omitted, "decision", func(d result.Decision) { t.line(6, "%s", decisionLine(d)) })
		switch {
		case o.Outcome.Err != nil:
			t.line(6, "→ error %s", errorLine(o.Outcome.Err))
		case o.Outcome.Value.Type != 0:
			t.line(6, "→ %s", clip(string(value(o.Outcome.Value)), briefWidth))
		}
	})
}

func decisionLine(d result.Decision) string {
	s := fmt.Sprintf("attempt %d: %s", d.Attempt, d.Action)
	add(&s, d.Server != "", " %s", d.Server)
	add(&s, d.DelayMS > 0 || d.Action == "back off", " %s ms", strconv.FormatFloat(math.Round(d.DelayMS*1000)/1000, 'f', -1, 64))
	if d.Tokens != nil {
		s += fmt.Sprintf(", tokens %g", *d.Tokens)
	}
	add(&s, len(d.Deprioritized) > 0, ", deprioritized %s", strings.Join(d.Deprioritized, " "))
	add(&s, len(d.Rules) > 0, " [%s]", strings.Join(d.Rules, " "))
	add(&s, d.Reason != "", " %s", d.Reason)
	return s
}

// add adds words to a line, if they say something.
func add(line *string, say bool, format string, args ...any) {
	if say {
		*line += fmt.Sprintf(format, args...)
	}
}

func errorLine(e *result.Error) string {
	s := e.Kind
	add(&s, e.HasCode, " %d %s", e.Code, e.CodeName)
	add(&s, len(e.Labels) > 0, " {%s}", strings.Join(e.Labels, ", "))
	return strings.TrimSpace(s + " " + clip(e.Message, briefWidth))
}

func eventLine(e result.Event) string {
	s := fmt.Sprintf("%3d %s", e.Sequence, e.Type)
	add(&s, e.Address != "", " %s", e.Address)
	switch {
	case e.Command != nil:
		c := e.Command
		s += " " + strings.TrimPrefix(c.DatabaseName+"."+c.CommandName, ".")
		add(&s, c.ConnectionID != "", " connection %s", c.ConnectionID)
		switch {
		case c.Redacted:
			s += " (redacted)"
		case len(c.Command) > 0:
			s += " " + brief(c.Command, briefWidth)
		case c.Failure != nil:
			s += " " + errorLine(c.Failure)
		case len(c.Reply) > 0:
			s += " " + brief(c.Reply, briefWidth)
		}
	case e.Pool != nil:
		p := e.Pool
		add(&s, p.ConnectionID != 0, " connection %d", p.ConnectionID)
		add(&s, p.Reason != "", " (%s)", p.Reason)
		if p.InterruptInUseConnections != nil {
			s += fmt.Sprintf(" interruptInUseConnections=%t", *p.InterruptInUseConnections)
		}
		add(&s, p.Err != "", " %s", clip(p.Err, briefWidth))
	case e.SDAM != nil:
		d := e.SDAM
		if d.Previous != nil && d.New != nil {
			s += fmt.Sprintf(" %s → %s", d.Previous.Type, d.New.Type)
		}
		if d.Awaited != nil {
			s += fmt.Sprintf(" awaited=%t", *d.Awaited)
		}
		add(&s, d.Err != "", " %s", clip(d.Err, briefWidth))
	}
	return s
}

func (t *text) summary(s result.Summary) {
	if len(t.skips) > 0 {
		t.skipped()
	}
	if t.options.Timings {
		t.timings(s)
	}
	for _, v := range t.slowest.verdicts {
		t.line(2, "slow: %s %s", round(v.Duration), title(v.Test))
	}
	for _, p := range s.Problems {
		t.line(0, "problem: %s", p)
	}
	if s.Interrupted {
		t.line(0, "interrupted: %d of %d tests ran", t.ended, t.started.Total)
	}
	switch {
	case s.Flaky > 0:
		t.line(0, "%d flaky, %d broken, %d known-failing", s.Flaky, s.Broken, s.KnownFailing)
	case s.Broken > 0 || s.KnownFailing > 0:
		t.line(0, "%d broken, %d known-failing", s.Broken, s.KnownFailing)
	}
	t.line(0, "%d passed, %d failed, %d skipped", s.Passed, s.Failed, s.Skipped)
}

// skipped says why tests were skipped, the most frequent reason first.
func (t *text) skipped() {
	reasons := byCount(t.skips)
	shown := reasons
	if !t.options.Verbose {
		shown = reasons[:min(len(reasons), skipReasons)]
	}
	for _, r := range shown {
		t.line(0, "skipped %d: %s", t.skips[r], r)
	}
	if n := len(reasons) - len(shown); n > 0 {
		t.line(0, "skipped for %d other reasons (-v shows them)", n)
	}
}

// timings says where the time went. The parts are sums over tests: with several
// jobs they exceed the duration of the run.
func (t *text) timings(s result.Summary) {
	parts := []struct {
		name string
		took time.Duration
	}{
		{"set-up", s.Timings.Setup}, {"engine", s.Timings.Engine}, {"server", s.Timings.Server},
		{"waiting", s.Timings.Waiting}, {"clean-up", s.Timings.Cleanup},
	}
	var sum time.Duration
	for _, p := range parts {
		sum += p.took
	}
	t.line(0, "time: %s on the clock, %s over all tests", round(s.Duration), round(sum))
	for _, p := range parts {
		share := 0.0
		if sum > 0 {
			share = 100 * float64(p.took) / float64(sum)
		}
		t.line(2, "%-8s %10s %5.1f %%", p.name, round(p.took), share)
	}
}

// round makes durations readable: three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(time.Microsecond)
	}
}
